"""Tables whose columns are told by alignment."""

from __future__ import annotations

from collections.abc import Sequence

from pagemill.domain import BoundingBox
from pagemill.engines.embedded.elements import Line, Rulings
from pagemill.engines.embedded.structure.joining import Vocabulary
from pagemill.engines.embedded.structure.metrics import PageMetrics, visual_rows
from pagemill.engines.embedded.structure.tables.cells import cell_text, ruling_tolerance
from pagemill.engines.embedded.structure.tables.columns import column_extents, find_separators, place
from pagemill.engines.embedded.structure.tables.header import (
    header_groups,
    header_height,
    spread_headings,
    stretched_down,
)
from pagemill.engines.embedded.structure.tables.model import Cell, Table
from pagemill.engines.embedded.structure.tables.rows import VisualRow, group_rows
from pagemill.engines.embedded.structure.tables.splitting import split_amounts, split_at, split_numbers


def aligned_table(
    lines: Sequence[Line],
    box: BoundingBox,
    rulings: Rulings,
    metrics: PageMetrics,
    vocabulary: Vocabulary,
) -> Table | None:
    """Builds a table whose columns are told by alignment.

    Args:
        lines: The lines inside the table.
        box: The table's region in pixels.
        rulings: Drawn lines of the page; those across the table part its rows, those down its height its columns.
        metrics: Sizes of the page's running text.
        vocabulary: Words of the page, for hyphens inside cells.

    Returns:
        The table, or None where the lines form a single column.
    """
    rows = visual_rows(split_amounts(lines))
    drawn = _drawn_separators(rulings, box, metrics)
    separators = sorted({*drawn, *_new_separators(find_separators(rows, metrics.em), drawn, rows)})
    if not separators:
        return None
    rows = [split_at(row, drawn, metrics.em) for row in rows]
    rows = [split_numbers(row, separators, metrics.em) for row in rows]
    rows = rows[:1] + [_split_read_lines(row, separators, metrics.em) for row in rows[1:]]
    extents = column_extents(rows, separators)
    visual = [VisualRow(tuple(place(row, separators, extents))) for row in rows]
    columns = len(separators) + 1
    bands = _bands(rulings, box, metrics)
    height = header_height(visual, bands)
    head = header_groups(spread_headings(visual[:height], extents, rulings, metrics))
    groups = group_rows(visual[height:], columns, bands, metrics.line_height)
    cells = [cell for i, group in enumerate([*head, *groups]) for cell in _row_cells(i, group, columns, vocabulary)]
    cells = stretched_down(cells, len(head))
    return Table(len(head) + len(groups), columns, tuple(cells), box, max(1, len(head)))


def _split_read_lines(row: Sequence[Line], separators: Sequence[float], em: float) -> list[Line]:
    """Splits lines from OCR only: those of a text layer were split at their true gaps."""
    return [piece for line in row for piece in ([line] if line.from_text_layer else split_at([line], separators, em))]


def _new_separators(found: Sequence[float], drawn: Sequence[float], rows: Sequence[Sequence[Line]]) -> list[float]:
    """Separators that part something which no drawn one parts already."""
    centers = sorted(line.box.center_x for row in rows for line in row)

    def parts(x: float) -> bool:
        below = max((edge for edge in drawn if edge <= x), default=float("-inf"))
        above = min((edge for edge in drawn if edge > x), default=float("inf"))
        return any(below < center < x for center in centers) and any(x <= center < above for center in centers)

    return [x for x in found if parts(x)]


def _bands(rulings: Rulings, box: BoundingBox, metrics: PageMetrics) -> list[float]:
    """Y positions of rulings that cross most of the table's width."""
    positions = sorted(
        ruling.center_y
        for ruling in rulings.horizontal
        if ruling.overlap_x(box) > 0.85 * box.width
        and box.top - metrics.line_height < ruling.center_y < box.bottom + metrics.line_height
    )
    tolerance = ruling_tolerance(metrics)
    return [y for k, y in enumerate(positions) if k == 0 or y - positions[k - 1] > tolerance]


def _drawn_separators(rulings: Rulings, box: BoundingBox, metrics: PageMetrics) -> list[float]:
    """X positions of rulings inside the table that run down most of its height."""
    positions = sorted(
        ruling.center_x
        for ruling in rulings.vertical
        if ruling.overlap_y(box) > 0.6 * box.height and box.left + metrics.em < ruling.center_x < box.right - metrics.em
    )
    return [x for k, x in enumerate(positions) if k == 0 or x - positions[k - 1] > ruling_tolerance(metrics)]


def _row_cells(index: int, group: Sequence[VisualRow], columns: int, vocabulary: Vocabulary) -> list[Cell]:
    """Cells of a row; ranges of columns that overlap become one, and places without text get empty cells."""
    ranges: list[tuple[int, int, list[Line]]] = []
    for piece in sorted((p for row in group for p in row.pieces), key=lambda p: (p.first, p.last)):
        if ranges and piece.first <= ranges[-1][1]:
            first, last, lines = ranges[-1]
            ranges[-1] = (first, max(last, piece.last), [*lines, piece.line])
        else:
            ranges.append((piece.first, piece.last, [piece.line]))
    cells = [Cell(index, first, cell_text(lines, vocabulary), 1, last - first + 1) for first, last, lines in ranges]
    taken = {k for first, last, _ in ranges for k in range(first, last + 1)}
    cells.extend(Cell(index, k) for k in range(columns) if k not in taken)
    return sorted(cells, key=lambda cell: cell.column)
