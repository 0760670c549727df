"""From layout regions and lines to groups: which lines belong together."""

from __future__ import annotations

import itertools
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace

from pagemill.domain import BlockKind, BoundingBox
from pagemill.engines.embedded.elements import Line, Region, RegionKind
from pagemill.engines.embedded.structure.groups import Group, text_group
from pagemill.engines.embedded.structure.lists import is_bare_marker
from pagemill.engines.embedded.structure.metrics import PROMINENT, PageMetrics, em_of, visual_rows
from pagemill.engines.embedded.structure.scripts import text_length

_KINDS = {
    RegionKind.TEXT: BlockKind.TEXT,
    RegionKind.TITLE: BlockKind.TITLE,
    RegionKind.FIGURE_CAPTION: BlockKind.CAPTION,
    RegionKind.TABLE_CAPTION: BlockKind.CAPTION,
    RegionKind.HEADER: BlockKind.HEADER,
    RegionKind.FOOTER: BlockKind.FOOTER,
    RegionKind.REFERENCE: BlockKind.TEXT,
    RegionKind.EQUATION: BlockKind.EQUATION,
}
_MIN_SCORES = {RegionKind.TEXT: 0.4, RegionKind.TITLE: 0.45, RegionKind.REFERENCE: 0.4}
_MIN_SCORE = 0.5
# How far a value stands from its label at most, in em.
_PAIR_GAP = 8.0
# Regions of the same kind that share this much of the smaller one are proposals for the same thing.
_SAME = 0.6


def group_lines(lines: Sequence[Line], regions: Sequence[Region], metrics: PageMetrics) -> list[Group]:
    """Groups lines by the layout regions that hold them, and the others by closeness.

    Regions of running text that reach over a column gutter are given up: closeness groups their lines better.

    Args:
        lines: The lines that belong to no table and no figure.
        regions: The layout model's proposals, unfiltered.
        metrics: Sizes of the page's running text.

    Returns:
        Groups without order; every line is in exactly one.
    """
    kept = _deduplicated(regions)
    members: list[list[Line]] = [[] for _ in kept]
    free: list[Line] = []
    for line in lines:
        home = _home(line, kept)
        if home is None:
            free.append(line)
        else:
            members[home].append(line)
    groups: list[Group] = []
    for region, inside in zip(kept, members, strict=True):
        if not inside:
            continue
        if region.kind is RegionKind.TITLE and _crosses_gutter(inside, 1):
            groups.extend(replace(part, kind=BlockKind.TITLE, score=region.score) for part in _glue(inside, metrics))
        elif region.kind in {RegionKind.TEXT, RegionKind.REFERENCE} and _crosses_gutter(inside, 2):
            free.extend(inside)
        else:
            groups.append(text_group(tuple(inside), _KINDS[region.kind], region.score))
    groups.extend(_paired(_glue(free, metrics), metrics))
    groups = _adopt_markers(groups, metrics)
    return [part for group in groups for part in _parted_by_style(group, metrics)]


def _deduplicated(regions: Sequence[Region]) -> list[Region]:
    kept: list[Region] = []
    for region in sorted(regions, key=lambda item: -item.score):
        if region.kind not in _KINDS or region.score < _MIN_SCORES.get(region.kind, _MIN_SCORE):
            continue
        if all(
            region.box.intersection_area(other.box) < _SAME * min(region.box.area, other.box.area)
            for other in kept
            if other.kind is region.kind or _similar_area(other.box, region.box)
        ):
            kept.append(region)
    return kept


def _similar_area(a: BoundingBox, b: BoundingBox) -> bool:
    return 0.5 < a.area / max(1.0, b.area) < 2.0


def _home(line: Line, regions: Sequence[Region]) -> int | None:
    """The smallest region that holds most of the line."""
    holding = [k for k, region in enumerate(regions) if line.box.share_inside(region.box) > 0.5]
    return min(holding, key=lambda k: regions[k].box.area, default=None)


def _crosses_gutter(lines: Sequence[Line], least: int) -> bool:
    """Whether most rows consist of several long pieces: columns that were taken for one."""
    rows = visual_rows(lines)
    parted = [row for row in rows if sum(text_length(line.text) > 12 for line in row) > 1]
    return len(parted) >= least and len(parted) >= 0.4 * len(rows)


def _glue(lines: Sequence[Line], metrics: PageMetrics) -> list[Group]:
    """Groups lines that follow each other closely and look alike."""
    stacks: list[list[list[Line]]] = []
    open_stacks: list[list[list[Line]]] = []
    for row in _close_rows(lines, metrics):
        top = min(line.box.top for line in row)
        tallest = max(line.box.height for line in row)
        open_stacks = [stack for stack in open_stacks if top - _bottom(stack[-1]) < 1.6 * tallest]
        fitting = [stack for stack in open_stacks if _follows(stack[-1], row, metrics)]
        if fitting:
            max(fitting, key=lambda stack: _bottom(stack[-1])).append(row)
        else:
            stacks.append([row])
            open_stacks.append(stacks[-1])
    return [text_group(tuple(line for row in stack for line in row)) for stack in stacks]


def _bottom(row: Sequence[Line]) -> float:
    return max(line.box.bottom for line in row)


def _close_rows(lines: Sequence[Line], metrics: PageMetrics) -> list[list[Line]]:
    """Visual rows, parted where the gap is wider than what a label keeps from its value."""
    rows = []
    for row in visual_rows(lines):
        current = [row[0]]
        for line in row[1:]:
            before = current[-1]
            gap = line.box.left - before.box.right
            reach = 10.0 if before.text.rstrip().endswith((":", "：")) else 4.0 if is_bare_marker(before.text) else 0.6
            if gap <= reach * metrics.em:
                current.append(line)
            else:
                rows.append(current)
                current = [line]
        rows.append(current)
    return rows


def _follows(above: Sequence[Line], below: Sequence[Line], metrics: PageMetrics) -> bool:
    top, bottom = min(line.box.top for line in below), max(line.box.bottom for line in above)
    height_above = max(line.box.height for line in above)
    height_below = max(line.box.height for line in below)
    gap = top - bottom
    height = min(height_above, height_below)
    reach = max(0.75 * height, min(1.25 * metrics.line_gap, 1.6 * height))
    if not -0.6 * height_above < gap < reach:
        return False
    left = max(min(line.box.left for line in above), min(line.box.left for line in below))
    right = min(max(line.box.right for line in above), max(line.box.right for line in below))
    return right - left > 0 and _same_style(above, below, metrics)


def _same_style(above: Sequence[Line], below: Sequence[Line], metrics: PageMetrics) -> bool:
    first, second = _style_line(above), _style_line(below)
    a, b = metrics.relative_size(first), metrics.relative_size(second)
    tolerance = 0.08 if first.font_size > 0 and second.font_size > 0 else 0.3
    if abs(a - b) > tolerance * max(a, b):
        return False
    weights = metrics.prominence(first), metrics.prominence(second)
    if abs(weights[0] - weights[1]) > PROMINENT and max(weights) > PROMINENT:
        return False
    if first.from_text_layer and second.from_text_layer and first.monospace != second.monospace:
        return False
    return _all_bold(above) == _all_bold(below) and not _is_slanted_title(above, below)


def _style_line(row: Sequence[Line]) -> Line:
    return max(row, key=lambda line: len(line.text))


def _is_slanted_title(above: Sequence[Line], below: Sequence[Line]) -> bool:
    """Whether a short slanted row stands above upright text: a title, rather than a sentence set in italics."""
    slanted = all(line.italic for line in above) and not any(line.italic for line in below)
    widths = [max(line.box.right for line in row) - min(line.box.left for line in row) for row in (above, below)]
    return slanted and widths[0] < 0.7 * widths[1] and not above[-1].text.endswith((".", ",", ";", ":", "-"))


def _all_bold(row: Sequence[Line]) -> bool:
    return all(line.bold for line in row)


def _paired(groups: Sequence[Group], metrics: PageMetrics) -> list[Group]:
    """Joins a few labels with their values beside them, row by row."""
    by_top = sorted(groups, key=lambda group: group.box.top)
    tops = [group.box.top for group in by_top]
    gone: set[Group] = set()
    joined: list[Group] = []
    for labels in by_top:
        if labels in gone or not _are_labels(labels):
            continue
        start = bisect_left(tops, labels.box.top - 2 * metrics.line_height)
        end = bisect_right(tops, labels.box.bottom)
        values = [
            other
            for other in by_top[start:end]
            if other is not labels and other not in gone and _names(labels, other, metrics)
        ]
        nearest = min(values, key=lambda other: other.box.left, default=None)
        if nearest is not None:
            gone |= {labels, nearest}
            joined.append(text_group((*labels.lines, *nearest.lines)))
    return [group for group in groups if group not in gone] + joined


def _are_labels(group: Group) -> bool:
    return len(visual_rows(group.lines)) <= 4 and all(
        text_length(line.text) <= 24 and not any(char.isdigit() for char in line.text) for line in group.lines
    )


def _names(labels: Group, values: Group, metrics: PageMetrics) -> bool:
    """Whether each row of `values` stands right of one row of `labels`, and none is left over."""
    if not 0 < values.box.left - labels.box.right < _PAIR_GAP * metrics.em:
        return False
    left, right = visual_rows(labels.lines), visual_rows(values.lines)
    if len(left) != len(right) or any(text_length(line.text) > 40 for line in values.lines):
        return False
    return all(
        a[0].box.overlap_y(b[0].box) > 0.6 * min(a[0].box.height, b[0].box.height)
        for a, b in zip(left, right, strict=True)
    )


def _adopt_markers(groups: Sequence[Group], metrics: PageMetrics) -> list[Group]:
    """Moves list markers that stand alone into the group of the line they mark."""
    result = list(groups)
    for group in groups:
        if not all(is_bare_marker(line.text) for line in group.lines):
            continue
        targets = [_marked_group(marker, result, group) for marker in group.lines]
        if any(target is None for target in targets):
            continue
        for marker, target in zip(group.lines, targets, strict=True):
            k = next(k for k, other in enumerate(result) if any(line is target for line in other.lines))
            result[k] = result[k].with_lines((*result[k].lines, marker))
        result = [other for other in result if other is not group]
    return result


def _marked_group(marker: Line, groups: Sequence[Group], own: Group) -> Line | None:
    """The nearest line to the right of a marker, on its row and in another group."""
    em = em_of(marker)
    beside = [
        line
        for group in groups
        if group is not own and group.kind is not BlockKind.TABLE
        for line in group.lines
        if not is_bare_marker(line.text)
        and -0.5 * em < line.box.left - marker.box.right < 4 * em
        and line.box.top <= marker.box.center_y <= line.box.bottom
    ]
    return min(beside, key=lambda line: line.box.left, default=None)


def _parted_by_style(group: Group, metrics: PageMetrics) -> list[Group]:
    """Parts a group of running text where size or weight of the font changes from one row to the next."""
    if group.kind not in {BlockKind.TEXT, BlockKind.TITLE} or len(group.lines) < 2:
        return [group]
    rows = visual_rows(group.lines)
    parts: list[list[list[Line]]] = [[rows[0]]]
    for above, row in itertools.pairwise(rows):
        if _same_style(above, row, metrics) or not _part_matters(above, row, metrics):
            parts[-1].append(row)
        else:
            parts.append([row])
    if len(parts) == 1:
        return [group]
    kind = group.kind if group.kind is BlockKind.TEXT else BlockKind.TEXT
    largest = max(statistics.mean(map(metrics.relative_size, _flat(part))) for part in parts)
    result = []
    for part in parts:
        lines = tuple(_flat(part))
        leads = group.kind is BlockKind.TITLE and statistics.mean(map(metrics.relative_size, lines)) > 0.9 * largest
        result.append(text_group(lines, group.kind if leads else kind, group.score))
    return result


def _part_matters(above: Sequence[Line], row: Sequence[Line], metrics: PageMetrics) -> bool:
    """Whether a change of style parts paragraphs: not inside a sentence that merely begins or ends in bold."""
    first, second = _style_line(above), _style_line(row)
    sized = abs(metrics.relative_size(first) - metrics.relative_size(second)) > 0.12
    gap = min(line.box.top for line in row) - max(line.box.bottom for line in above)
    starts_new = not row[0].text[:1].islower()
    return (sized or gap > 0.3 * metrics.line_height or starts_new) and not above[-1].text.endswith(("-", ","))


def _flat(rows: Sequence[Sequence[Line]]) -> list[Line]:
    return [line for row in rows for line in row]
