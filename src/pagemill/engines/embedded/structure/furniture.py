"""Page furniture: running heads, page numbers, marginal stamps.

One page alone tells little: a group is taken for furniture only where something speaks for it besides its place (the
layout model, a page number, small type, a ruling), and only at the outer edge of everything else on the page.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from pagemill.domain import BlockKind
from pagemill.engines.embedded.elements import Rulings
from pagemill.engines.embedded.structure.groups import Group
from pagemill.engines.embedded.structure.metrics import PageMetrics, visual_rows
from pagemill.engines.embedded.structure.scripts import text_length

_PAGE_NUMBER = re.compile(
    r"^[-–—·|\[(\s]*(?:(?:page|seite|pagina|página|pág\.?|p\.|side|sida|s\.|blatt)\s*)?"
    r"(?:\d{1,4}|[ivxlc]{1,6})"
    r"(?:\s*(?:of|/|von|de|sur|di|van|av|af|\|)\s*\d{1,4})?[-–—·|\])\s]*$|"
    r"^第\s*\d{1,4}\s*[页頁ページ]+(?:\s*[/共，,]+\s*\d{1,4}\s*[页頁ページ]*)?$",
    re.IGNORECASE,
)
_HOLDS_PAGE_NUMBER = re.compile(
    r"^\d{1,4}\s+\D|\D\s+\d{1,4}$|\b(?:page|seite|página|pagina)\s*\d{1,4}\b|\d{1,3}\s*/\s*\d{1,3}$", re.IGNORECASE
)
_FOOTNOTE = re.compile(r"^(?:\d{1,3}|[*†‡§¹²³⁴-⁹])\s*[A-Z(]")
# How much of the page's height, at either end, furniture may stand in; place alone decides nothing.
_EDGE = 0.14
_MAX_LENGTH = 110.0


def mark_furniture(groups: Sequence[Group], rulings: Rulings, metrics: PageMetrics) -> list[Group]:
    """Turns furniture into groups of kind HEADER or FOOTER, and what is none of it back into text.

    Args:
        groups: All groups of the page, in any order.
        rulings: Drawn lines: one between a running head and the body speaks for it.
        metrics: Sizes of the page's running text.

    Returns:
        The same groups in the same order.
    """
    marked = [_marginal(group, groups, metrics) for group in groups]
    for kind in (BlockKind.HEADER, BlockKind.FOOTER):
        body: Group | None = None
        for index in _from_edge(marked, kind):
            group = marked[index]
            if body is not None and group.box.overlap_y(body.box) < 0.5 * min(group.box.height, body.box.height):
                break
            if group.kind is kind and _at_edge(group, kind, metrics) and not _is_large(group, metrics):
                continue
            if _is_furniture(group, marked, kind, rulings, metrics):
                marked[index] = replace(group, kind=kind)
            else:
                body = body or group
    return [replace(group, kind=BlockKind.TEXT) if _is_misplaced(group, marked, metrics) else group for group in marked]


def is_page_number(text: str) -> bool:
    """Whether `text` is a page number and nothing else."""
    return bool(_PAGE_NUMBER.match(text.strip()))


def _marginal(group: Group, groups: Sequence[Group], metrics: PageMetrics) -> Group:
    """Text that runs up or down beside the body is a stamp or a running head."""
    if not group.lines or not all(line.vertical for line in group.lines):
        return group
    body = [line for other in groups for line in other.lines if not line.vertical]
    if not body:
        return group
    inner = [line for line in body if line.box.left < group.box.right and line.box.right > group.box.left]
    outside = group.box.right < 0.12 * metrics.width or group.box.left > 0.88 * metrics.width
    return replace(group, kind=BlockKind.HEADER) if outside and not inner else group


def _from_edge(groups: Sequence[Group], kind: BlockKind) -> list[int]:
    """Groups from the page's edge inwards, marginal text left out."""
    upright = [k for k, group in enumerate(groups) if not (group.lines and all(line.vertical for line in group.lines))]
    if kind is BlockKind.HEADER:
        return sorted(upright, key=lambda k: groups[k].box.center_y)
    return sorted(upright, key=lambda k: -groups[k].box.center_y)


def _at_edge(group: Group, kind: BlockKind, metrics: PageMetrics) -> bool:
    if kind is BlockKind.HEADER:
        return group.box.bottom < _EDGE * metrics.height
    return group.box.top > (1 - _EDGE) * metrics.height


def _is_furniture(
    group: Group, groups: Sequence[Group], kind: BlockKind, rulings: Rulings, metrics: PageMetrics
) -> bool:
    if group.kind not in {BlockKind.TEXT, BlockKind.TITLE, BlockKind.CAPTION, BlockKind.HEADER, BlockKind.FOOTER}:
        return False
    if not group.lines or not _at_edge(group, kind, metrics) or len(visual_rows(group.lines)) > 2:
        return False
    text = group.text.strip()
    if is_page_number(text):
        return True
    if text_length(text) > _MAX_LENGTH or _FOOTNOTE.match(text) or _is_large(group, metrics):
        return False
    isolated = _distance_to_body(group, groups, kind) > 1.0 * metrics.line_height
    if group.kind in {BlockKind.HEADER, BlockKind.FOOTER}:
        return isolated
    if not isolated or text.endswith((".", "。")) or group.kind is BlockKind.TITLE:
        return False
    return (
        bool(_HOLDS_PAGE_NUMBER.search(text))
        or _is_small(group, metrics)
        or _is_ruled_off(group, rulings, kind, metrics)
    )


def _distance_to_body(group: Group, groups: Sequence[Group], kind: BlockKind) -> float:
    """Pixels to the next group inwards that is not furniture."""
    gaps = [
        other.box.top - group.box.bottom if kind is BlockKind.HEADER else group.box.top - other.box.bottom
        for other in groups
        if other is not group
        and other.kind is not kind
        and other.kind not in {BlockKind.HEADER, BlockKind.FOOTER}
        and other.box.overlap_y(group.box) < 0.5 * min(other.box.height, group.box.height)
    ]
    return min(gaps, default=float("inf"))


def _relative_size(group: Group, metrics: PageMetrics) -> tuple[float, bool]:
    sizes = sorted(metrics.relative_size(line) for line in group.lines)
    return sizes[len(sizes) // 2], all(line.font_size > 0 for line in group.lines)


def _is_large(group: Group, metrics: PageMetrics) -> bool:
    size, exact = _relative_size(group, metrics)
    return size > (1.12 if exact else 1.25)


def _is_small(group: Group, metrics: PageMetrics) -> bool:
    size, exact = _relative_size(group, metrics)
    return size < (0.93 if exact else 0.85)


def _is_ruled_off(group: Group, rulings: Rulings, kind: BlockKind, metrics: PageMetrics) -> bool:
    """Whether a long ruling lies between the group and the body, within two lines of the group."""
    reach = 2 * metrics.line_height
    for ruling in rulings.horizontal:
        gap = ruling.top - group.box.bottom if kind is BlockKind.HEADER else group.box.top - ruling.bottom
        if -0.2 * metrics.line_height < gap < reach and ruling.width > 0.35 * metrics.width:
            return True
    return False


def _is_misplaced(group: Group, groups: Sequence[Group], metrics: PageMetrics) -> bool:
    """Whether the layout model calls something furniture that stands in the body."""
    if group.kind not in {BlockKind.HEADER, BlockKind.FOOTER} or all(line.vertical for line in group.lines):
        return False
    if not _at_edge(group, group.kind, metrics):
        return True
    if _is_large(group, metrics) and not is_page_number(group.text):
        return True
    body = [other for other in groups if other.kind not in {BlockKind.HEADER, BlockKind.FOOTER}]
    if not body:
        return not is_page_number(group.text)
    beyond = (
        sum(other.box.bottom < group.box.top for other in body)
        if group.kind is BlockKind.HEADER
        else sum(other.box.top > group.box.bottom for other in body)
    )
    return beyond > 0 or len(visual_rows(group.lines)) > 4
