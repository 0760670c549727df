"""Making faint and noisy scans readable."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageFilter

from pagemill.engines.embedded.imaging import Sheet

_NOISY = 0.06
"""Noise as a share of the contrast from which lines are blurred; below, blur costs small dense characters more than it
wins."""
_LINE_BLUR = 1.0
"""Standard deviation of the blur of noisy lines, in pixels of the recogniser's input; on scan-like pages it takes a
quarter off the wrong characters, twice as much gives it back."""
_PAGE_BLUR = 1.3
"""Standard deviation in pixels of the page, for very noisy ones."""
_VERY_NOISY = 0.15
"""Noise as a share of the contrast from which the whole page is blurred, and its lines no more."""
_FAINT = 100.0
"""Contrast in grey levels below which the page is stretched."""
_PAPER = 235.0
"""Brightness that the paper of a stretched page gets; white would cut off what is brighter."""


def contrast(sheet: Sheet) -> float:
    """How much darker than the paper the darkest ink is, in grey levels, specks left aside."""
    return float(np.percentile(sheet.ink[::2, ::2], 99.5))


def line_blur(sheet: Sheet) -> float:
    """Standard deviation of the blur that its lines want before they are read; 0 for a clean page."""
    share = sheet.noise / max(contrast(sheet), 1.0)
    return _LINE_BLUR if _NOISY < share <= _VERY_NOISY else 0.0


def enhanced(sheet: Sheet) -> Sheet:
    """The page with less noise and more contrast; most pages are returned as they are."""
    noise, range_ = sheet.noise, contrast(sheet)
    result = sheet
    if noise > _VERY_NOISY * range_:
        result = Sheet(result.image.filter(ImageFilter.GaussianBlur(_PAGE_BLUR)))
    if range_ < _FAINT:
        result = Sheet(_stretched(result, max(range_, 24.0)))
    return result


def _stretched(sheet: Sheet, range_: float) -> Image.Image:
    """Flat paper, and ink stretched to full contrast."""
    signed = sheet.grey.astype(np.float32) - sheet.background
    return Image.fromarray(np.clip(_PAPER + signed * (_PAPER / range_), 0, 255).astype(np.uint8)).convert("RGB")
