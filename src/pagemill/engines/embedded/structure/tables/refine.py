"""Refining grids: columns and rows inside ruled cells that only alignment tells."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import pairwise

from pagemill.domain import BoundingBox
from pagemill.engines.embedded.elements import Line
from pagemill.engines.embedded.structure.metrics import PageMetrics, visual_rows
from pagemill.engines.embedded.structure.tables.cells import ruling_tolerance
from pagemill.engines.embedded.structure.tables.columns import Placed, find_separators
from pagemill.engines.embedded.structure.tables.model import is_numeric
from pagemill.engines.embedded.structure.tables.rows import VisualRow, group_rows
from pagemill.engines.embedded.structure.tables.rulings import Grid
from pagemill.engines.embedded.structure.tables.splitting import split_numbers

_Spans = Mapping[tuple[int, int], tuple[int, int]]


def refined(grid: Grid, lines: Sequence[Line], metrics: PageMetrics) -> Grid:
    """Adds boundaries that are not drawn but that the lines inside the grid show.

    Args:
        grid: A grid of rulings.
        lines: The lines inside it.
        metrics: Sizes of the page's running text.
    """
    return _with_inner_rows(_with_inner_columns(grid, lines, metrics), lines, metrics)


def grid_index(edges: Sequence[float], value: float) -> int:
    """Index of the interval between neighbouring `edges` that holds `value`; the outermost one beyond the ends."""
    return min(max(bisect_right(edges, value) - 1, 0), len(edges) - 2)


def _with_inner_columns(grid: Grid, lines: Sequence[Line], metrics: PageMetrics) -> Grid:
    new_xs: list[float] = []
    new_ys: list[float] = []
    vertical: list[BoundingBox] = []
    horizontal: list[BoundingBox] = []
    for left, right in pairwise(grid.xs):
        inside = [line for line in lines if left <= line.box.center_x < right and line.box.width < right - left]
        rows = visual_rows(inside)
        if not _has_columns(rows, metrics):
            continue
        for x in find_separators(rows, metrics.em):
            new_xs.append(x)
            for top, bottom in pairwise(grid.ys):
                for start, end, crossed in _stretches(rows, x, top, bottom, metrics):
                    if not crossed:
                        vertical.append(BoundingBox(x, start, x, end))
                    if end < bottom:
                        new_ys.append(end)
                        horizontal.append(BoundingBox(left, end, right, end))
    if not new_xs:
        return grid
    ys = list(grid.ys)
    for y in sorted(new_ys):
        if all(abs(y - other) > ruling_tolerance(metrics) for other in ys):
            ys.append(y)
    return Grid(
        tuple(sorted([*grid.xs, *new_xs])),
        tuple(sorted(ys)),
        (*grid.horizontal, *horizontal),
        (*grid.vertical, *vertical),
    )


def _stretches(
    rows: Sequence[Sequence[Line]], x: float, top: float, bottom: float, metrics: PageMetrics
) -> list[tuple[float, float, bool]]:
    """Parts a band into stretches in which `x` is crossed by text, or is not: start, end, and which."""
    stretches: list[tuple[float, float, bool]] = []
    last_bottom = top
    for row in rows:
        center = sum(line.box.center_y for line in row) / len(row)
        if not top <= center < bottom:
            continue
        crossed = any(
            line.box.left + metrics.em < x < line.box.right - metrics.em for line in split_numbers(row, [x], metrics.em)
        )
        if stretches and stretches[-1][2] != crossed:
            middle = (last_bottom + min(line.box.top for line in row)) / 2
            stretches[-1] = (stretches[-1][0], middle, stretches[-1][2])
            stretches.append((middle, bottom, crossed))
        elif not stretches:
            stretches.append((top, bottom, crossed))
        last_bottom = max(line.box.bottom for line in row)
    return stretches or [(top, bottom, False)]


def _has_columns(rows: Sequence[Sequence[Line]], metrics: PageMetrics) -> bool:
    """Whether lines stand side by side in most rows."""
    parted = [row for row in rows if any(b.box.left - a.box.right > 0.4 * metrics.em for a, b in pairwise(row))]
    return len(parted) >= 3 and len(parted) >= 0.5 * len(rows)


def _with_inner_rows(grid: Grid, lines: Sequence[Line], metrics: PageMetrics) -> Grid:
    spans = grid.spans(ruling_tolerance(metrics))
    new_ys: list[float] = []
    rulings: list[BoundingBox] = []
    for i in range(grid.rows):
        cells = {j: wide for (row, j), (high, wide) in spans.items() if row == i and high == 1}
        rows = _rows_of_band(grid, i, cells, lines, metrics)
        if len(rows) < 2 or not _holds_several_rows(rows, grid):
            continue
        groups = group_rows(rows, grid.columns, (), metrics.line_height)
        for above, below in pairwise(groups):
            y = (max(row.bottom for row in above) + min(row.top for row in below)) / 2
            if not grid.ys[i] < y < grid.ys[i + 1]:
                continue
            new_ys.append(y)
            rulings += [BoundingBox(grid.xs[j], y, grid.xs[j + wide], y) for j, wide in cells.items()]
    if not new_ys:
        return grid
    return Grid(grid.xs, tuple(sorted([*grid.ys, *new_ys])), (*grid.horizontal, *rulings), grid.vertical)


def _rows_of_band(
    grid: Grid, i: int, cells: Mapping[int, int], lines: Sequence[Line], metrics: PageMetrics
) -> list[VisualRow]:
    """Visual rows of the cells that lie within one band."""
    home = {j + k: j for j, wide in cells.items() for k in range(wide)}
    inside = [
        line
        for line in lines
        if grid.ys[i] <= line.box.center_y < grid.ys[i + 1] and grid_index(grid.xs, line.box.center_x) in home
    ]
    rows = []
    for row in visual_rows(inside):
        pieces = split_numbers(row, grid.xs[1:-1], metrics.em)
        places = [(line, home.get(grid_index(grid.xs, line.box.center_x), 0)) for line in pieces]
        rows.append(VisualRow(tuple(Placed(line, j, j + cells.get(j, 1) - 1) for line, j in places)))
    return rows


def _holds_several_rows(rows: Sequence[VisualRow], grid: Grid) -> bool:
    """Whether most cells of a band have equally many lines, and these are no wrapped words.

    Numbers below each other say so; in a grid with hardly any rulings across, so do many lines.
    """
    columns: dict[int, list[str]] = {}
    for row in rows:
        for piece in row.pieces:
            columns.setdefault(piece.first, []).append(piece.line.text)
    most = max(len(texts) for texts in columns.values())
    full = [texts for texts in columns.values() if len(texts) >= 0.8 * most]
    if len(columns) < 2 or most < 2:
        return False
    numbers = any(sum(map(is_numeric, texts)) >= 0.8 * len(texts) and len(texts) >= 2 for texts in columns.values())
    few_bands = grid.rows <= 3
    if few_bands and most >= 3 and (numbers or len(full) >= 2):
        return True
    return numbers and len(full) >= max(2, 0.6 * len(columns)) and most > 2
