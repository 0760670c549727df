"""Making faint and noisy scans easier to read for an engine.

Contrast-limited adaptive histogram equalisation: Zuiderveld, Graphics Gems IV (1994). Binarisation: Sauvola and
Pietikainen, Pattern Recognition 33 (2000). Both on NumPy alone, see docs/decisions/0002.
"""

from __future__ import annotations

import io
from dataclasses import replace
from enum import Enum

import numpy as np
import numpy.typing as npt
from PIL import Image

from pagemill.conversion.ink import Ink
from pagemill.domain import PageImage

_TILES = 8
_CLIP = 3.0
_WINDOW = 31
_SAUVOLA_K = 0.25
_SAUVOLA_RANGE = 128.0
_FAINT_CONTRAST = 75
"""Median contrast of ink in grey levels below which a page is equalised; print on clean paper has 150 and more."""


class Enhancement(str, Enum):
    """What is done to an image before an engine gets it."""

    AUTO = "auto"
    """Equalised where the ink is measured to be faint; nothing else."""
    OFF = "off"
    CLAHE = "clahe"
    BINARIZE = "binarize"


def enhanced(page: PageImage, enhancement: Enhancement, ink: Ink) -> PageImage:
    """The page as the engine gets it; the very same object where nothing is done.

    Args:
        page: The page.
        enhancement: What to do.
        ink: What was measured on the page.
    """
    if enhancement is Enhancement.AUTO:
        enhancement = Enhancement.CLAHE if 0 < ink.contrast < _FAINT_CONTRAST else Enhancement.OFF
    if enhancement is Enhancement.OFF:
        return page
    with Image.open(io.BytesIO(page.data)) as opened:
        grey = np.asarray(opened.convert("L"))
    result = equalized(grey) if enhancement is Enhancement.CLAHE else binarized(grey)
    buffer = io.BytesIO()
    Image.fromarray(result).save(buffer, "PNG", compress_level=1)
    return replace(page, data=buffer.getvalue(), media_type="image/png")


def equalized(grey: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Contrast-limited adaptive histogram equalisation on a grid of 8 x 8 tiles.

    Args:
        grey: Brightness, `(height, width)`.

    Returns:
        An array of the same shape.
    """
    height, width = grey.shape
    tall, wide = -(-height // _TILES), -(-width // _TILES)
    padded = np.pad(grey, ((0, tall * _TILES - height), (0, wide * _TILES - width)), mode="edge")
    curves = np.empty((_TILES, _TILES, 256), np.float64)
    for row in range(_TILES):
        for column in range(_TILES):
            tile = padded[row * tall : (row + 1) * tall, column * wide : (column + 1) * wide]
            histogram = np.bincount(tile.ravel(), minlength=256).astype(np.float64)
            limit = _CLIP * tile.size / 256
            excess = np.maximum(histogram - limit, 0).sum()
            curves[row, column] = np.cumsum(np.minimum(histogram, limit) + excess / 256) * 255 / tile.size
    # Each pixel takes the curves of the four nearest tiles, weighted by its distance to their centres.
    down = np.clip((np.arange(height) + 0.5) / tall - 0.5, 0, _TILES - 1)
    across = np.clip((np.arange(width) + 0.5) / wide - 0.5, 0, _TILES - 1)
    top, left = np.minimum(down.astype(int), _TILES - 2), np.minimum(across.astype(int), _TILES - 2)
    low, side = (down - top)[:, None], (across - left)[None, :]
    t, f = top[:, None], left[None, :]
    upper = curves[t, f, grey] * (1 - side) + curves[t, f + 1, grey] * side
    lower = curves[t + 1, f, grey] * (1 - side) + curves[t + 1, f + 1, grey] * side
    result: npt.NDArray[np.uint8] = np.clip(upper * (1 - low) + lower * low, 0, 255).astype(np.uint8)
    return result


def binarized(grey: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Black print on white paper, by a threshold that follows the local mean and deviation (Sauvola).

    Args:
        grey: Brightness, `(height, width)`.

    Returns:
        An array of the same shape that holds 0 and 255 alone.
    """
    values = grey.astype(np.float64)
    mean = _box_mean(values)
    deviation = np.sqrt(np.maximum(_box_mean(values**2) - mean**2, 0))
    threshold = mean * (1 + _SAUVOLA_K * (deviation / _SAUVOLA_RANGE - 1))
    result: npt.NDArray[np.uint8] = np.where(values > threshold, 255, 0).astype(np.uint8)
    return result


def _box_mean(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    half = _WINDOW // 2
    padded = np.pad(values, ((half + 1, half), (half + 1, half)), mode="edge")
    sums = padded.cumsum(axis=0).cumsum(axis=1)
    box = sums[_WINDOW:, _WINDOW:] - sums[:-_WINDOW, _WINDOW:] - sums[_WINDOW:, :-_WINDOW] + sums[:-_WINDOW, :-_WINDOW]
    result: npt.NDArray[np.float64] = box / (_WINDOW * _WINDOW)
    return result
