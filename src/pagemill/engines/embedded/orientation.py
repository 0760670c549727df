"""Which way up a page is, told by which way its lines read best."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from PIL import Image

from pagemill.engines.embedded.columns import laid_out
from pagemill.engines.embedded.detection import Quad
from pagemill.engines.embedded.recognition import Reading, Recogniser, cut

_SAMPLES = 6
_BEST_ASPECT = 12.0
"""Samples of up to this aspect are preferred for their evidence; beyond it, they only cost more."""
_SURE = 0.9
"""Lines the right way up read with a mean confidence from 0.97 even on scans, upside down with 0.4 to 0.7."""
_MARGIN = 0.1
_READABLE = 0.75


class Way(Enum):
    """How the tall boxes of a page are to be read."""

    CLOCKWISE = "clockwise"
    """The box turned clockwise by 90 degrees reads from left to right."""
    COUNTERCLOCKWISE = "counterclockwise"
    COLUMN = "column"
    """Upright characters under each other."""


@dataclass(frozen=True, slots=True)
class Orientation:
    """Which way up a page is.

    Attributes:
        quarter_turns: Clockwise turns of 90 degrees that set it upright.
        vertical: Whether it is written in columns from top to bottom.
    """

    quarter_turns: int = 0
    vertical: bool = False


def find_orientation(image: Image.Image, quads: Sequence[Quad], recogniser: Recogniser) -> Orientation:
    """Compares readings of a few lines; on upright pages these are read anyway, so little is lost.

    Args:
        image: The page as it came.
        quads: Its lines.
        recogniser: Reads the samples.
    """
    tall = [quad for quad in quads if quad.tall]
    if sum(_weight(quad) for quad in tall) > 0.5 * sum(_weight(quad) for quad in quads):
        return _sideways(image, _samples(tall), recogniser)
    level = _samples([quad for quad in quads if not quad.tall])
    crops = [cut(image, quad) for quad in level]
    forward = mean_confidence(recogniser.read(crops))
    if not level or forward >= _SURE:
        return Orientation()
    backward = mean_confidence(recogniser.read([crop.transpose(Image.Transpose.ROTATE_180) for crop in crops]))
    return Orientation(2 if backward >= _READABLE and backward > forward + _MARGIN else 0)


def _sideways(image: Image.Image, samples: Sequence[Quad], recogniser: Recogniser) -> Orientation:
    """Tells a page on its side from one written in columns."""
    scores = {way: mean_confidence(read_tall(image, samples, recogniser, way)) for way in Way}
    best = max(scores, key=lambda way: scores[way])
    if scores[best] < _READABLE or best is Way.COLUMN:
        return Orientation(0, vertical=True)
    return Orientation(1 if best is Way.CLOCKWISE else 3)


def read_tall(
    image: Image.Image,
    quads: Sequence[Quad],
    recogniser: Recogniser,
    way: Way,
    check: Callable[[], None] = lambda: None,
) -> list[Reading]:
    """Reads tall boxes one way.

    Args:
        image: The page.
        quads: Boxes that are taller than wide.
        recogniser: Reads them.
        way: How to turn them first.
        check: Called before each line; raises to stop.
    """
    readings = [Reading("", 0.0)] * len(quads)
    crops: dict[int, Image.Image] = {}
    for index, quad in enumerate(quads):
        crop = laid_out(cut_upright(image, quad)) if way is Way.COLUMN else cut(image, _on_side(quad, way))
        if crop is not None:
            crops[index] = crop
    for index, reading in zip(crops, recogniser.read(list(crops.values()), check), strict=True):
        readings[index] = reading
    return readings


def cut_upright(image: Image.Image, quad: Quad) -> Image.Image:
    """The box of a quad in its own pixels, not scaled."""
    low = np.floor(np.maximum(quad.corners.min(axis=0), 0)).astype(int)
    high = np.ceil(np.minimum(quad.corners.max(axis=0), image.size)).astype(int)
    return image.crop(
        (int(low[0]), int(low[1]), max(int(high[0]), int(low[0]) + 1), max(int(high[1]), int(low[1]) + 1))
    )


def _on_side(quad: Quad, way: Way) -> Quad:
    """The same box with its corners named as seen after a turn of the page."""
    return Quad(np.roll(quad.corners, 1 if way is Way.CLOCKWISE else -1, axis=0), quad.score)


def _samples(quads: Sequence[Quad]) -> list[Quad]:
    return sorted(quads, key=lambda quad: -min(_aspect(quad), _BEST_ASPECT))[:_SAMPLES]


def _aspect(quad: Quad) -> float:
    sides = sorted((quad.length, quad.thickness))
    return sides[1] / max(sides[0], 1.0)


def _weight(quad: Quad) -> float:
    """Roughly the number of characters: single characters are tall or wide by their shape alone."""
    return max(0.0, _aspect(quad) - 1.5)


def mean_confidence(readings: Sequence[Reading]) -> float:
    """Mean confidence over all characters; 0 where there are none."""
    total = sum(len(reading.text) for reading in readings)
    return sum(reading.confidence * len(reading.text) for reading in readings) / total if total else 0.0
