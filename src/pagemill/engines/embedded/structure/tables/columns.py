"""Columns and rows of tables that are told by alignment instead of rulings."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pagemill.engines.embedded.elements import Line

# Width of the white corridor between two columns, in em.
_MIN_CORRIDOR = 0.45
# Rim that text detectors leave around a line, in line heights.
_RIM = 0.15


@dataclass(frozen=True, slots=True)
class Placed:
    """A piece of text with the columns it covers, the last included."""

    line: Line
    first: int
    last: int


def find_separators(rows: Sequence[Sequence[Line]], em: float) -> list[float]:
    """Finds the x positions in pixels of white corridors between columns.

    A corridor is an x range that lies between two cells in many rows and that hardly any line crosses; a few may
    (headings over several columns). Rows with a single line tell nothing and are left out.

    Args:
        rows: Visual rows, each from left to right.
        em: Width of an em in pixels.
    """
    multi = [row for row in rows if len(row) > 1]
    if not multi:
        return []
    left = min(line.box.left for row in multi for line in row)
    right = max(line.box.right for row in multi for line in row)
    if right - left < 1:
        return []
    telling = _telling(multi)
    covered, between = _profiles(telling, left, right)
    allowed = _allowed_crossings(len(telling))
    needed = max(1, round(0.25 * len(telling)))
    runs = _runs((covered <= allowed) & (between >= needed))
    separators = []
    for start, end in runs:
        corridor = _clearest(covered[start:end], _MIN_CORRIDOR * em)
        if corridor is not None:
            separators.append(left + start + sum(corridor) / 2)
    return _with_content_between(separators, multi)


def _telling(rows: Sequence[Sequence[Line]]) -> Sequence[Sequence[Line]]:
    """Rows that tell columns: without the totals under a table, whose few cells reach over several columns."""
    most = max(len(row) for row in rows)
    end = len(rows)
    while end > 0 and len(rows[end - 1]) <= 0.5 * most:
        end -= 1
    return rows[:end] if most >= 4 and end >= 3 else rows


def place(row: Sequence[Line], separators: Sequence[float], extents: Sequence[tuple[float, float]]) -> list[Placed]:
    """Tells which columns each line of a row covers.

    A line covers a further column when it reaches over most of the extent that this column's own cells have and
    nothing else in the row stands there.
    """
    placed = []
    edges = [float("-inf"), *separators, float("inf")]
    for line in row:
        shares = [
            max(0.0, min(line.box.right, edges[k + 1]) - max(line.box.left, edges[k])) for k in range(len(edges) - 1)
        ]
        home = int(np.argmax(shares)) if max(shares) > 0 else int(np.searchsorted(separators, line.box.center_x))
        first = last = home
        while first > 0 and _reaches(line, extents[first - 1], row):
            first -= 1
        while last < len(extents) - 1 and _reaches(line, extents[last + 1], row):
            last += 1
        placed.append(Placed(line, first, last))
    return placed


def column_extents(rows: Sequence[Sequence[Line]], separators: Sequence[float]) -> list[tuple[float, float]]:
    """Typical left and right edge in pixels of each column's cells, from lines that stay within one column."""
    edges = [float("-inf"), *separators, float("inf")]
    lefts: list[list[float]] = [[] for _ in range(len(edges) - 1)]
    rights: list[list[float]] = [[] for _ in range(len(edges) - 1)]
    for row in rows:
        for line in row:
            column = int(np.searchsorted(separators, line.box.center_x))
            if line.box.left >= edges[column] and line.box.right <= edges[column + 1]:
                lefts[column].append(line.box.left)
                rights[column].append(line.box.right)
    return [
        (statistics.median(a), statistics.median(b)) if a else (float("inf"), float("inf"))
        for a, b in zip(lefts, rights, strict=True)
    ]


def _reaches(line: Line, extent: tuple[float, float], row: Sequence[Line]) -> bool:
    low, high = extent
    if not high > low:
        return False
    if min(line.box.right, high) - max(line.box.left, low) < 0.6 * (high - low):
        return False
    return not any(other is not line and min(other.box.right, high) - max(other.box.left, low) > 0 for other in row)


def _profiles(
    rows: Sequence[Sequence[Line]], left: float, right: float
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """For each pixel column: how many lines cover it, and in how many rows it lies between two lines."""
    width = int(right - left) + 2
    covered = np.zeros(width + 1, np.int32)
    between = np.zeros(width + 1, np.int32)
    for row in rows:
        ends = [(line.box.left + _margin(line) - left, line.box.right - _margin(line) - left) for line in row]
        for start, end in ends:
            covered[int(start)] += 1
            covered[min(width, int(end) + 1)] -= 1
        for (_, end), (start, _) in itertools.pairwise(ends):
            if start > end:
                between[int(end)] += 1
                between[min(width, int(start) + 1)] -= 1
    return np.cumsum(covered)[:width].astype(np.int32), np.cumsum(between)[:width].astype(np.int32)


def _margin(line: Line) -> float:
    """How much wider a box is than its text on either side: detectors leave a rim, text layers do not."""
    return 0.0 if line.from_text_layer else min(_RIM * line.box.height, 0.2 * line.box.width)


def _allowed_crossings(rows: int) -> int:
    if rows < 4:
        return 0
    return max(1, round(0.12 * rows))


def _runs(mask: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate(([0], mask.astype(np.int8), [0]))))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _clearest(covered: npt.NDArray[np.int32], least: float) -> tuple[int, int] | None:
    """The part of a corridor that is crossed least among those at least as wide as `least`: start and end."""
    for level in np.unique(covered):
        start, end = max(_runs(covered <= level), key=lambda run: run[1] - run[0])
        if end - start >= least:
            return start, end
    return None


def _with_content_between(separators: list[float], rows: Sequence[Sequence[Line]]) -> list[float]:
    """Drops separators that have no column of their own to their left."""
    kept: list[float] = []
    for separator in separators:
        low = kept[-1] if kept else float("-inf")
        if any(low <= line.box.center_x < separator for row in rows for line in row):
            kept.append(separator)
    return kept
