"""Tables from grids of rulings."""

from __future__ import annotations

from collections.abc import Sequence

from pagemill.engines.embedded.elements import Line
from pagemill.engines.embedded.structure.joining import Vocabulary
from pagemill.engines.embedded.structure.metrics import PageMetrics, visual_rows
from pagemill.engines.embedded.structure.tables.cells import cell_text, ruling_tolerance
from pagemill.engines.embedded.structure.tables.model import Cell, Table
from pagemill.engines.embedded.structure.tables.refine import grid_index, refined
from pagemill.engines.embedded.structure.tables.rulings import Grid
from pagemill.engines.embedded.structure.tables.splitting import split_amounts, split_at


def ruled_table(lines: Sequence[Line], grid: Grid, metrics: PageMetrics, vocabulary: Vocabulary) -> Table:
    """Builds a table from a grid of rulings.

    Where cells hold columns that are told by alignment only, or a band between two rulings holds several rows, the
    grid is refined by alignment.
    """
    lines = split_amounts(lines)
    grid = refined(grid, lines, metrics)
    spans = grid.spans(ruling_tolerance(metrics))
    owner = grid.owners(ruling_tolerance(metrics))
    pieces = [piece for row in visual_rows(lines) for piece in split_at(row, _crossed(row, grid, owner), metrics.em)]
    members: dict[tuple[int, int], list[Line]] = {key: [] for key in spans}
    for piece in pieces:
        members[owner[grid_index(grid.ys, piece.box.center_y), grid_index(grid.xs, piece.box.center_x)]].append(piece)
    cells = [Cell(i, j, cell_text(members[i, j], vocabulary), high, wide) for (i, j), (high, wide) in spans.items()]
    return _without_slivers(Table(grid.rows, grid.columns, tuple(cells), grid.box), grid, metrics)


def _crossed(row: Sequence[Line], grid: Grid, owner: dict[tuple[int, int], tuple[int, int]]) -> list[float]:
    """Inner column boundaries that part two cells in this row."""
    center = sum(line.box.center_y for line in row) / len(row)
    i = grid_index(grid.ys, center)
    return [grid.xs[j + 1] for j in range(grid.columns - 1) if owner[i, j] != owner[i, j + 1]]


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
