"""How much is printed on a page, so that an engine that writes text can be checked against it."""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PIL import Image

from pagemill.domain import PageImage

_TILE = 32
_FAINT = 28
_STRONG = 70
"""Contrast in grey levels: print has more than this, what shines through from the back of a sheet less."""
_MARGIN = 0.012
"""Share of the page at each edge that is left out: shadows of the scanner."""
_MIN_PIXELS = 40
_MIN_SHARP_SHARE = 0.08
_PIXELS_PER_CHARACTER = 7.0
"""Fewest ink pixels of a printed character, as a mean over a page at 1540 pixels; 6-point print has about 10."""
_MEASURED_SIDE = 1540


@dataclass(frozen=True, slots=True)
class Ink:
    """What was measured on a page.

    Attributes:
        pixels: Pixels of ink, scaled to a page of 1540 pixels on the long side.
        strong: Those of them with the contrast of print.
        sharp: Those of them with a sharp edge; what shines through is blurred.
        contrast: Median contrast of the ink with the paper, in grey levels; 0 where there is none.
    """

    pixels: int
    strong: int
    sharp: int
    contrast: int = 0

    @property
    def is_blank(self) -> bool:
        """Whether there is nothing to read: no ink, or only faint and blurred ink."""
        if self.pixels < _MIN_PIXELS:
            return True
        return self.strong < _MIN_PIXELS and self.sharp < self.pixels * _MIN_SHARP_SHARE

    def outweighed_by(self, characters: int) -> bool:
        """Whether a text of so many characters is more than this ink can be."""
        return characters > 20 and characters * _PIXELS_PER_CHARACTER > self.pixels


def measure_ink(page: PageImage) -> Ink:
    """Measures a page image; it is decoded at no more than 1540 pixels."""
    with Image.open(io.BytesIO(page.data)) as opened:
        image = opened.convert("L")
    image.thumbnail((_MEASURED_SIDE, _MEASURED_SIDE), Image.Resampling.BOX)
    scale = (_MEASURED_SIDE / max(image.size)) ** 2
    grey = np.asarray(image).astype(np.int16)
    top, left = (max(1, round(side * _MARGIN)) for side in grey.shape)
    inner = grey[top:-top, left:-left]
    if inner.size == 0:
        return Ink(0, 0, 0)
    depth = np.maximum(_paper(inner) - inner, 0)
    noise = 1.4826 * float(np.median(np.abs(depth - np.median(depth))))
    threshold = max(_FAINT, 5.0 * noise)
    faint = _without_specks(depth > threshold)
    strong = faint & (depth > max(_STRONG, threshold))
    across = np.abs(np.diff(inner, axis=1, prepend=inner[:, :1]))
    down = np.abs(np.diff(inner, axis=0, prepend=inner[:1]))
    sharp = faint & (np.maximum(across, down) > max(_FAINT, 4.0 * noise))
    pixels, firm, crisp = (round(int(np.count_nonzero(mask)) * scale) for mask in (faint, strong, sharp))
    return Ink(pixels, firm, crisp, contrast=int(np.median(depth[faint])) if pixels else 0)


def _paper(grey: npt.NDArray[np.int16]) -> npt.NDArray[np.int16]:
    """Brightness of the paper at each pixel: the bright end of its surroundings."""
    rows, columns = (-(-side // _TILE) for side in grey.shape)
    padded = np.pad(grey, ((0, rows * _TILE - grey.shape[0]), (0, columns * _TILE - grey.shape[1])), mode="edge")
    blocks = padded.reshape(rows, _TILE, columns, _TILE).swapaxes(1, 2).reshape(rows, columns, -1)
    bright = np.percentile(blocks, 80, axis=2).astype(np.uint8)
    size = (columns * _TILE, rows * _TILE)
    smooth = np.asarray(Image.fromarray(bright).resize(size, Image.Resampling.BILINEAR))
    result: npt.NDArray[np.int16] = smooth[: grey.shape[0], : grey.shape[1]].astype(np.int16)
    return result


def _without_specks(mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Pixels with at least three neighbours: dust and noise fall away, thin strokes stay."""
    padded = np.pad(mask, 1).astype(np.uint8)
    rows, columns = mask.shape
    neighbours = np.zeros(mask.shape, np.uint8)
    for down in (0, 1, 2):
        for across in (0, 1, 2):
            if (down, across) != (1, 1):
                neighbours += padded[down : down + rows, across : across + columns]
    result: npt.NDArray[np.bool_] = mask & (neighbours >= 3)
    return result
