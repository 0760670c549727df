"""Where ink is, and whether there is any."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import ndimage

from pagemill.engines.embedded.imaging import Sheet

Mask = npt.NDArray[np.bool_]

_FAINTEST = 24.0
"""Contrast in grey levels below which marks are paper structure; the faintest legible print has about 40."""
_NOISE_FACTOR = 5.0
_STRONG_SHARE = 0.35
"""Darkness of marks as a share of the paper's brightness; print from the back of thin paper has up to 0.25."""
_STRONG_AREA = 0.0005
_MIN_SPECK = 8
"""Marks of fewer pixels are dust. A full stop of 8-point print at 130 dpi has about 6, a comma about 12."""
_MIN_INK = 40
"""Pixels of ink that a page must have to be worth reading: half of a lone page number."""


def ink_mask(sheet: Sheet) -> Mask:
    """Pixels that are clearly darker than the paper, whatever its noise."""
    result: Mask = sheet.ink > max(_FAINTEST, _NOISE_FACTOR * sheet.noise)
    return result


def has_strong_ink(sheet: Sheet) -> bool:
    """Whether there are marks too dark to shine through from the back of the paper, and more than dust."""
    mask = ink_mask(sheet)
    strong = mask & (sheet.ink > _STRONG_SHARE * sheet.background)
    return float(strong.mean()) > _STRONG_AREA


def is_blank(sheet: Sheet) -> bool:
    """Whether there is nothing on the page but dust and the shadows of its edges.

    Errs towards False: a page with faint marks is then read, and stays empty if they say nothing.
    """
    mask = ink_mask(sheet)
    if np.count_nonzero(mask) < _MIN_INK:
        return True
    labels, count = ndimage.label(mask, structure=np.ones((3, 3)))
    sizes = np.bincount(labels.ravel(), minlength=count + 1)
    edges = np.concatenate([labels[:2].ravel(), labels[-2:].ravel(), labels[:, :2].ravel(), labels[:, -2:].ravel()])
    sizes[np.unique(edges)] = 0
    sizes[0] = 0
    return int(sizes[sizes >= _MIN_SPECK].sum()) < _MIN_INK
