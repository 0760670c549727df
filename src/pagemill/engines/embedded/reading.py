"""Reading a page image: from pixels to lines on the upright page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from PIL import Image

from pagemill.domain import BoundingBox
from pagemill.engines.embedded.detection import Detector, Points, Quad
from pagemill.engines.embedded.elements import Line
from pagemill.engines.embedded.imaging import Rotation, Sheet
from pagemill.engines.embedded.orientation import Orientation, Way, find_orientation, read_tall
from pagemill.engines.embedded.recognition import Reading, Recogniser, cut
from pagemill.engines.embedded.strokes import stroke_thickness

Check = Callable[[], None]

_MIN_SKEW = 0.25
"""Degrees; below, turning costs more sharpness than it wins."""
_MAX_SKEW = 30.0


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
    """

    def __init__(self, detector: Detector, recogniser: Recogniser, min_confidence: float) -> None:
        self._detector = detector
        self._recogniser = recogniser
        self._min_confidence = min_confidence

    def read_page(self, sheet: Sheet, check: Check) -> PageReading:
        """Reads a whole page, whichever way up it is.

        Args:
            sheet: The page as it came.
            check: Called between steps; raises to stop.
        """
        quads = self._detector.detect(sheet)
        check()
        orientation = find_orientation(sheet.image, quads, self._recogniser)
        if orientation.quarter_turns:
            sheet = sheet.turned(orientation.quarter_turns)
            quads = self._detector.detect(sheet)
        lines = self._read_quads(sheet.image, quads, orientation, check)
        skew = page_skew([quad for quad, _ in lines])
        if abs(skew) < _MIN_SKEW:
            return self._result(sheet, lines, lambda points: points, orientation.quarter_turns, 0.0)
        rotation = Rotation(skew, (sheet.width, sheet.height))
        return self._result(rotation.apply(sheet), lines, rotation.points, orientation.quarter_turns, skew)

    def read_area(self, sheet: Sheet, area: BoundingBox, min_confidence: float, check: Check) -> list[Line]:
        """Reads a part of an upright page; boxes are in pixels of the page."""
        left, top = max(0, int(area.left)), max(0, int(area.top))
        right, bottom = min(sheet.width, round(area.right)), min(sheet.height, round(area.bottom))
        if right - left < 8 or bottom - top < 8:
            return []
        crop = Sheet(sheet.image.crop((left, top, right, bottom)))
        lines = self._read_quads(crop.image, self._detector.detect(crop), Orientation(), check)
        offset = np.array([left, top], dtype=np.float64)
        reading = self._result(sheet, lines, lambda points: points + offset, 0, 0.0)
        return [line for line in reading.lines if line.confidence >= min_confidence]

    def _read_quads(
        self, image: Image.Image, quads: Sequence[Quad], orientation: Orientation, check: Check
    ) -> list[tuple[Quad, Reading]]:
        level = [quad for quad in quads if not quad.tall]
        tall = [quad for quad in quads if quad.tall]
        lines = list(zip(level, self._recogniser.read([cut(image, quad) for quad in level], check), strict=True))
        ways = (Way.COLUMN, Way.COUNTERCLOCKWISE) if orientation.vertical else tuple(Way)
        attempts = [read_tall(image, tall, self._recogniser, way, check) for way in ways] if tall else []
        if tall and not orientation.vertical:  # a lone letter, such as l, is tall without being turned
            attempts.append(self._recogniser.read([cut(image, quad) for quad in tall], check))
        for index, quad in enumerate(tall):
            lines.append((quad, max((attempt[index] for attempt in attempts), key=lambda reading: reading.confidence)))
        return lines

    def _result(
        self,
        sheet: Sheet,
        lines: Sequence[tuple[Quad, Reading]],
        move: Callable[[Points], Points],
        quarter_turns: int,
        skew: float,
    ) -> PageReading:
        """Keeps what is text and puts it on the upright page."""
        kept = []
        for quad, reading in lines:
            text = reading.text.strip()
            if not text or reading.confidence < self._min_confidence:
                continue
            corners = move(quad.corners)
            low = np.maximum(corners.min(axis=0), 0)
            high = np.minimum(corners.max(axis=0), (sheet.width, sheet.height))
            if (high <= low).any():
                continue
            box = BoundingBox(float(low[0]), float(low[1]), float(high[0]), float(high[1]))
            vertical = quad.tall and len(text) > 1
            kept.append(Line(text, box, reading.confidence, vertical=vertical))
        lines_out = tuple(replace(line, stroke=stroke_thickness(sheet, line.box)) for line in kept)
        return PageReading(sheet, lines_out, quarter_turns, skew)


def page_skew(quads: Sequence[Quad]) -> float:
    """Median angle in degrees of the long lines, weighted by their length; 0 where there are too few."""
    long = [quad for quad in quads if max(quad.length, quad.thickness) > 5 * min(quad.length, quad.thickness)]
    if not long:
        return 0.0
    slopes = np.array([quad.slope for quad in long])
    weights = np.array([max(quad.length, quad.thickness) for quad in long])
    order = np.argsort(slopes)
    middle = np.searchsorted(np.cumsum(weights[order]), weights.sum() / 2)
    slope = float(slopes[order][middle])
    return slope if abs(slope) <= _MAX_SKEW else 0.0
