"""Drawn straight lines: table rules, underlines, frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from scipy import ndimage

from pagemill.domain import BoundingBox
from pagemill.engines.embedded.elements import Rulings
from pagemill.engines.embedded.imaging import Sheet
from pagemill.engines.embedded.ink import Mask

_Bar: TypeAlias = tuple[float, float, float, float]
"""Left, top, right and bottom of a bar in pixels."""

_FAINTEST = 14.0
"""Light grey hairlines of 0.25 points come out with about 20 grey levels of contrast."""
_NOISE_FACTOR = 4.0
_MIN_HORIZONTAL = 0.03
"""Shortest horizontal rule as a share of the page's width: longer than the bars of large letters."""
_MIN_VERTICAL = 0.018
"""Shortest vertical rule as a share of the page's height: higher than the stems of letters."""
_RUN = 0.7
"""A slanted rule is found in steps; each must have this share of the shortest length."""
_MAX_GAP = 4
"""Pixels between pieces of one rule; gaps between bars of neighbouring letters are wider."""
_LONGEST_BAR = 1.5
"""Length of the longest bar in a letter, or dash, in heights of a line's box."""
_MAX_THICKNESS = 9
"""Thicker bars are fills, not rules (pixels)."""
_MIN_BAND = 0.15
"""Narrowest band of colour behind a row of a table, as a share of the page's width."""
_MAX_BAND_HEIGHT = 0.08
"""Highest such band, as a share of the page's height."""
_BAND_FILL = 0.55
"""Least share of a band that is coloured; the rest are letters."""


def find_rulings(sheet: Sheet, text: Sequence[BoundingBox] = ()) -> Rulings:
    """All drawn horizontal and vertical lines of an upright page, as thin boxes.

    Args:
        sheet: The page.
        text: Boxes of its text lines: bars and stems of large letters are no rules.
    """
    mask = sheet.ink > max(_FAINTEST, _NOISE_FACTOR * sheet.noise)
    horizontal, thick = _rules(mask, max(24, round(_MIN_HORIZONTAL * sheet.width)))
    vertical, _ = _rules(np.ascontiguousarray(mask.T), max(24, round(_MIN_VERTICAL * sheet.height)))
    bands = [band for band in (BoundingBox(*bar) for bar in thick) if _is_band(mask, band)]
    rules = [BoundingBox(left, top, right, bottom) for left, top, right, bottom in horizontal]
    rules += [edge for band in bands for edge in _edges(band, sheet.height)]
    posts = [BoundingBox(top, left, bottom, right) for left, top, right, bottom in vertical]
    return Rulings(
        tuple(rule for rule in rules if not _in_letters(rule, text)),
        # Between white letters on a band of colour stand bars that look like rules.
        tuple(post for post in posts if not _in_letters(post, text) and not any(_within(post, band) for band in bands)),
    )


def _is_band(mask: Mask, box: BoundingBox) -> bool:
    """Whether a filled area is a band behind a row of a table."""
    height, width = mask.shape
    if box.width < _MIN_BAND * width or not _MAX_THICKNESS < box.height < _MAX_BAND_HEIGHT * height:
        return False
    area = mask[int(box.top) : int(box.bottom), int(box.left) : int(box.right)]
    return bool(area.mean() >= _BAND_FILL)


def _edges(band: BoundingBox, height: int) -> tuple[BoundingBox, BoundingBox]:
    """The upper and lower edges of a band, as rules of one pixel."""
    bottom = min(band.bottom, height - 1)
    return (
        BoundingBox(band.left, band.top, band.right, band.top + 1),
        BoundingBox(band.left, bottom, band.right, bottom + 1),
    )


def _within(post: BoundingBox, band: BoundingBox) -> bool:
    return post.share_inside(band) > 0.9 and post.height <= band.height + 1


def _in_letters(rule: BoundingBox, text: Sequence[BoundingBox]) -> bool:
    """Whether a rule lies in a line of text and is hardly longer than that is high."""
    length = max(rule.width, rule.height)
    return any(rule.share_inside(box) > 0.8 and length < _LONGEST_BAR * min(box.width, box.height) for box in text)


def _rules(mask: Mask, shortest: int) -> tuple[list[_Bar], list[_Bar]]:
    """Thin horizontal bars at least `shortest` long, and bars that are too thick for rules."""
    runs = _open_rows(mask, max(8, round(_RUN * shortest)))
    # One row up and down joins the steps of a rule that is not quite level.
    runs[1:] |= runs[:-1].copy() & mask[1:]
    labels, count = ndimage.label(runs, structure=np.ones((3, 3)))
    found: list[_Bar] = []
    thick: list[_Bar] = []
    for rows, columns in ndimage.find_objects(labels, count):
        length, height = columns.stop - columns.start, rows.stop - rows.start
        bar = (float(columns.start), float(rows.start), float(columns.stop), float(rows.stop))
        (thick if height > _MAX_THICKNESS + 0.02 * length else found).append(bar)
    merged = _joined(found, 2 * shortest)
    return [rule for rule in merged if rule[2] - rule[0] >= shortest and _thin(mask, rule)], thick


def _open_rows(mask: Mask, length: int) -> Mask:
    """Morphological opening of each row with a segment of `length` pixels: only runs at least that long stay."""
    height, width = mask.shape
    if width < length:
        return np.zeros_like(mask)
    sums = np.zeros((height, width + 1), dtype=np.int32)
    np.cumsum(mask, axis=1, out=sums[:, 1:])
    starts = (sums[:, length:] - sums[:, :-length]) == length
    steps = np.zeros((height, width + 1), dtype=np.int32)
    steps[:, : starts.shape[1]] += starts
    steps[:, length:] -= starts
    result: Mask = np.cumsum(steps, axis=1)[:, :width] > 0
    return result


def _thin(mask: Mask, rule: _Bar) -> bool:
    """Whether there is paper beside most of the rule: an edge of a filled area has none on one side."""
    left, top, right, bottom = (int(v) for v in rule)
    length = right - left
    return bool(mask[top:bottom, left:right].sum() <= _MAX_THICKNESS * length)


def _joined(pieces: list[_Bar], least: int) -> list[_Bar]:
    """Joins pieces of one rule, each at least `least` long: at the same height and hardly apart."""
    rules: list[_Bar] = []
    for left, top, right, bottom in sorted(pieces):
        for index in range(len(rules) - 1, -1, -1):
            l0, t0, r0, b0 = rules[index]
            gap = left - r0
            if (
                min(right - left, r0 - l0) >= least
                and -3 < gap <= _MAX_GAP
                and max(top, t0) <= min(bottom, b0) + 2
                and max(bottom, b0) - min(top, t0) <= (_MAX_THICKNESS + 0.02 * (right - l0))
            ):
                rules[index] = (l0, min(top, t0), max(right, r0), max(bottom, b0))
                break
        else:
            rules.append((left, top, right, bottom))
    return rules
