"""Reading lines: crops of one height, a CTC recogniser, greedy decoding."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageFilter

from pagemill.engines.embedded.detection import Quad
from pagemill.engines.embedded.sessions import FloatArray, Session

HEIGHT = 48
"""Height in pixels that the model reads."""
_WIDTH_STEP = 16
"""Widths are rounded up to a multiple of this, so that the runtime sees few different shapes."""
_MIN_WIDTH = 48
_TRAINED_WIDTH = 320
"""Least width that the model was trained on. Short pieces are read at their own width first, at a fifth of the cost."""
_SHORT = 6
_SURE, _SURE_OF_SHORT = 0.98, 0.995
"""Confidence from which a first reading of a piece narrower than that stands; short ones are misread with more."""
_MAX_WIDTH = 3200
"""Longer lines are read in overlapping pieces: attention costs grow with the square of the width."""
_STRAIGHT = 0.06
"""A line that climbs less than this share of its thickness is cut out along the axes, which keeps it sharper."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a line says.

    Attributes:
        text: Its characters.
        confidence: Mean probability of its characters, 0 to 1; 0 where there are none.
    """

    text: str
    confidence: float


class Recogniser:
    """Reads cropped lines.

    Args:
        session: The recognition model, whose metadata lists the characters.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        # The first class is the CTC blank, the last one the space.
        self._characters = np.array(["", *session.metadata["character"].split("\n"), " "], dtype=object)

    def read(self, crop: Image.Image) -> Reading:
        """Reads a line (RGB, `HEIGHT` pixels high), as `cut` makes it."""
        reading = self._read_at(crop, _MIN_WIDTH)
        if crop.width >= _TRAINED_WIDTH:
            return reading
        sure = _SURE_OF_SHORT if len(reading.text) <= _SHORT else _SURE
        return reading if reading.confidence >= sure else self._read_at(crop, _TRAINED_WIDTH)

    def _read_at(self, crop: Image.Image, least_width: int) -> Reading:
        return self._decode(self._session.run(_tensor(crop, least_width))[0][0])

    def _decode(self, probabilities: FloatArray) -> Reading:
        """Greedy CTC decoding of `(steps, classes)`: repeats merge, blanks vanish."""
        best = probabilities.argmax(axis=1)
        keep = best != 0
        keep[1:] &= best[1:] != best[:-1]
        steps = np.nonzero(keep)[0]
        if len(steps) == 0:
            return Reading("", 0.0)
        text = "".join(self._characters[best[steps]])
        return Reading(text, float(probabilities[steps, best[steps]].mean()))


def _tensor(crop: Image.Image, least_width: int) -> FloatArray:
    """Pixels as the model takes them, `(1, 3, HEIGHT, width)`, -1 to 1, blue first; padded with grey on the right."""
    pixels = np.asarray(crop)[:, :, ::-1].transpose(2, 0, 1)
    width = max(least_width, math.ceil(crop.width / _WIDTH_STEP) * _WIDTH_STEP)
    tensor = np.zeros((1, 3, HEIGHT, width), dtype=np.float32)
    tensor[0, :, :, : crop.width] = pixels
    tensor[0, :, :, : crop.width] /= 127.5
    tensor[0, :, :, : crop.width] -= 1.0
    return tensor


def cut(image: Image.Image, quad: Quad, blur: float = 0.0, stretch: float = 1.0) -> Image.Image:
    """Cuts a line out of `image` and scales it to `HEIGHT` pixels.

    Args:
        image: The page.
        quad: Where the line is.
        blur: Standard deviation in pixels of the result by which noise is smoothed.
        stretch: Factor on the width that its aspect gives.
    """
    crop = _scaled(image, quad, stretch)
    return crop.filter(ImageFilter.GaussianBlur(blur)) if blur else crop


def _scaled(image: Image.Image, quad: Quad, stretch: float) -> Image.Image:
    width = max(1, round(stretch * HEIGHT * quad.length / max(quad.thickness, 1.0)))
    low, high = quad.corners.min(axis=0), quad.corners.max(axis=0)
    run, climb = quad.corners[1] - quad.corners[0]
    if run > 0 and abs(climb) <= _STRAIGHT * quad.thickness:
        box = (
            max(0.0, low[0]),
            max(0.0, quad.corners[:2, 1].mean()),
            min(float(image.width), high[0]),
            min(float(image.height), quad.corners[2:, 1].mean()),
        )
        return image.resize((width, HEIGHT), Image.Resampling.BICUBIC, box=box)
    return _cut_turned(image, quad, width)


def _cut_turned(image: Image.Image, quad: Quad, width: int) -> Image.Image:
    """As `cut`, for a line that leans."""
    shrink = max(1, int(quad.thickness / HEIGHT))
    corners = quad.corners
    if shrink > 1:  # an affine map alone would skip pixels of tall lines
        low = np.floor(np.maximum(corners.min(axis=0), 0)).astype(int)
        high = np.ceil(np.minimum(corners.max(axis=0), image.size)).astype(int)
        image = image.crop((*low, *high)).reduce(shrink)
        corners = (corners - low) / shrink
    along = (corners[1] - corners[0]) / width
    across = (corners[3] - corners[0]) / HEIGHT
    matrix = (along[0], across[0], corners[0][0], along[1], across[1], corners[0][1])
    return image.transform((width, HEIGHT), Image.Transform.AFFINE, matrix, Image.Resampling.BICUBIC, fillcolor="white")
