"""Grids of drawn lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from pagemill.domain import BoundingBox
from pagemill.engines.embedded.elements import Rulings

# A ruling counts as drawn between two cells when it covers this share of the edge they share.
_DRAWN_SHARE = 0.6


@dataclass(frozen=True, slots=True)
class Grid:
    """A connected mesh of rulings.

    Attributes:
        xs: Positions of column boundaries in pixels, ascending, the outer edges included.
        ys: Positions of row boundaries, likewise.
        horizontal: The rulings it is made of, as thin boxes.
        vertical: Likewise.
    """

    xs: tuple[float, ...]
    ys: tuple[float, ...]
    horizontal: tuple[BoundingBox, ...]
    vertical: tuple[BoundingBox, ...]

    @property
    def box(self) -> BoundingBox:
        """From the first to the last boundary."""
        return BoundingBox(self.xs[0], self.ys[0], self.xs[-1], self.ys[-1])

    @property
    def rows(self) -> int:
        """Number of row bands."""
        return len(self.ys) - 1

    @property
    def columns(self) -> int:
        """Number of columns."""
        return len(self.xs) - 1

    def spans(self, tolerance: float) -> dict[tuple[int, int], tuple[int, int]]:
        """Cells by their first row and column, with how many rows and columns they cover.

        Neighbours without a drawn ruling between them are one cell; every place belongs to exactly one cell.
        """
        below, beside = self._drawn(tolerance)
        taken: set[tuple[int, int]] = set()
        cells: dict[tuple[int, int], tuple[int, int]] = {}
        for i in range(self.rows):
            for j in range(self.columns):
                if (i, j) in taken:
                    continue
                width = 1
                while j + width < self.columns and not beside[i][j + width - 1] and (i, j + width) not in taken:
                    width += 1
                height = 1
                while i + height < self.rows and _open_below(below, beside, i + height - 1, j, width):
                    height += 1
                places = {(i + a, j + b) for a in range(height) for b in range(width)}
                taken |= places
                cells[i, j] = (height, width)
        return cells

    def owners(self, tolerance: float) -> dict[tuple[int, int], tuple[int, int]]:
        """For every place of the grid, the first row and column of the cell that covers it."""
        return {
            (i + a, j + b): (i, j)
            for (i, j), (high, wide) in self.spans(tolerance).items()
            for a in range(high)
            for b in range(wide)
        }

    def _drawn(self, tolerance: float) -> tuple[list[list[bool]], list[list[bool]]]:
        """For every place, whether a ruling is drawn below it, and one to its right."""
        below, beside = [], []
        for y in self.ys[1:]:
            extents = [(h.left, h.right) for h in self.horizontal if abs(h.center_y - y) <= tolerance]
            below.append([_covered(extents, a, b) >= _DRAWN_SHARE for a, b in pairwise(self.xs)])
        for x in self.xs[1:]:
            extents = [(v.top, v.bottom) for v in self.vertical if abs(v.center_x - x) <= tolerance]
            beside.append([_covered(extents, a, b) >= _DRAWN_SHARE for a, b in pairwise(self.ys)])
        return below, [list(column) for column in zip(*beside, strict=True)]


def find_grids(rulings: Rulings, tolerance: float) -> list[Grid]:
    """Finds meshes of rulings with at least two rows or two columns.

    Args:
        rulings: All rulings of the page.
        tolerance: Distance in pixels within which ends and positions are taken for the same.

    Returns:
        Grids from top to bottom. Rulings that touch no other are in none.
    """
    grids = []
    for horizontal, vertical in _components(rulings, tolerance):
        xs = _positions([v.center_x for v in vertical], tolerance)
        ys = _positions([h.center_y for h in horizontal], tolerance)
        if horizontal:
            xs = _with_edges(xs, min(h.left for h in horizontal), max(h.right for h in horizontal), 3 * tolerance)
        if vertical:
            ys = _with_edges(ys, min(v.top for v in vertical), max(v.bottom for v in vertical), 3 * tolerance)
        if len(xs) >= 2 and len(ys) >= 2 and (len(xs) - 1) * (len(ys) - 1) >= 2:
            grids.append(Grid(tuple(xs), tuple(ys), tuple(horizontal), tuple(vertical)))
    return sorted(grids, key=lambda grid: (grid.box.top, grid.box.left))


def _open_below(below: list[list[bool]], beside: list[list[bool]], i: int, j: int, width: int) -> bool:
    """Whether the next row continues the cell: nothing drawn below, and nothing that parts the row underneath."""
    if any(below[i][j + k] for k in range(width)):
        return False
    return not any(beside[i + 1][j + k] for k in range(width - 1))


def _components(rulings: Rulings, tolerance: float) -> list[tuple[list[BoundingBox], list[BoundingBox]]]:
    """Groups rulings that cross or touch, each group with at least one of either direction."""
    horizontal, vertical = rulings.horizontal, rulings.vertical
    parent = list(range(len(horizontal) + len(vertical)))

    def root(item: int) -> int:
        while parent[item] != item:
            parent[item] = parent[parent[item]]
            item = parent[item]
        return item

    for a, h in enumerate(horizontal):
        for b, v in enumerate(vertical):
            touches_x = h.left - tolerance <= v.center_x <= h.right + tolerance
            if touches_x and v.top - tolerance <= h.center_y <= v.bottom + tolerance:
                parent[root(a)] = root(len(horizontal) + b)
    groups: dict[int, tuple[list[BoundingBox], list[BoundingBox]]] = {}
    for a, h in enumerate(horizontal):
        groups.setdefault(root(a), ([], []))[0].append(h)
    for b, v in enumerate(vertical):
        groups.setdefault(root(len(horizontal) + b), ([], []))[1].append(v)
    return [group for group in groups.values() if group[0] and group[1]]


def _positions(values: Sequence[float], tolerance: float) -> list[float]:
    """Means of clusters of nearly equal values, ascending."""
    clusters: list[list[float]] = []
    for value in sorted(values):
        if clusters and value - clusters[-1][-1] <= tolerance:
            clusters[-1].append(value)
        else:
            clusters.append([value])
    return [sum(cluster) / len(cluster) for cluster in clusters]


def _with_edges(positions: list[float], low: float, high: float, reach: float) -> list[float]:
    """Adds the outer edges of an open-sided grid, where rulings reach well beyond the last crossing ruling."""
    edges = list(positions)
    if not edges or edges[0] - low > reach:
        edges.insert(0, low)
    if high - edges[-1] > reach:
        edges.append(high)
    return edges


def _covered(extents: Sequence[tuple[float, float]], low: float, high: float) -> float:
    """Share of the interval from `low` to `high` that `extents` cover."""
    if high <= low:
        return 1.0
    total, reached = 0.0, low
    for first, last in sorted(extents):
        start, end = max(first, reached), min(last, high)
        if end > start:
            total += end - start
            reached = end
    return total / (high - low)
