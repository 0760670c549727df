"""Reading the lines of one page, whichever way each is turned."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import Enum

import numpy as np
from PIL import Image

from pagemill.engines.embedded.columns import laid_out
from pagemill.engines.embedded.detection import Quad
from pagemill.engines.embedded.recognition import Reading, Recogniser, cut

Check = Callable[[], None]

_NOTHING = Reading("", 0.0)
_LONE_CHARACTER = 3.0
"""Boxes up to this many times taller than wide may be single upright characters, such as 1 or l."""
_SURE = 0.9
_STRETCH = 1.15
"""Blurred letters part when they are wider; of clean ones, as many get worse as better."""
_MIRROR_MARGIN = 0.08
_MIRROR_SURE = 0.8
"""In the mirror, print from the back reads with 0.97 and more, even blurred; print the right way round reads worse
than before by 0.1 to 0.5, and noise equally badly both ways."""


class Way(Enum):
    """How a box is to be looked at."""

    LEVEL = "level"
    """As it is."""
    HALF_TURN = "half_turn"
    """Turned by 180 degrees."""
    CLOCKWISE = "clockwise"
    """Turned clockwise by 90 degrees."""
    COUNTERCLOCKWISE = "counterclockwise"
    COLUMN = "column"
    """Upright characters under each other."""
    STRETCHED = "stretched"
    """As it is, but wider."""
    MIRRORED = "mirrored"
    """Seen from behind the paper."""


_TURNS = {Way.LEVEL: 0, Way.CLOCKWISE: 1, Way.HALF_TURN: 2, Way.COUNTERCLOCKWISE: -1}


class LineReader:
    """Reads boxes of one page, none of them twice in the same way.

    Args:
        recogniser: Reads crops.
        image: The page.
        blur: Standard deviation of the blur that its lines want, in pixels of the recogniser's input.
        pool: Where lines are read, several at once.
        check: Called before each line; raises to stop.
    """

    def __init__(
        self, recogniser: Recogniser, image: Image.Image, blur: float, pool: ThreadPoolExecutor, check: Check
    ) -> None:
        self._recogniser = recogniser
        self._image = image
        self._blur = blur
        self._pool = pool
        self._check = check
        self._known: dict[tuple[Quad, Way], Reading] = {}

    def read(self, quads: Sequence[Quad], way: Way = Way.LEVEL) -> list[Reading]:
        """Reads boxes one way."""
        return list(self._pool.map(lambda quad: self._read_one(quad, way), quads))

    def read_all(self, quads: Sequence[Quad], *, vertical: bool) -> list[tuple[Quad, Reading]]:
        """Reads boxes the way each reads best; those with print from the back of the paper are left out.

        Args:
            quads: The boxes.
            vertical: Whether the page is written in columns.
        """
        # Long lines first: a long one at the end would leave the other threads without work.
        order = sorted(quads, key=lambda quad: -max(quad.length, quad.thickness))
        readings = self._pool.map(lambda quad: self._read_best(quad, vertical=vertical), order)
        return [(quad, reading) for quad, reading in zip(order, readings, strict=True) if reading is not None]

    def _read_best(self, quad: Quad, *, vertical: bool) -> Reading | None:
        if not quad.tall:
            reading = self._read_one(quad, Way.LEVEL)
            if reading.confidence >= _SURE:
                return reading
            if self._shines_through(quad, reading):
                return None
            return max(reading, self._read_one(quad, Way.STRETCHED), key=_confidence)
        upright = _NOTHING
        if quad.thickness < _LONE_CHARACTER * quad.length:
            upright = self._read_one(quad, Way.LEVEL)
            if upright.confidence >= _SURE:
                return upright
        best = max(upright, self._read_one(quad, Way.COUNTERCLOCKWISE), key=_confidence)
        if best.confidence >= _SURE:
            return best
        return max(best, self._read_one(quad, Way.COLUMN if vertical else Way.CLOCKWISE), key=_confidence)

    def _shines_through(self, quad: Quad, reading: Reading) -> bool:
        """Whether a box that reads badly reads well in a mirror."""
        mirrored = self._read_one(quad, Way.MIRRORED).confidence
        return mirrored > max(reading.confidence + _MIRROR_MARGIN, _MIRROR_SURE)

    def _read_one(self, quad: Quad, way: Way) -> Reading:
        if (quad, way) not in self._known:
            self._check()
            crop = self._crop(quad, way)
            self._known[quad, way] = self._recogniser.read(crop) if crop is not None else _NOTHING
        return self._known[quad, way]

    def _crop(self, quad: Quad, way: Way) -> Image.Image | None:
        if way is Way.COLUMN:
            return laid_out(_cut_unscaled(self._image, quad))
        if way is Way.MIRRORED:
            return cut(self._image, quad, self._blur).transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        if way is Way.STRETCHED:
            return cut(self._image, quad, self._blur, _STRETCH)
        # The corners as they are named once the page is turned.
        turned = Quad(np.roll(quad.corners, _TURNS[way], axis=0), quad.score)
        return cut(self._image, turned, self._blur)


def _cut_unscaled(image: Image.Image, quad: Quad) -> Image.Image:
    low = np.floor(np.maximum(quad.corners.min(axis=0), 0)).astype(int)
    high = np.maximum(np.ceil(np.minimum(quad.corners.max(axis=0), image.size)).astype(int), low + 1)
    return image.crop((int(low[0]), int(low[1]), int(high[0]), int(high[1])))


def _confidence(reading: Reading) -> float:
    return reading.confidence


def mean_confidence(readings: Iterable[Reading]) -> float:
    """Mean confidence over all characters; 0 where there are none."""
    readings = list(readings)
    total = sum(len(reading.text) for reading in readings)
    return sum(reading.confidence * len(reading.text) for reading in readings) / total if total else 0.0
