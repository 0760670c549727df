"""Sizes that everything on a page is measured against."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from pagemill.domain import BoundingBox
from pagemill.engines.embedded.elements import Line, PageElements
from pagemill.engines.embedded.structure.scripts import unspaced_share

# Height of a tight box around a line of text in units of its font size, roughly: ascender to descender.
_HEIGHT_TO_FONT_SIZE = 0.8


# Lines of at least this many words are running text rather than cells or labels.
_PROSE_WORDS = 5
# A size is running text where it sets this share of what the most common size sets.
_BODY_SHARE = 0.4

# A line is full from this share of the page's widest lines on; so many gaps below full lines tell the spacing.
_FULL_SHARE, _MIN_GAPS = 0.7, 4
# Prominence of headings: running text stays below 0.2, bold headings a tenth larger than it reach 0.3.
PROMINENT = 0.27


@dataclass(frozen=True, slots=True)
class PageMetrics:
    """Typical sizes of a page's running text.

    Attributes:
        width: Width of the page in pixels.
        height: Height of the page in pixels.
        line_height: Median height of lines in pixels, weighted by their characters.
        font_size: Font size of running text in pixels where a text layer tells it, else 0.
        stroke: Median stroke thickness in pixels where measured, else 0.
        bold_share: Share of the characters that are bold (0 to 1).
        italic_share: Share of the characters that are slanted (0 to 1).
        line_gap: Median white space in pixels between full lines of running text; 0 where there are too few.
    """

    width: float
    height: float
    line_height: float
    font_size: float
    stroke: float
    bold_share: float
    italic_share: float
    line_gap: float = 0.0

    @property
    def em(self) -> float:
        """Width of an em of running text in pixels; at least 1."""
        return max(1.0, self.font_size or self.line_height * _HEIGHT_TO_FONT_SIZE)

    def relative_size(self, line: Line) -> float:
        """Size of a line relative to running text: by font size where known, else by height."""
        if line.font_size > 0 and self.font_size > 0:
            return line.font_size / self.font_size
        extent = line.box.width if line.vertical else line.box.height
        return extent / self.line_height

    def prominence(self, line: Line) -> float:
        """How much a line that was read stands out by size and by weight together; about 0 for running text.

        Either alone is too noisy in scans: heights vary by a tenth with the letters of a line, strokes with the
        print. 0 where no stroke was measured.
        """
        if line.stroke <= 0 or self.stroke <= 0:
            return 0.0
        return self.relative_size(line) - 1 + line.stroke / self.stroke - 1


def measure(page: PageElements) -> PageMetrics:
    """Measures the running text of a page; pages without text get sizes that harm nobody."""
    lines = [line for line in page.lines if line.text.strip()]
    heights = [((line.box.width if line.vertical else line.box.height), len(line.text)) for line in lines]
    strokes = [(line.stroke, len(line.text)) for line in lines if line.stroke > 0]
    characters = sum(len(line.text) for line in lines)
    bold = sum(len(line.text) for line in lines if line.bold)
    italic = sum(len(line.text) for line in lines if line.italic)
    return PageMetrics(
        width=float(max(1, page.width)),
        height=float(max(1, page.height)),
        line_height=max(1.0, _weighted_median(heights) or page.height / 70),
        font_size=_body_font_size(lines),
        stroke=_weighted_median(strokes),
        bold_share=bold / max(1, characters),
        italic_share=italic / max(1, characters),
        line_gap=_line_gap(lines),
    )


def _body_font_size(lines: Sequence[Line]) -> float:
    """Font size of running text: the largest of those that set a good part of the longer lines.

    Notes and tables may hold more characters than the text they belong to, but they are set smaller.
    """
    characters: defaultdict[float, int] = defaultdict(int)
    prose: defaultdict[float, int] = defaultdict(int)
    for line in lines:
        if line.font_size > 0:
            size = round(line.font_size, 1)
            characters[size] += len(line.text)
            if len(line.text.split()) >= _PROSE_WORDS or unspaced_share(line.text) > 0.5:
                prose[size] += len(line.text)
    counts = prose if sum(prose.values()) > 0.3 * sum(characters.values()) else characters
    if not counts:
        return 0.0
    most = max(counts.values())
    return max(size for size, count in counts.items() if count > _BODY_SHARE * most)


def _line_gap(lines: Sequence[Line]) -> float:
    """Typical gap below a full line: wide in double-spaced manuscripts and between columns of vertical writing."""
    upright = [line for line in lines if not line.vertical]
    if len(upright) < _MIN_GAPS:
        return 0.0
    widths = sorted(line.box.width for line in upright)
    full = _FULL_SHARE * widths[(9 * len(widths)) // 10]
    gaps = []
    for above, below in pairwise(visual_rows(upright)):
        first, second = above[0], below[0]
        height = min(first.box.height, second.box.height)
        gap = second.box.top - first.box.bottom
        if first.box.width >= full and first.box.overlap_x(second.box) > 0 and -0.5 * height < gap < 2 * height:
            gaps.append(gap)
    return max(0.0, statistics.median(gaps)) if len(gaps) >= _MIN_GAPS else 0.0


def em_of(line: Line) -> float:
    """Width of an em in pixels in the size of `line`; at least 1."""
    extent = line.box.width if line.vertical else line.box.height
    return max(1.0, line.font_size or extent * _HEIGHT_TO_FONT_SIZE)


def visual_rows(lines: Sequence[Line]) -> list[list[Line]]:
    """Groups lines that stand side by side; rows from top to bottom, lines in a row from left to right.

    Two lines share a row when the middle of one lies within the core of the other and they hardly overlap
    horizontally.
    """
    rows: list[list[Line]] = []
    for line in sorted(lines, key=lambda item: (item.box.center_y, item.box.left)):
        row = next((row for row in reversed(rows[-3:]) if _shares_row(line, row)), None)
        if row is None:
            rows.append([line])
        else:
            row.append(line)
    for row in rows:
        row.sort(key=lambda item: item.box.left)
    rows.sort(key=lambda row: statistics.median(line.box.center_y for line in row))
    return rows


def box_of(lines: Sequence[Line]) -> BoundingBox:
    """The smallest box around `lines`, which must not be empty."""
    return BoundingBox.around(line.box for line in lines)


def _shares_row(line: Line, row: Sequence[Line]) -> bool:
    def beside(other: Line) -> bool:
        shared = line.box.overlap_y(other.box)
        return shared > 0.5 * min(line.box.height, other.box.height) and shared > 0

    def clear(other: Line) -> bool:
        return line.box.overlap_x(other.box) <= 0.2 * min(line.box.width, other.box.width)

    return any(beside(other) for other in row) and all(clear(other) for other in row)


def _weighted_median(values: Sequence[tuple[float, int]]) -> float:
    ordered = sorted(value for value in values if value[0] > 0)
    half = sum(weight for _, weight in ordered) / 2
    for value, weight in ordered:
        half -= weight
        if half <= 0:
            return value
    return 0.0
