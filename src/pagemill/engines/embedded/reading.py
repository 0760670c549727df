"""Reading a page image: from pixels to lines on the upright page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from pagemill.domain import BoundingBox
from pagemill.engines.embedded.detection import Detector, Points, Quad
from pagemill.engines.embedded.elements import Line
from pagemill.engines.embedded.enhance import enhanced, line_blur
from pagemill.engines.embedded.imaging import Rotation, Sheet
from pagemill.engines.embedded.lines import Check, LineReader
from pagemill.engines.embedded.orientation import find_orientation
from pagemill.engines.embedded.recognition import Reading, Recogniser
from pagemill.engines.embedded.strokes import stroke_thickness
from pagemill.engines.embedded.tighten import tightened
from pagemill.engines.embedded.wording import repaired

_MIN_SKEW = 0.25
"""Degrees; below, turning costs more sharpness than it wins."""
_MAX_SKEW = 30.0
_MIN_LINES = 3
_MAX_SPREAD = 0.5
"""Degrees between the quartiles of the lines' angles; pages that bend more than that have no one angle."""
_MIN_LONE_CONFIDENCE = 0.75
"""Check boxes, arrows and dots are read as lone characters with up to this; lone digits with 0.9 and more."""
_MIN_AREA_SIDE = 8


@dataclass(frozen=True, slots=True)
class PageReading:
    """A page that was read.

    Attributes:
        sheet: The upright, deskewed page.
        lines: Its lines, in pixels of `sheet`.
        quarter_turns: Clockwise turns of 90 degrees that were made.
        skew: Degrees by which its lines fell to the right before.
    """

    sheet: Sheet
    lines: tuple[Line, ...]
    quarter_turns: int = 0
    skew: float = 0.0


class Reader:
    """Finds and reads the lines of images.

    Args:
        detector: Finds lines.
        recogniser: Reads them.
        min_confidence: Lines below this are noise, not text.
        pool: Where lines are read, several at once.
    """

    def __init__(
        self, detector: Detector, recogniser: Recogniser, min_confidence: float, pool: ThreadPoolExecutor
    ) -> None:
        self._detector = detector
        self._recogniser = recogniser
        self._min_confidence = min_confidence
        self._pool = pool

    def read_page(self, sheet: Sheet, check: Check) -> PageReading:
        """Reads a whole page, whichever way up it is.

        Args:
            sheet: The page as it came.
            check: Called between steps; raises to stop.
        """
        clear, lines = self._prepared(sheet, check)
        quads = tightened(self._detector.detect(clear), clear)
        check()
        orientation = find_orientation(quads, lines)
        turns = orientation.quarter_turns
        if turns:
            sheet = sheet.turned(turns)
            clear, lines = self._prepared(sheet, check)
            quads = tightened(self._detector.detect(clear), clear)
        readings = lines.read_all(quads, vertical=orientation.vertical)
        skew = page_skew(quads)
        if abs(skew) < _MIN_SKEW:
            return PageReading(sheet, self._kept(sheet, readings, lambda points: points), turns, 0.0)
        rotation = Rotation(skew, (sheet.width, sheet.height))
        straight = rotation.apply(sheet)
        return PageReading(straight, self._kept(straight, readings, rotation.points), turns, skew)

    def read_area(self, sheet: Sheet, area: BoundingBox, min_confidence: float, check: Check) -> list[Line]:
        """Reads a part of an upright page; boxes are in pixels of the page."""
        left, top = max(0, int(area.left)), max(0, int(area.top))
        right, bottom = min(sheet.width, round(area.right)), min(sheet.height, round(area.bottom))
        if right - left < _MIN_AREA_SIDE or bottom - top < _MIN_AREA_SIDE:
            return []
        clear, lines = self._prepared(Sheet(sheet.image.crop((left, top, right, bottom))), check)
        quads = tightened(self._detector.detect(clear), clear)
        readings = lines.read_all(quads, vertical=False)
        offset = np.array([left, top], dtype=np.float64)
        kept = self._kept(sheet, readings, lambda points: points + offset)
        return [line for line in kept if line.confidence >= min_confidence]

    def _prepared(self, sheet: Sheet, check: Check) -> tuple[Sheet, LineReader]:
        clear = enhanced(sheet)
        return clear, LineReader(self._recogniser, clear.image, line_blur(sheet), self._pool, check)

    def _kept(
        self, sheet: Sheet, readings: Sequence[tuple[Quad, Reading]], move: Callable[[Points], Points]
    ) -> tuple[Line, ...]:
        """What is text among `readings`, moved onto the upright page `sheet`."""
        kept = []
        for quad, reading in readings:
            text = repaired(reading.text)
            least = max(self._min_confidence, _MIN_LONE_CONFIDENCE if len(text) == 1 else 0.0)
            if not text or reading.confidence < least:
                continue
            corners = move(quad.corners)
            low = np.maximum(corners.min(axis=0), 0)
            high = np.minimum(corners.max(axis=0), (sheet.width, sheet.height))
            if (high <= low).any():
                continue
            box = BoundingBox(float(low[0]), float(low[1]), float(high[0]), float(high[1]))
            vertical = quad.tall and len(text) > 1
            kept.append(Line(text, box, reading.confidence, stroke=stroke_thickness(sheet, box), vertical=vertical))
        return tuple(kept)


def page_skew(quads: Sequence[Quad]) -> float:
    """Median angle in degrees of the long lines, weighted by their length; 0 where they disagree or are too few."""
    long = [quad for quad in quads if max(quad.length, quad.thickness) > 5 * min(quad.length, quad.thickness)]
    if len(long) < _MIN_LINES:
        return 0.0
    slopes = np.array([quad.slope for quad in long])
    weights = np.array([max(quad.length, quad.thickness) for quad in long])
    order = np.argsort(slopes)
    share = np.cumsum(weights[order]) / weights.sum()
    low, middle, high = (float(slopes[order][np.searchsorted(share, part)]) for part in (0.25, 0.5, 0.75))
    agreed = high - low <= max(_MAX_SPREAD, 0.5 * abs(middle))
    return middle if agreed and abs(middle) <= _MAX_SKEW else 0.0
