"""Tables from the lines inside a region, with or without rulings."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from pagemill.domain import BoundingBox
from pagemill.engines.embedded.elements import Line, Rulings
from pagemill.engines.embedded.structure.joining import Vocabulary
from pagemill.engines.embedded.structure.metrics import PageMetrics, visual_rows
from pagemill.engines.embedded.structure.tables.columns import column_extents, find_separators, place
from pagemill.engines.embedded.structure.tables.model import Cell, Table, is_numeric
from pagemill.engines.embedded.structure.tables.rows import VisualRow, group_rows
from pagemill.engines.embedded.structure.tables.rulings import Grid
from pagemill.engines.embedded.structure.tables.splitting import split_at


def aligned_table(
    lines: Sequence[Line],
    box: BoundingBox,
    rulings: Rulings,
    metrics: PageMetrics,
    vocabulary: Vocabulary,
    fixed: Sequence[float] = (),
) -> Table | None:
    """Builds a table whose columns are told by alignment.

    Args:
        lines: The lines inside the table.
        box: The table's region in pixels.
        rulings: Drawn lines of the page; those across the table part its rows.
        metrics: Sizes of the page's running text.
        vocabulary: Words of the page, for hyphens inside cells.
        fixed: x positions in pixels of column boundaries that are known from rulings.

    Returns:
        The table, or None where the lines form a single column.
    """
    rows = visual_rows(lines)
    separators = sorted({*fixed, *_new_separators(find_separators(rows, metrics.em), fixed, metrics.em)})
    if not separators:
        return None
    rows = rows[:1] + [_split_read_lines(row, separators, metrics.em) for row in rows[1:]]
    extents = column_extents(rows, separators)
    visual = [VisualRow(tuple(place(row, separators, extents))) for row in rows]
    columns = len(separators) + 1
    bands = _bands(rulings, box, metrics)
    header = _header_rows(visual, bands)
    groups = group_rows(visual[header:], columns, bands, metrics.line_height)
    head = _header_groups(visual[:header])
    cells = [cell for i, group in enumerate([*head, *groups]) for cell in _row_cells(i, group, columns, vocabulary)]
    return Table(len(head) + len(groups), columns, tuple(cells), box, max(1, len(head)))


def ruled_table(
    lines: Sequence[Line], grid: Grid, rulings: Rulings, metrics: PageMetrics, vocabulary: Vocabulary
) -> Table | None:
    """Builds a table from a grid of rulings.

    Where cells hold columns that are told by alignment only, or a band between two rulings holds several rows, the
    grid is refined by alignment.

    Returns:
        The table, or None where the grid is a frame around text rather than a table.
    """
    tolerance = ruling_tolerance(metrics)
    spans = grid.spans(tolerance)
    inner = list(grid.xs[1:-1])
    if grid.columns == 1 or _has_inner_columns(lines, grid, metrics) or _has_inner_rows(lines, grid, spans):
        return aligned_table(lines, grid.box, rulings, metrics, vocabulary, inner)
    owner = {(i + a, j + b): (i, j) for (i, j), (high, wide) in spans.items() for a in range(high) for b in range(wide)}
    pieces = [piece for row in visual_rows(lines) for piece in split_at(row, _crossed(row, grid, owner), metrics.em)]
    members: dict[tuple[int, int], list[Line]] = {key: [] for key in spans}
    for piece in pieces:
        members[owner[_index(grid.ys, piece.box.center_y), _index(grid.xs, piece.box.center_x)]].append(piece)
    cells = [Cell(i, j, cell_text(members[i, j], vocabulary), high, wide) for (i, j), (high, wide) in spans.items()]
    return _without_slivers(Table(grid.rows, grid.columns, tuple(cells), grid.box), grid, metrics)


def ruling_tolerance(metrics: PageMetrics) -> float:
    """Distance in pixels within which rulings are taken to meet."""
    return max(4.0, 0.3 * metrics.line_height)


def cell_text(lines: Sequence[Line], vocabulary: Vocabulary) -> str:
    """Text of a cell, its lines joined from top to bottom."""
    return vocabulary.join_all(line.text.strip() for row in visual_rows(lines) for line in row)


def _split_read_lines(row: Sequence[Line], separators: Sequence[float], em: float) -> list[Line]:
    """Splits lines from OCR only: those of a text layer were split at their true gaps."""
    return [piece for line in row for piece in ([line] if line.from_text_layer else split_at([line], separators, em))]


def _new_separators(found: Sequence[float], fixed: Sequence[float], em: float) -> list[float]:
    return [x for x in found if all(abs(x - edge) > 1.5 * em for edge in fixed)]


def _index(edges: Sequence[float], value: float) -> int:
    return min(max(sum(edge <= value for edge in edges) - 1, 0), len(edges) - 2)


def _crossed(row: Sequence[Line], grid: Grid, owner: dict[tuple[int, int], tuple[int, int]]) -> list[float]:
    """Inner column boundaries that part two cells in this row."""
    center = sum(line.box.center_y for line in row) / len(row)
    i = _index(grid.ys, center)
    return [grid.xs[j + 1] for j in range(grid.columns - 1) if owner[i, j] != owner[i, j + 1]]


def _has_inner_columns(lines: Sequence[Line], grid: Grid, metrics: PageMetrics) -> bool:
    """Whether some column of the grid holds side-by-side lines in most of its filled rows."""
    for j in range(grid.columns):
        inside = [line for line in lines if grid.xs[j] <= line.box.center_x < grid.xs[j + 1]]
        rows = visual_rows(inside)
        wide = [
            row for row in rows if any(b.box.left - a.box.right > 1.2 * metrics.em for a, b in itertools.pairwise(row))
        ]
        if len(wide) >= 3 and len(wide) >= 0.5 * len(rows) and find_separators(rows, metrics.em):
            return True
    return False


def _has_inner_rows(lines: Sequence[Line], grid: Grid, spans: dict[tuple[int, int], tuple[int, int]]) -> bool:
    """Whether some band holds several rows: the same number of lines, numbers among them, in most of its cells."""
    for i in range(grid.rows):
        cells = [
            [
                line
                for line in lines
                if grid.ys[i] <= line.box.center_y < grid.ys[i + 1]
                and grid.xs[j] <= line.box.center_x < grid.xs[j + wide]
            ]
            for (row, j), (high, wide) in spans.items()
            if row == i and high == 1
        ]
        filled = [visual_rows(cell) for cell in cells if cell]
        most = max((len(rows) for rows in filled), default=0)
        if most < 2 or len(filled) < 2:
            continue
        full = [rows for rows in filled if len(rows) == most]
        numbers = [rows for rows in full if all(is_numeric(line.text) for row in rows for line in row)]
        if len(full) >= max(2, 0.6 * len(filled)) and (numbers and (most > 2 or grid.rows <= 2)):
            return True
    return False


def _without_slivers(table: Table, grid: Grid, metrics: PageMetrics) -> Table:
    """Drops empty rows and columns that are only the space between double rulings."""
    matrix = table.matrix()
    thin_columns = {
        j
        for j in range(table.columns)
        if grid.xs[j + 1] - grid.xs[j] < 0.8 * metrics.em and not any(row[j] for row in matrix)
    }
    thin_rows = {
        i for i in range(table.rows) if grid.ys[i + 1] - grid.ys[i] < 0.5 * metrics.line_height and not any(matrix[i])
    }
    if not thin_columns and not thin_rows:
        return table
    cells = []
    for cell in table.cells:
        rows = [i for i in range(cell.row, cell.row + cell.row_span) if i not in thin_rows]
        columns = [j for j in range(cell.column, cell.column + cell.column_span) if j not in thin_columns]
        if rows and columns:
            row = rows[0] - sum(i < rows[0] for i in thin_rows)
            column = columns[0] - sum(j < columns[0] for j in thin_columns)
            cells.append(Cell(row, column, cell.text, len(rows), len(columns)))
    return Table(
        table.rows - len(thin_rows), table.columns - len(thin_columns), tuple(cells), table.box, table.header_rows
    )


def _bands(rulings: Rulings, box: BoundingBox, metrics: PageMetrics) -> list[float]:
    """Y positions of rulings that cross most of the table's width."""
    positions = sorted(
        ruling.center_y
        for ruling in rulings.horizontal
        if ruling.overlap_x(box) > 0.6 * box.width
        and box.top - metrics.line_height < ruling.center_y < box.bottom + metrics.line_height
    )
    tolerance = ruling_tolerance(metrics)
    return [y for k, y in enumerate(positions) if k == 0 or y - positions[k - 1] > tolerance]


def _header_rows(rows: Sequence[VisualRow], bands: Sequence[float]) -> int:
    """How many visual rows stand above the first ruling that has text on both sides: at most three."""
    for edge in bands:
        above = sum(row.center < edge for row in rows)
        if above:
            return above if above <= 3 and above < len(rows) else 0
    return 0


def _header_groups(rows: Sequence[VisualRow]) -> list[list[VisualRow]]:
    """One row of the table, unless headings over several columns make it several."""
    if not rows:
        return []
    if any(piece.last > piece.first for row in rows for piece in row.pieces):
        return [[row] for row in rows]
    return [list(rows)]


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
