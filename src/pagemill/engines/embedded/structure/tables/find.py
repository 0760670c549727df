"""All tables of a page: drawn ones, those the layout model proposes, and those only alignment tells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pagemill.domain import BoundingBox
from pagemill.engines.embedded.elements import Line, PageElements, Region, RegionKind
from pagemill.engines.embedded.structure.joining import Vocabulary
from pagemill.engines.embedded.structure.metrics import PageMetrics, box_of, visual_rows
from pagemill.engines.embedded.structure.scripts import text_length
from pagemill.engines.embedded.structure.tables.aligned import aligned_table
from pagemill.engines.embedded.structure.tables.cells import ruling_tolerance
from pagemill.engines.embedded.structure.tables.detect import find_aligned_tables
from pagemill.engines.embedded.structure.tables.model import Table, is_numeric
from pagemill.engines.embedded.structure.tables.refine import grid_index, refined
from pagemill.engines.embedded.structure.tables.ruled import ruled_table
from pagemill.engines.embedded.structure.tables.rulings import Grid, find_grids
from pagemill.engines.embedded.structure.tables.splitting import split_amounts

# Below this score the layout model's tables are more often something else.
_MIN_SCORE = 0.5


# A table over more than this share of the page wants a score of at least _SURE.
_MAX_SHARE, _SURE = 0.6, 0.85
# How far, in em, a column stands from the others at most.
_COLUMN_GAP = 12.0
# Equations of this score hold none either.
_SURE_EQUATION = 0.6
# Figures of this score hold no tables.
_SURE_FIGURE = 0.7
# Longer lines beside a table are text, not cells; in Latin letter widths.
_CELL_LENGTH = 25
# From this many characters on, a last row over all columns is no total but notes on the table.
_NOTE_LENGTH = 60


@dataclass(frozen=True, slots=True)
class FoundTable:
    """A table and the lines of the page that it took."""

    table: Table
    lines: tuple[Line, ...]


def find_tables(page: PageElements, metrics: PageMetrics, vocabulary: Vocabulary) -> list[FoundTable]:
    """Finds and builds all tables of a page; no line is in two of them."""
    free = [line for line in page.lines if line.text.strip() and not line.vertical]
    found: list[FoundTable] = []

    def take(lines: Sequence[Line], table: Table | None) -> None:
        if table is not None and _is_plausible(table):
            taken = {id(line) for line in lines}
            free[:] = [line for line in free if id(line) not in taken]
            found.append(FoundTable(table, tuple(lines)))

    for grid in find_grids(page.rulings, ruling_tolerance(metrics)):
        inside = _inside(free, grid.box)
        if not _is_drawing(grid, page) and _is_table_grid(grid, inside, metrics):
            core = _without_title_and_notes(grid, inside, metrics)
            inside = _inside(inside, core.box)
            take(inside, ruled_table(inside, core, metrics, vocabulary))
    for region in sorted(page.regions, key=lambda region: -region.score):
        if region.kind is RegionKind.TABLE and region.score >= _MIN_SCORE and not _is_whole_page(region, metrics):
            inside = _with_outer_cells(_inside(free, region.box), free, metrics)
            if _is_mostly_free(region, found) and len(inside) >= 4:
                box = box_of(inside)
                take(inside, aligned_table(inside, box, page.rulings, metrics, vocabulary))
    for lines in find_aligned_tables(_outside_equations(free, page), metrics):
        box = box_of(lines)
        table = aligned_table(lines, box, page.rulings, metrics, vocabulary)
        if table is not None and (not _is_in_figure(box, page) or _is_dense(table)):
            take(lines, table)
    return found


def _outside_equations(lines: Sequence[Line], page: PageElements) -> list[Line]:
    """Lines that are no parts of a displayed equation, which may be scattered like cells."""
    boxes = [r.box for r in page.regions if r.kind is RegionKind.EQUATION and r.score >= _SURE_EQUATION]
    return [line for line in lines if not any(line.box.share_inside(box) > 0.5 for box in boxes)]


def _is_in_figure(box: BoundingBox, page: PageElements) -> bool:
    """Whether the layout model is sure of a figure there; it is also sure of some tables without rulings."""
    return any(
        region.kind is RegionKind.FIGURE and region.score >= _SURE_FIGURE and box.share_inside(region.box) > 0.6
        for region in page.regions
    )


def _is_dense(table: Table) -> bool:
    """Whether nearly every place is filled and a column holds numbers: a table, not the labels of a chart."""
    filled = sum(bool(cell.text) for cell in table.cells)
    numbers = any(
        sum(is_numeric(row[column]) for row in table.matrix()) >= 0.6 * table.rows for column in range(table.columns)
    )
    return numbers and filled >= 0.8 * len(table.cells)


def _inside(lines: Sequence[Line], box: BoundingBox) -> list[Line]:
    def belongs(line: Line) -> bool:
        if line.box.area > 0:
            return line.box.share_inside(box) > 0.5
        return box.left <= line.box.center_x < box.right and box.top <= line.box.center_y < box.bottom

    return [line for line in lines if belongs(line)]


def _is_whole_page(region: Region, metrics: PageMetrics) -> bool:
    """Whether a region is so large that its score says little: letters and invoices taken for one table."""
    return region.box.area > _MAX_SHARE * metrics.width * metrics.height and region.score < _SURE


def _with_outer_cells(inside: Sequence[Line], free: Sequence[Line], metrics: PageMetrics) -> list[Line]:
    """Adds columns that the region of a table misses: short lines beside most of its rows."""
    if not inside:
        return []
    box = box_of(inside)
    result = list(inside)
    known = {id(line) for line in inside}
    beside = [
        line
        for line in free
        if id(line) not in known
        and text_length(line.text) < _CELL_LENGTH
        and any(line.box.overlap_y(other.box) > 0.5 * min(line.box.height, other.box.height) for other in inside)
    ]
    flush = [line for line in beside if _is_flush(line, inside, metrics)]
    result.extend(flush)
    known |= {id(line) for line in flush}
    beside = [line for line in beside if id(line) not in known]
    rows = len(visual_rows(inside))
    for side in (
        [line for line in beside if line.box.right <= box.left + metrics.em],
        [line for line in beside if line.box.left >= box.right - metrics.em],
    ):
        distance = min((max(box.left - line.box.right, line.box.left - box.right) for line in side), default=0.0)
        if len(side) >= 0.5 * rows and distance < _COLUMN_GAP * metrics.em:
            result.extend(side)
    return result


def _is_flush(line: Line, inside: Sequence[Line], metrics: PageMetrics) -> bool:
    """Whether a line shares its left or right edge with at least two others."""
    tolerance = 0.4 * metrics.em
    left = sum(abs(line.box.left - other.box.left) < tolerance for other in inside)
    right = sum(abs(line.box.right - other.box.right) < tolerance for other in inside)
    return max(left, right) >= 2


def _is_form(grid: Grid, metrics: PageMetrics) -> bool:
    """Whether most cells reach over several columns or rows, as the boxes of forms do."""
    spans = list(grid.spans(ruling_tolerance(metrics)).values())
    return sum(size != (1, 1) for size in spans) > 0.5 * len(spans)


def _is_mostly_free(region: Region, found: Sequence[FoundTable]) -> bool:
    return all(
        region.box.intersection_area(other.table.box) < 0.5 * min(region.box.area, other.table.box.area)
        for other in found
    )


def _is_drawing(grid: Grid, page: PageElements) -> bool:
    """Whether the layout model sees a figure where a grid is, and no table: boxes of a diagram."""

    def best(kind: RegionKind) -> float:
        scores = [r.score for r in page.regions if r.kind is kind and grid.box.share_inside(r.box) > 0.6]
        return max(scores, default=0.0)

    return best(RegionKind.FIGURE) > max(0.5, best(RegionKind.TABLE))


def _without_title_and_notes(grid: Grid, inside: Sequence[Line], metrics: PageMetrics) -> Grid:
    """Cuts off a first row that is only a title over all columns, and a last one that holds only notes."""
    while grid.rows > 2 and grid.spans(ruling_tolerance(metrics)).get((0, 0)) == (1, grid.columns):
        grid = replace(grid, ys=grid.ys[1:])
    last = _inside(inside, BoundingBox(grid.xs[0], grid.ys[-2], grid.xs[-1], grid.ys[-1]))
    whole = grid.spans(ruling_tolerance(metrics)).get((grid.rows - 1, 0)) == (1, grid.columns)
    if grid.rows > 2 and whole and sum(len(line.text) for line in last) >= _NOTE_LENGTH:
        grid = replace(grid, ys=grid.ys[:-1])
    return grid


def _is_table_grid(grid: Grid, inside: Sequence[Line], metrics: PageMetrics) -> bool:
    """Whether a grid is a table: at least two rows and columns of cells with text, none a page of prose."""
    if len(inside) < 2:
        return False
    grid = refined(grid, split_amounts(inside), metrics)
    if grid.rows < 2 or grid.columns < 2:
        return False
    filled: dict[tuple[int, int], list[Line]] = {}
    owner = grid.owners(ruling_tolerance(metrics))
    for line in inside:
        place = grid_index(grid.ys, line.box.center_y), grid_index(grid.xs, line.box.center_x)
        filled.setdefault(owner[place], []).append(line)
    if len({j for _, j in filled}) < 2 or len({i for i, _ in filled}) < 2:
        return False
    longest = max(len(visual_rows(lines)) for lines in filled.values())
    return longest <= 10 or (longest < 0.5 * len(visual_rows(inside)) and not _is_form(grid, metrics))


def _is_plausible(table: Table) -> bool:
    """At least two rows and two columns, with text in several cells."""
    filled = sum(bool(cell.text) for cell in table.cells)
    return table.rows >= 2 and table.columns >= 2 and filled >= 3
