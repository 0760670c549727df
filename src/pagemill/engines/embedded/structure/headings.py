"""Headings: which groups are, and at what level."""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pagemill.domain import BlockKind
from pagemill.engines.embedded.structure.groups import Group
from pagemill.engines.embedded.structure.metrics import PROMINENT, PageMetrics, visual_rows
from pagemill.engines.embedded.structure.scripts import text_length

MAX_LEVEL = 6

_DECIMAL = re.compile(r"^(?:§\s*)?(\d{1,2}(?:\.\d{1,2}){0,4})\.?(?:\s+|(?=[^\W\d_]))(?=\S)")
_CHAPTER = re.compile(r"^第[0-9０-９一二三四五六七八九十百]+[章编編篇部]")
_SECTION = re.compile(r"^(?:第[0-9０-９一二三四五六七八九十百]+[节節条條]|[一二三四五六七八九十]{1,3}、)")
_SUBSECTION = re.compile(r"^[（(][一二三四五六七八九十]{1,3}[）)]")
_CAPTION = re.compile(
    r"^(?:fig(?:ure|\.)?|table|tab\.|tabelle|abb(?:ildung|\.)|tableau|figura|tabla|tabela|tabel|图|表|図|圖)\s*"
    r"(?:\d+(?:[.-]\d+)*|[IVX]+|[一二三四五六七八九十]+)[a-z]?"
    r"(?:\s*[.:：。—–|)]|\s+(?=(?-i:[^\Wa-z_]))|\s*$|(?=[\u3040-\u9fff]))",
    re.IGNORECASE,
)
# Three letters in a row, or two ideographs: less is a formula, an amount or a label.
_WORD = re.compile(r"[^\W\d_]{3}|[\u3040-\u9fff]{2}")
_LONG_WORD = re.compile(r"[^\W\d_]{4}|[\u3040-\u9fff]{2}")
_BULLET = re.compile(r"^[•●▪■◦∙○◆▸►‣❖✓·・–—-]\s")
_NO_HEADING_END = (".", ",", ";", "。", "，", "；", "、", "-")
_MAX_LENGTH = 160.0
_MAX_ROWS = 4


@dataclass(frozen=True, slots=True)
class _Candidate:
    index: int
    size: float
    depth: int | None
    exact: bool


def is_caption(text: str) -> bool:
    """Whether `text` starts as captions of figures and tables do: `Figure 3`, `Table 1`, `图2`."""
    return bool(_CAPTION.match(text.strip()))


def heading_levels(groups: Sequence[Group], metrics: PageMetrics, *, first_page: bool) -> dict[int, int]:
    """Finds headings and their levels.

    Levels follow the size of the type, largest first, and the depth of numbering where there is any: `1` is one
    level below the document's title, `1.1` one more; below a title on the same page, the shallowest comes next. Sizes
    that differ by less than what recognition can tell are one level.

    Args:
        groups: All groups of the body in reading order.
        metrics: Sizes of the page's running text.
        first_page: Whether the page may hold the document's title.

    Returns:
        Level from 1, by position in `groups`.
    """
    candidates = [
        _Candidate(
            index,
            _size(group, metrics),
            _depth(group.text.strip()),
            all(line.font_size > 0 for line in group.lines),
        )
        for index, group in enumerate(groups)
        if _is_heading(groups, index, metrics)
    ]
    if not candidates:
        return {}
    by_size = _size_levels(candidates, top=_top_level(candidates, first_page=first_page))
    return _with_numbering(candidates, by_size)


def _is_heading(groups: Sequence[Group], index: int, metrics: PageMetrics) -> bool:
    group = groups[index]
    text = group.text.strip()
    if group.kind not in {BlockKind.TITLE, BlockKind.TEXT} or not _could_be_heading(group, text):
        return False
    size = _size(group, metrics)
    exact = all(line.font_size > 0 for line in group.lines)
    if group.kind is BlockKind.TITLE:
        return not exact or size > 1.04 or _is_emphasised(group, metrics) or group.score > 0.7 or bool(_number(text))
    slogan = text.count(" ") < 3 and size > 1.3 and text.endswith(".")
    if (text.endswith(_NO_HEADING_END) and not slogan) or text.endswith((":", "：")):
        return False
    if size > (1.15 if exact else 1.35):
        return not _is_passage(group, text)
    small = size < (0.97 if exact else 0.8)
    if small:
        return False
    numbered = bool(_number(text)) and (size > 1.06 or (not exact and _is_lone_number(groups, index)))
    return (numbered or _is_emphasised(group, metrics)) and _leads_on(groups, index, metrics)


def _is_lone_number(groups: Sequence[Group], index: int) -> bool:
    """Whether a numbered line is no list item: short, capitalised, and its neighbours are not numbered."""
    text = groups[index].text.strip()
    number = _number(text)
    title = text[number.end() :] if number else text
    around = [groups[k].text.strip() for k in (index - 1, index + 1) if 0 <= k < len(groups)]
    single = len(visual_rows(groups[index].lines)) == 1
    counted = any(_number(other) and _depth(other) == _depth(text) for other in around)
    return single and not title[:1].islower() and text_length(title) < 60 and not counted


def _is_passage(group: Group, text: str) -> bool:
    """Whether large type is a passage set larger than the rest: several rows, or the middle of a sentence."""
    return len(visual_rows(group.lines)) > 2 or text[:1].islower()


def _could_be_heading(group: Group, text: str) -> bool:
    if is_caption(text) or text_length(text) > _MAX_LENGTH or len(visual_rows(group.lines)) > _MAX_ROWS:
        return False
    if "=" in text and len(_LONG_WORD.findall(text)) < 2:
        return False
    if _BULLET.match(text) or (text.endswith((".", "。")) and text_length(text) > 60):
        return False
    letters = sum(char.isalpha() for char in text)
    return bool(_WORD.search(text)) and letters >= 0.4 * len(text.replace(" ", ""))


def _size(group: Group, metrics: PageMetrics) -> float:
    return statistics.median(metrics.relative_size(line) for line in group.lines)


def _is_emphasised(group: Group, metrics: PageMetrics) -> bool:
    """Whether a group stands out by weight, or by slant, from a body that is mostly regular."""
    if metrics.bold_share < 0.5 and all(line.bold for line in group.lines):
        return True
    if metrics.italic_share < 0.2 and all(line.italic for line in group.lines) and len(group.lines) == 1:
        return True
    if all(line.font_size > 0 for line in group.lines):
        return False
    return statistics.median(metrics.prominence(line) for line in group.lines) > PROMINENT


def _leads_on(groups: Sequence[Group], index: int, metrics: PageMetrics) -> bool:
    """Whether running text follows below, and nothing stands right beside: a heading, not a label of a value."""
    group = groups[index]
    if len(visual_rows(group.lines)) > 2:
        return False
    em = metrics.em
    for other in groups:
        if other is group or other.box.overlap_y(group.box) < 0.5 * min(other.box.height, group.box.height):
            continue
        if other.box.height > 2.5 * metrics.line_height or _is_emphasised(other, metrics):
            continue
        if -em < other.box.left - group.box.right < 3 * em or -em < group.box.left - other.box.right < 1.5 * em:
            return False
    following = groups[index + 1] if index + 1 < len(groups) else None
    if following is None or following.box.top < group.box.top:
        return False
    near = following.box.top - group.box.bottom < 4 * metrics.line_height
    return near and following.box.overlap_x(group.box) > 0


def _number(text: str) -> re.Match[str] | None:
    return _DECIMAL.match(text) or _CHAPTER.match(text) or _SECTION.match(text) or _SUBSECTION.match(text)


def _depth(text: str) -> int | None:
    """Depth of numbering from 1; None where there is none."""
    if _CHAPTER.match(text) or _SECTION.match(text):
        return 1
    if _SUBSECTION.match(text):
        return 2
    match = _DECIMAL.match(text)
    return match.group(1).count(".") + 1 if match else None


def _top_level(candidates: Sequence[_Candidate], *, first_page: bool) -> int:
    largest = max(candidates, key=lambda item: (item.size, -item.index))
    opens = first_page and largest.depth is None and (largest.size >= 1.2 or largest.index == 0)
    return 1 if largest.size >= 1.5 or opens else 2


def _size_levels(candidates: Sequence[_Candidate], top: int) -> dict[int, int]:
    """Levels by clusters of sizes, the largest at `top`."""
    levels: dict[int, int] = {}
    level, reference = top - 1, float("inf")
    for item in sorted(candidates, key=lambda item: -item.size):
        if item.size < reference * (0.95 if item.exact else 0.87):
            level, reference = level + 1, item.size
        levels[item.index] = min(level, MAX_LEVEL)
    return levels


def _with_numbering(candidates: Sequence[_Candidate], by_size: Mapping[int, int]) -> dict[int, int]:
    """Corrects levels by numbering; headings without a number keep step with numbered ones of their size."""
    levels = dict(by_size)
    titled = any(item.depth is None and by_size[item.index] == 1 for item in candidates)
    shallowest = min((item.depth for item in candidates if item.depth is not None), default=1)
    base = shallowest - 1 if titled else 0
    moved: dict[int, int] = {}
    for item in candidates:
        if item.depth is not None:
            alone = by_size[item.index] == 1 and not titled
            levels[item.index] = min(MAX_LEVEL, item.depth - base + (0 if alone and item.depth == 1 else 1))
            moved.setdefault(by_size[item.index], levels[item.index])
    for item in candidates:
        if item.depth is None and by_size[item.index] != 1:
            levels[item.index] = moved.get(by_size[item.index], by_size[item.index])
    return levels
