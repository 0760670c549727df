"""Pages with a text layer of their own: finding what the layer leaves out.

Text may be inside pictures, in fonts whose characters are unknown, or drawn as outlines. Only those areas are read.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import ndimage

from pagemill.domain import BoundingBox, TextLayer
from pagemill.engines.embedded.elements import Line, Rulings
from pagemill.engines.embedded.imaging import Sheet
from pagemill.engines.embedded.ink import Mask, ink_mask

_MIN_PICTURE_SIDE = 40
"""Pixels; smaller pictures are icons and bullets."""
_MIN_PICTURE_SHARE = 0.003
"""Share of the page; smaller pictures are logos at most."""
_COVERED = 0.25
"""Pictures with text of the layer over this share of their area are backgrounds of that text."""
_GLYPH_HEIGHTS = (5, 60)
_GLYPH_MAX_WIDTH = 90
_MIN_GLYPHS = 40
"""Marks of the size of letters that must stand together outside all text before they are worth a look."""
_MIN_GLYPH_SHARE = 0.08
"""... and as a share of the characters of the layer: charts and maps have some, too."""


def unread_areas(sheet: Sheet, layer: TextLayer, rulings: Rulings) -> list[BoundingBox]:
    """Areas that may hold text which the layer does not tell.

    Args:
        sheet: The page.
        layer: Its text layer, judged sane as a whole.
        rulings: Drawn lines, which are no text.
    """
    spans = [span.box for span in layer.spans if span.sane and span.text.strip()]
    areas = [_grown(span.box, 2) for span in layer.spans if not span.sane and span.text.strip()]
    pictures = [box for box in layer.images if _may_hold_text(box, spans, sheet)]
    areas.extend(pictures)
    characters = sum(len(span.text) for span in layer.spans if span.sane)
    areas.extend(_outlined(sheet, [*spans, *layer.images, *areas], rulings, characters))
    return _merged(areas)


def not_told_yet(found: Sequence[Line], told: Sequence[Line]) -> list[Line]:
    """Those of `found` that no line of the layer covers."""
    return [line for line in found if not any(line.box.share_inside(_grown(other.box, 2)) > 0.4 for other in told)]


def _may_hold_text(box: BoundingBox, spans: Sequence[BoundingBox], sheet: Sheet) -> bool:
    if min(box.width, box.height) < _MIN_PICTURE_SIDE or box.area < _MIN_PICTURE_SHARE * sheet.width * sheet.height:
        return False
    return sum(span.intersection_area(box) for span in spans) < _COVERED * box.area


def _outlined(sheet: Sheet, known: Sequence[BoundingBox], rulings: Rulings, characters: int) -> list[BoundingBox]:
    """Areas with marks the size of letters outside everything that is `known`."""
    mask = ink_mask(sheet).copy()
    for box in known:
        _erase(mask, _grown(box, 3))
    for box in (*rulings.horizontal, *rulings.vertical):
        _erase(mask, _grown(box, 2))
    labels, count = ndimage.label(mask, structure=np.ones((3, 3)))
    glyphs = np.zeros_like(mask)
    number = 0
    for rows, columns in ndimage.find_objects(labels, count):
        height, width = rows.stop - rows.start, columns.stop - columns.start
        if _GLYPH_HEIGHTS[0] <= height <= _GLYPH_HEIGHTS[1] and 2 <= width <= _GLYPH_MAX_WIDTH:
            glyphs[rows, columns] = True
            number += 1
    if number < max(_MIN_GLYPHS, _MIN_GLYPH_SHARE * characters):
        return []
    # Letters within about an em of each other become one area.
    near = ndimage.binary_dilation(glyphs[::4, ::4], structure=np.ones((3, 9)), iterations=2)
    groups, group_count = ndimage.label(near)
    return [
        BoundingBox(columns.start * 4, rows.start * 4, columns.stop * 4, rows.stop * 4)
        for rows, columns in ndimage.find_objects(groups, group_count)
    ]


def _erase(mask: Mask, box: BoundingBox) -> None:
    mask[max(0, int(box.top)) : max(0, round(box.bottom)), max(0, int(box.left)) : max(0, round(box.right))] = False


def _grown(box: BoundingBox, by: float) -> BoundingBox:
    return BoundingBox(box.left - by, box.top - by, box.right + by, box.bottom + by)


def _merged(areas: Sequence[BoundingBox]) -> list[BoundingBox]:
    """Joins areas that overlap or nearly touch, until none do."""
    pending, result = list(areas), list[BoundingBox]()
    while pending:
        area = pending.pop()
        touching = [other for other in result if _grown(area, 8).intersection_area(other) > 0]
        if touching:
            result = [other for other in result if other not in touching]
            pending.append(BoundingBox.around([area, *touching]))
        else:
            result.append(area)
    return result
