"""Drawn straight lines: table rules, underlines, frames."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import ndimage

from pagemill.domain import BoundingBox
from pagemill.engines.embedded.elements import Rulings
from pagemill.engines.embedded.imaging import Sheet
from pagemill.engines.embedded.ink import Mask, noise_level

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


def find_rulings(sheet: Sheet, text: Sequence[BoundingBox] = ()) -> Rulings:
    """All drawn horizontal and vertical lines of an upright page, as thin boxes.

    Args:
        sheet: The page.
        text: Boxes of its text lines: bars and stems of large letters are no rules.
    """
    mask = sheet.ink > max(_FAINTEST, _NOISE_FACTOR * noise_level(sheet))
    horizontal = _rules(mask, max(24, round(_MIN_HORIZONTAL * sheet.width)))
    vertical = _rules(np.ascontiguousarray(mask.T), max(24, round(_MIN_VERTICAL * sheet.height)))
    rulings = Rulings(
        tuple(BoundingBox(left, top, right, bottom) for left, top, right, bottom in horizontal),
        tuple(BoundingBox(top, left, bottom, right) for left, top, right, bottom in vertical),
    )
    return Rulings(
        tuple(rule for rule in rulings.horizontal if not _in_letters(rule, text)),
        tuple(rule for rule in rulings.vertical if not _in_letters(rule, text)),
    )


def _in_letters(rule: BoundingBox, text: Sequence[BoundingBox]) -> bool:
    """Whether a rule lies in a line of text and is hardly longer than that is high."""
    length = max(rule.width, rule.height)
    return any(rule.share_inside(box) > 0.8 and length < _LONGEST_BAR * min(box.width, box.height) for box in text)


def _rules(mask: Mask, shortest: int) -> list[tuple[float, float, float, float]]:
    """Boxes (left, top, right, bottom) of thin horizontal bars at least `shortest` long."""
    runs = _open_rows(mask, max(8, round(_RUN * shortest)))
    # One row up and down joins the steps of a rule that is not quite level.
    runs[1:] |= runs[:-1].copy() & mask[1:]
    labels, count = ndimage.label(runs, structure=np.ones((3, 3)))
    found = []
    for rows, columns in ndimage.find_objects(labels, count):
        length, height = columns.stop - columns.start, rows.stop - rows.start
        if height > _MAX_THICKNESS + 0.02 * length:
            continue
        found.append((float(columns.start), float(rows.start), float(columns.stop), float(rows.stop)))
    merged = _joined(found, 2 * shortest)
    return [rule for rule in merged if rule[2] - rule[0] >= shortest and _thin(mask, rule)]


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


def _thin(mask: Mask, rule: tuple[float, float, float, float]) -> bool:
    """Whether there is paper beside most of the rule: an edge of a filled area has none on one side."""
    left, top, right, bottom = (int(v) for v in rule)
    length = right - left
    return bool(mask[top:bottom, left:right].sum() <= _MAX_THICKNESS * length)


def _joined(pieces: list[tuple[float, float, float, float]], least: int) -> list[tuple[float, float, float, float]]:
    """Joins pieces of one rule, each at least `least` long: at the same height and hardly apart."""
    rules: list[tuple[float, float, float, float]] = []
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
