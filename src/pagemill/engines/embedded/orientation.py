"""Which way up a page is, told by which way its lines read best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pagemill.engines.embedded.detection import Quad
from pagemill.engines.embedded.lines import LineReader, Way, mean_confidence

_SAMPLES = 6
_BEST_ASPECT = 12.0
"""Samples of up to this aspect are preferred for their evidence; beyond it, they only cost more."""
_SURE = 0.9
"""Lines the right way up read with a mean confidence from 0.97 even on scans, upside down with 0.4 to 0.7."""
_MARGIN = 0.1
_READABLE = 0.75


@dataclass(frozen=True, slots=True)
class Orientation:
    """Which way up a page is.

    Attributes:
        quarter_turns: Clockwise turns of 90 degrees that set it upright.
        vertical: Whether it is written in columns from top to bottom.
    """

    quarter_turns: int = 0
    vertical: bool = False


def find_orientation(quads: Sequence[Quad], lines: LineReader) -> Orientation:
    """Compares readings of a few lines; on upright pages these are read anyway, so nothing is lost.

    Args:
        quads: The lines of the page as it came.
        lines: Reads the samples, and remembers them.
    """
    tall = [quad for quad in quads if quad.tall]
    if sum(_weight(quad) for quad in tall) > 0.5 * sum(_weight(quad) for quad in quads):
        return _sideways(_samples(tall), lines)
    level = _samples([quad for quad in quads if not quad.tall])
    forward = mean_confidence(lines.read(level))
    if not level or forward >= _SURE:
        return Orientation()
    backward = mean_confidence(lines.read(level, Way.HALF_TURN))
    return Orientation(2 if backward >= _READABLE and backward > forward + _MARGIN else 0)


def _sideways(samples: Sequence[Quad], lines: LineReader) -> Orientation:
    """Tells a page on its side from one written in columns.

    The recogniser was trained on columns turned counterclockwise, so both read well that way. Only the characters of
    a column stand upright: put side by side, they read well, too.
    """
    clockwise, counterclockwise, column = (
        mean_confidence(lines.read(samples, way)) for way in (Way.CLOCKWISE, Way.COUNTERCLOCKWISE, Way.COLUMN)
    )
    if clockwise >= _READABLE and clockwise > counterclockwise:
        return Orientation(1)
    if counterclockwise >= _READABLE and column < _READABLE:
        return Orientation(3)
    return Orientation(vertical=True)


def _samples(quads: Sequence[Quad]) -> list[Quad]:
    return sorted(quads, key=lambda quad: -min(_aspect(quad), _BEST_ASPECT))[:_SAMPLES]


def _aspect(quad: Quad) -> float:
    sides = sorted((quad.length, quad.thickness))
    return sides[1] / max(sides[0], 1.0)


def _weight(quad: Quad) -> float:
    """Roughly the number of characters; single ones are tall or wide by their shape alone."""
    return max(0.0, _aspect(quad) - 1.5)
