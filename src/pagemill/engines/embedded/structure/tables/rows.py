"""Rows of a table: which visual rows belong to one row of cells that hold several lines."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from pagemill.engines.embedded.structure.scripts import starts_like_continuation
from pagemill.engines.embedded.structure.tables.columns import Placed
from pagemill.engines.embedded.structure.tables.model import is_numeric


@dataclass(frozen=True, slots=True)
class VisualRow:
    """Pieces of text that stand side by side."""

    pieces: tuple[Placed, ...]

    @property
    def top(self) -> float:
        """Upper edge in pixels."""
        return min(piece.line.box.top for piece in self.pieces)

    @property
    def bottom(self) -> float:
        """Lower edge in pixels."""
        return max(piece.line.box.bottom for piece in self.pieces)

    @property
    def center(self) -> float:
        """Median of the pieces' middles in pixels."""
        return statistics.median(piece.line.box.center_y for piece in self.pieces)

    @property
    def filled(self) -> frozenset[int]:
        """Columns that hold something."""
        return frozenset(k for piece in self.pieces for k in range(piece.first, piece.last + 1))

    @property
    def numeric(self) -> bool:
        """Whether any piece is a number."""
        return any(is_numeric(piece.line.text) for piece in self.pieces)


def group_rows(
    rows: Sequence[VisualRow], columns: int, bands: Sequence[float], line_height: float
) -> list[list[VisualRow]]:
    """Groups visual rows into rows of the table.

    Args:
        rows: Visual rows from top to bottom.
        columns: Number of columns.
        bands: y positions in pixels of rulings across the table; rows on different sides are never one.
        line_height: Height of a line of running text in pixels.
    """
    pitch = _pitch(rows, columns)
    return [group for band in _by_band(rows, bands) for group in _group_band(band, columns, line_height, pitch)]


def _by_band(rows: Sequence[VisualRow], bands: Sequence[float]) -> list[list[VisualRow]]:
    parts: dict[int, list[VisualRow]] = {}
    for row in rows:
        parts.setdefault(sum(edge < row.center for edge in bands), []).append(row)
    return [parts[key] for key in sorted(parts)]


def _group_band(rows: Sequence[VisualRow], columns: int, line_height: float, pitch: float) -> list[list[VisualRow]]:
    if len(rows) > 1 and _is_one_row(rows):
        return [list(rows)]
    groups: list[list[VisualRow]] = []
    for row in rows:
        if groups and _continues(groups[-1], row, columns, line_height, pitch):
            groups[-1].append(row)
        else:
            groups.append([row])
    return groups


def _is_one_row(rows: Sequence[VisualRow]) -> bool:
    """Whether the visual rows between two rulings are one row: some column, and not only one of many, has one line."""
    counts: dict[int, int] = {}
    for row in rows:
        for column in row.filled:
            counts[column] = counts.get(column, 0) + 1
    single = sum(count == 1 for count in counts.values())
    return len(counts) > 1 and len(rows) <= 6 and single >= 0.5 * len(counts) and single < len(counts)


def _continues(group: Sequence[VisualRow], row: VisualRow, columns: int, line_height: float, pitch: float) -> bool:
    last = group[-1]
    gap = row.top - last.bottom
    filled = frozenset(k for item in group for k in item.filled)
    # Boxes of dense rows overlap a little; what is centred beside several lines stands between their middles.
    if row.center - last.center < 0.6 * line_height and gap < 0:
        return True
    if gap > 1.0 * line_height or not row.filled or len(row.filled) >= columns:
        return False
    if row.numeric or not row.filled <= filled:
        return False
    tight = pitch > 0 and row.center - last.center < 0.8 * pitch
    continued = all(_continues_text(group, piece) for piece in row.pieces)
    if 0 in row.filled:
        return continued if len(row.filled) > 1 or not tight else True
    return continued or tight or len(row.filled) == 1


def _continues_text(group: Sequence[VisualRow], piece: Placed) -> bool:
    above = [
        other.line.text
        for item in group
        for other in item.pieces
        if other.first <= piece.last and piece.first <= other.last
    ]
    return starts_like_continuation(piece.line.text) or bool(above and above[-1].endswith(("-", ",", "/", "&")))


def _pitch(rows: Sequence[VisualRow], columns: int) -> float:
    """Median distance in pixels between rows that fill (nearly) every column; 0 where there are too few."""
    full = [row.center for row in rows if len(row.filled) >= max(2, columns - 1) or 0 in row.filled]
    steps = [b - a for a, b in itertools.pairwise(full) if b > a]
    return statistics.median(steps) if len(steps) >= 2 else 0.0
