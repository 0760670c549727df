"""Figures: which parts of the page are pictures, and which lines belong to them."""

from __future__ import annotations

from collections.abc import Sequence

from pagemill.domain import BlockKind, BoundingBox
from pagemill.engines.embedded.elements import Line, PageElements, Region, RegionKind
from pagemill.engines.embedded.structure.groups import Group
from pagemill.engines.embedded.structure.metrics import PageMetrics
from pagemill.engines.embedded.structure.scripts import text_length, unspaced_share
from pagemill.engines.embedded.structure.tables import FoundTable

_MIN_SCORE = 0.55
# Smaller pictures are icons, bullets and ornaments.
_MIN_AREA_SHARE = 0.01
# Larger ones are backgrounds.
_MAX_AREA_SHARE = 0.85
# Labels cover less of a picture than this.
_TEXT_SHARE = 0.4
_WORDY_LENGTH = 16.0


def is_empty_margin(region: Region, metrics: PageMetrics) -> bool:
    """Whether a figure reaches three edges of the page: the layout model takes empty parts of scans for pictures."""
    slack_x, slack_y = 0.015 * metrics.width, 0.015 * metrics.height
    touched = (
        region.box.left < slack_x,
        region.box.top < slack_y,
        region.box.right > metrics.width - slack_x,
        region.box.bottom > metrics.height - slack_y,
    )
    return region.kind is RegionKind.FIGURE and sum(touched) >= 3


def find_figures(
    page: PageElements, lines: Sequence[Line], tables: Sequence[FoundTable], metrics: PageMetrics
) -> list[Group]:
    """Finds pictures, each with the labels inside it.

    Regions of the layout model and raster images of the PDF count. A region whose lines read as running text is none.
    Only labels go with a picture: lines of several words stay in the body, so that nothing readable is lost.

    Args:
        page: The page.
        lines: The lines that belong to no table.
        tables: The tables found: nothing over them is a figure.
        metrics: Sizes of the page's running text.
    """
    proposals = [
        (region.score, region.box)
        for region in page.regions
        if region.kind is RegionKind.FIGURE and region.score >= _MIN_SCORE
    ]
    proposals += [(1.0, box) for box in _joined(page.images, metrics)]
    figures: list[Group] = []
    free = list(lines)
    for score, box in sorted(proposals, key=lambda item: -item[1].area):
        visible = _clipped(box, metrics)
        if not _is_picture_size(visible, metrics) or _is_taken(visible, figures, tables):
            continue
        inside = [line for line in free if _holds(visible, line)]
        if _reads_as_text(inside, visible):
            continue
        inside = [line for line in inside if not _is_wordy(line)]
        taken = {id(line) for line in inside}
        free = [line for line in free if id(line) not in taken]
        figures.append(Group(BlockKind.FIGURE, visible, tuple(inside), score, has_picture=True))
    return figures


def _joined(images: Sequence[BoundingBox], metrics: PageMetrics) -> list[BoundingBox]:
    """Joins raster images that overlap or nearly touch: tiles and parts of one picture."""
    reach = 0.5 * metrics.em
    pending, joined = [_clipped(box, metrics) for box in images], list[BoundingBox]()
    while pending:
        box = pending.pop()
        grown = BoundingBox(box.left - reach, box.top - reach, box.right + reach, box.bottom + reach)
        near = [other for other in joined if grown.intersection_area(other) > 0]
        if near:
            joined = [other for other in joined if other not in near]
            pending.append(BoundingBox.around([box, *near]))
        else:
            joined.append(box)
    return joined


def _clipped(box: BoundingBox, metrics: PageMetrics) -> BoundingBox:
    return BoundingBox(
        min(max(box.left, 0.0), metrics.width),
        min(max(box.top, 0.0), metrics.height),
        min(max(box.right, 0.0), metrics.width),
        min(max(box.bottom, 0.0), metrics.height),
    )


def _is_picture_size(box: BoundingBox, metrics: PageMetrics) -> bool:
    share = box.area / (metrics.width * metrics.height)
    return _MIN_AREA_SHARE <= share <= _MAX_AREA_SHARE and min(box.width, box.height) > 2 * metrics.line_height


def _is_taken(box: BoundingBox, figures: Sequence[Group], tables: Sequence[FoundTable]) -> bool:
    boxes = [figure.box for figure in figures] + [found.table.box for found in tables]
    return any(box.intersection_area(other) > 0.3 * min(box.area, other.area) for other in boxes)


def _holds(box: BoundingBox, line: Line) -> bool:
    if line.box.area > 0:
        return line.box.share_inside(box) > 0.6
    return box.left <= line.box.center_x < box.right and box.top <= line.box.center_y < box.bottom


def _reads_as_text(lines: Sequence[Line], box: BoundingBox) -> bool:
    """Whether lines are more than labels: several of several words, or most of the region's area."""
    wordy = [line for line in lines if _is_wordy(line)]
    covered = sum(line.box.area for line in lines)
    letters = sum(text_length(line.text) for line in lines)
    mostly = sum(text_length(line.text) for line in wordy) > 0.4 * letters
    if len(lines) >= 3 and covered > _TEXT_SHARE * box.area:
        return True
    return (len(wordy) >= 3 and mostly) or (len(wordy) >= 2 and covered > 0.3 * box.area)


def _is_wordy(line: Line) -> bool:
    if text_length(line.text) < _WORDY_LENGTH:
        return False
    words = [word for word in line.text.split() if sum(char.isalpha() for char in word) >= 2]
    return len(words) >= 3 or unspaced_share(line.text) > 0.5
