"""Reading order: a recursive cut along white space.

After the XY-cut of Nagy and Seth (1984), with two additions: sections that share a column gutter are read column by
column although white space crosses them, and rows of labels and values are read row by row although a gutter
separates them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pagemill.domain import BlockKind
from pagemill.engines.embedded.structure.groups import Group
from pagemill.engines.embedded.structure.metrics import PageMetrics, visual_rows

_MAX_DEPTH = 12


@dataclass(frozen=True, slots=True)
class _Gutter:
    left: float
    right: float


def reading_order(groups: Sequence[Group], metrics: PageMetrics, *, right_to_left: bool = False) -> list[Group]:
    """Sorts groups into reading order.

    Args:
        groups: All groups of the page's body.
        metrics: Sizes of the page's running text.
        right_to_left: Whether columns follow each other from right to left.
    """
    rows = {group: len(visual_rows(group.lines)) for group in groups}
    return _Cutter(metrics, right_to_left, rows).order(list(groups), 0)


@dataclass(frozen=True, slots=True)
class _Cutter:
    metrics: PageMetrics
    right_to_left: bool
    rows: Mapping[Group, int]

    def order(self, groups: list[Group], depth: int) -> list[Group]:
        if len(groups) < 2 or depth > _MAX_DEPTH:
            return self._by_rows(groups)
        sections = self._sections(groups)
        if len(sections) == 1:
            return self._columns(groups, depth)
        ordered: list[Group] = []
        for run in self._runs(sections):
            members = [group for section in run for group in section]
            if len(run) > 1:
                ordered.extend(self._columns(members, depth))
            else:
                ordered.extend(self.order(members, depth + 1))
        return ordered

    def _by_rows(self, groups: Sequence[Group]) -> list[Group]:
        step = max(1.0, 0.5 * self.metrics.line_height)
        side = -1.0 if self.right_to_left else 1.0
        return sorted(groups, key=lambda g: (round(g.box.top / step), side * g.box.left))

    def _sections(self, groups: Sequence[Group]) -> list[list[Group]]:
        """Parts the page at horizontal white space; boxes may overlap by a third of a line."""
        slack = 0.3 * self.metrics.line_height
        sections: list[list[Group]] = []
        reached = float("-inf")
        for group in sorted(groups, key=lambda g: (g.box.top, g.box.left)):
            trim = min(slack, 0.25 * group.box.height)
            if sections and group.box.top + trim < reached:
                sections[-1].append(group)
            else:
                sections.append([group])
            reached = max(reached, group.box.bottom - trim)
        return sections

    def _gutters(self, groups: Sequence[Group]) -> list[_Gutter]:
        """White vertical strips that part the groups.

        Pictures may reach a little over a gutter, as their boxes are often wider than what one sees; pictures and
        captions may be set into two columns whose text runs on beside them.
        """
        least = 0.4 * self.metrics.em
        texts = [group for group in groups if not _floats(group)] or list(groups)
        gutters = []
        reached = float("-inf")
        for group in sorted(texts, key=lambda g: g.box.left):
            if reached > float("-inf") and group.box.left - reached >= least:
                gutters.append(_Gutter(reached, group.box.left))
            reached = max(reached, group.box.right)
        floats = [group for group in groups if _floats(group)]
        return [
            gutter
            for gutter in gutters
            if not any(_lies_across(group, gutter) and not _is_inset(group, texts) for group in floats)
        ]

    def _runs(self, sections: list[list[Group]]) -> list[list[list[Group]]]:
        """Joins consecutive sections that are parts of the same columns."""
        runs: list[list[list[Group]]] = []
        start = 0
        while start < len(sections):
            end = self._reach(sections, start)
            runs.append(sections[start:end])
            start = end
        return runs

    def _reach(self, sections: list[list[Group]], start: int) -> int:
        """Index after the last section that shares columns with the section at `start`."""
        best = start + 1
        members = list(sections[start])
        for end in range(start + 1, len(sections)):
            members.extend(sections[end])
            gutters = self._gutters(members)
            if not gutters:
                break
            if self._are_columns(sections[start : end + 1], gutters) and self._belongs(sections[end], members, gutters):
                best = end + 1
        return best

    def _are_columns(self, sections: Sequence[Sequence[Group]], gutters: Sequence[_Gutter]) -> bool:
        """Whether some gutter parts columns of running text rather than labels from values."""
        for gutter in gutters:
            first = sections[0]
            sides = [
                [g for section in sections for g in section if _is_left_of(g, gutter)],
                [g for section in sections for g in section if not _is_left_of(g, gutter)],
            ]
            starts_both = any(g in sides[0] for g in first) and any(g in sides[1] for g in first)
            fills = all(self._belongs_alone(first, side) for side in sides if any(g in side for g in first))
            if (starts_both or fills) and all(self._has_body(side) for side in sides) and self._overlap(sides):
                return True
        return False

    def _overlap(self, sides: Sequence[Sequence[Group]]) -> bool:
        """Whether the sides stand next to each other rather than one below the other."""
        tops = [min(g.box.top for g in side) for side in sides]
        bottoms = [max(g.box.bottom for g in side) for side in sides]
        shared = min(bottoms) - max(tops)
        return shared > 0.4 * min(bottoms[k] - tops[k] for k in (0, 1))

    def _belongs_alone(self, first: Sequence[Group], side: Sequence[Group]) -> bool:
        width = max(g.box.right for g in side) - min(g.box.left for g in side)
        mine = [g for g in first if g in side]
        return any(g.box.width > 0.6 * width for g in mine)

    def _has_body(self, side: Sequence[Group]) -> bool:
        lines = [line for group in side for line in group.lines]
        rows = [self.rows[group] for group in side]
        tall = max(rows) >= 3 or sum(rows) >= 8
        pictures = any(not group.lines or group.table for group in side)
        letters = sorted(len(line.text) for line in lines)
        return pictures or (tall and bool(letters) and letters[len(letters) // 2] >= 8)

    def _belongs(self, section: Sequence[Group], members: Sequence[Group], gutters: Sequence[_Gutter]) -> bool:
        """Whether the last section of a run has text on both sides, or fills one of the columns."""
        for gutter in gutters:
            left = [g for g in section if _is_left_of(g, gutter)]
            right = [g for g in section if not _is_left_of(g, gutter)]
            if left and right:
                return True
            column = [g for g in members if (_is_left_of(g, gutter)) == bool(left)]
            if self._belongs_alone(section, column):
                return True
        return False

    def _columns(self, groups: list[Group], depth: int) -> list[Group]:
        """Orders groups column by column; falls back to rows where no gutter parts them."""
        gutters = self._gutters(groups)
        if not gutters:
            return self._around_crossing(groups, depth)
        columns: list[list[Group]] = [[] for _ in range(len(gutters) + 1)]
        for group in groups:
            columns[sum(not _is_left_of(group, gutter) for gutter in gutters)].append(group)
        if self.right_to_left:
            columns.reverse()
        return [group for column in columns for group in self.order(column, depth + 1)]

    def _around_crossing(self, groups: list[Group], depth: int) -> list[Group]:
        """Takes out the groups that lie across the best gutter and reads the columns above and below them."""
        cut = self._best_cut(groups)
        if cut is None:
            return self._by_rows(groups)
        left, right, across = cut
        sides = [right, left] if self.right_to_left else [left, right]
        ordered: list[Group] = []
        rest = [list(side) for side in sides]
        for spanning in sorted(across, key=lambda g: g.box.top):
            for k, side in enumerate(rest):
                above = [g for g in side if g.box.center_y < spanning.box.top]
                rest[k] = [g for g in side if g not in above]
                ordered.extend(self.order(above, depth + 1))
            ordered.append(spanning)
        for side in rest:
            ordered.extend(self.order(side, depth + 1))
        return ordered

    def _best_cut(self, groups: Sequence[Group]) -> tuple[list[Group], list[Group], list[Group]] | None:
        """The x position that parts the most text with the least lying across: groups left, right, and across."""
        slack = 0.3 * self.metrics.em
        lefts = np.array([group.box.left for group in groups])
        rights = np.array([group.box.right for group in groups])
        heights = np.array([group.box.height for group in groups])
        best, position = 2 * self.metrics.line_height, None
        for x in np.unique(np.round(rights)):
            on_left = rights <= x + slack
            on_right = (lefts >= x - slack) & ~on_left
            across = ~on_left & ~on_right
            if not across.any():
                continue
            worth = min(heights[on_left].sum(), heights[on_right].sum()) - heights[across].sum()
            if worth > best:
                best, position = worth, x
        if position is None:
            return None
        left = [group for group in groups if group.box.right <= position + slack]
        right = [group for group in groups if group.box.right > position + slack and group.box.left >= position - slack]
        across_it = [g for g in groups if g.box.right > position + slack and g.box.left < position - slack]
        return left, right, across_it


def _is_left_of(group: Group, gutter: _Gutter) -> bool:
    return group.box.center_x < (gutter.left + gutter.right) / 2


def _floats(group: Group) -> bool:
    return group.has_picture or group.kind is BlockKind.CAPTION


def _lies_across(picture: Group, gutter: _Gutter) -> bool:
    """Whether a good part of a picture stands on either side of a gutter."""
    box = picture.box
    return min(gutter.left - box.left, box.right - gutter.right) > 0.25 * box.width


def _is_inset(picture: Group, texts: Sequence[Group]) -> bool:
    """Whether text runs along most of a picture on both of its sides."""
    beside = [0.0, 0.0]
    for text in texts:
        shared = text.box.overlap_y(picture.box)
        if text.box.center_x < picture.box.left:
            beside[0] += shared
        elif text.box.center_x > picture.box.right:
            beside[1] += shared
    return min(beside) > 0.6 * picture.box.height
