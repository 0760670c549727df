"""Headers of tables that are told by alignment: how far they reach down, and headings over several columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pagemill.engines.embedded.elements import Rulings
from pagemill.engines.embedded.structure.metrics import PageMetrics
from pagemill.engines.embedded.structure.tables.columns import Placed
from pagemill.engines.embedded.structure.tables.model import Cell, is_numeric
from pagemill.engines.embedded.structure.tables.rows import VisualRow

_MAX_ROWS = 6
_Extents = Sequence[tuple[float, float]]


def header_height(rows: Sequence[VisualRow], bands: Sequence[float]) -> int:
    """How many visual rows stand above the first ruling across the table that has text on both sides.

    0 where no ruling tells.
    """
    for edge in bands:
        above = sum(row.center < edge for row in rows)
        if above:
            return above if above <= _MAX_ROWS and 2 * above <= len(rows) + 1 else 0
    return 0


def spread_headings(
    rows: Sequence[VisualRow], extents: _Extents, rulings: Rulings, metrics: PageMetrics
) -> list[VisualRow]:
    """Lets headings reach over the columns they stand for.

    A ruling right below a heading tells how far it reaches; so does a place in the middle over columns that are
    otherwise empty in this row.

    Args:
        rows: Visual rows of the header.
        extents: Typical left and right edge of each column's cells, in pixels.
        rulings: Drawn lines of the page.
        metrics: Sizes of the page's running text.
    """
    return [VisualRow(tuple(_spread(piece, row, extents, rulings, metrics) for piece in row.pieces)) for row in rows]


def header_groups(rows: Sequence[VisualRow]) -> list[list[VisualRow]]:
    """Rows of the header: one for each row of headings over several columns, and one for all that follows."""
    last = max((k for k, row in enumerate(rows) if _spans(row)), default=-1)
    groups = [[row] for row in rows[: last + 1]]
    rest = list(rows[last + 1 :])
    return [*groups, rest] if rest else groups


def stretched_down(cells: Sequence[Cell], height: int) -> list[Cell]:
    """Lets cells of a header reach over the empty places above or below them.

    Args:
        cells: All cells of a table.
        height: Number of header rows.
    """
    if height < 2:
        return list(cells)
    result = [cell for cell in cells if cell.row >= height]
    header = [cell for cell in cells if cell.row < height]
    for column in sorted({cell.column for cell in header}):
        own = [cell for cell in header if cell.column == column]
        filled = [cell for cell in own if cell.text]
        plain = all(cell.column_span == 1 for cell in own) and len(own) == height
        if plain and len(filled) == 1:
            result.append(Cell(0, column, filled[0].text, height))
        else:
            result.extend(own)
    return sorted(result, key=lambda cell: (cell.row, cell.column))


def _spans(row: VisualRow) -> bool:
    return any(piece.last > piece.first for piece in row.pieces)


def _spread(piece: Placed, row: VisualRow, extents: _Extents, rulings: Rulings, metrics: PageMetrics) -> Placed:
    if piece.last > piece.first:
        return piece
    taken = {k for other in row.pieces if other is not piece for k in range(other.first, other.last + 1)}
    under = _columns_over_ruling(piece, row, extents, rulings, metrics)
    if under is not None and not taken & set(range(under[0], under[1] + 1)):
        return replace(piece, first=under[0], last=under[1])
    return piece if is_numeric(piece.line.text) else _centered(piece, taken, extents, metrics)


def _columns_over_ruling(
    piece: Placed, row: VisualRow, extents: _Extents, rulings: Rulings, metrics: PageMetrics
) -> tuple[int, int] | None:
    box = piece.line.box
    for ruling in rulings.horizontal:
        below = -0.3 * metrics.line_height < ruling.center_y - row.bottom < 0.8 * metrics.line_height
        if not below or not ruling.left - metrics.em < box.center_x < ruling.right + metrics.em:
            continue
        covered = [
            k
            for k, (low, high) in enumerate(extents)
            if high > low and min(high, ruling.right) - max(low, ruling.left) > 0.5 * (high - low)
        ]
        if len(covered) > 1 and len(covered) < len(extents):
            return covered[0], covered[-1]
    return None


def _centered(piece: Placed, taken: set[int], extents: _Extents, metrics: PageMetrics) -> Placed:
    """Spreads a heading over the widest range of free columns in whose middle it stands, if it is over no column."""
    box = piece.line.box
    low, high = extents[piece.first]
    if not high > low or abs(box.center_x - (low + high) / 2) < metrics.em:
        return piece
    if abs(box.left - low) < 0.5 * metrics.em or abs(box.right - high) < 0.5 * metrics.em:
        return piece
    ranges = [
        (first, last)
        for first in range(1, piece.first + 1)
        for last in range(piece.first, len(extents))
        if last > first and not taken & set(range(first, last + 1))
    ]
    for first, last in sorted(ranges, key=lambda item: item[0] - item[1]):
        left, right = extents[first][0], extents[last][1]
        if right > left and abs(box.center_x - (left + right) / 2) < metrics.em:
            return replace(piece, first=first, last=last)
    return piece
