from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from pagemill.engines.embedded.detection import Quad
from pagemill.engines.embedded.lines import Way
from pagemill.engines.embedded.orientation import Orientation, find_orientation
from pagemill.engines.embedded.recognition import Reading


class Scripted:
    """Reads every box with the confidence that its way is given, and counts."""

    def __init__(self, confidences: Mapping[Way, float]) -> None:
        self.confidences = confidences
        self.ways: list[Way] = []

    def read(self, quads: Sequence[Quad], way: Way = Way.LEVEL) -> list[Reading]:
        self.ways.extend([way] * len(quads))
        return [Reading("characters", self.confidences.get(way, 0.0)) for _ in quads]


def box(width: float, height: float) -> Quad:
    return Quad(np.array([[0, 0], [width, 0], [width, height], [0, height]]), 0.9)


LEVEL, TALL = [box(600, 30)] * 20, [box(30, 600)] * 20


@pytest.mark.parametrize(
    ("quads", "confidences", "expected"),
    [
        (LEVEL, {Way.LEVEL: 0.98}, Orientation()),
        (LEVEL, {Way.LEVEL: 0.6, Way.HALF_TURN: 0.98}, Orientation(2)),
        (LEVEL, {Way.LEVEL: 0.6, Way.HALF_TURN: 0.62}, Orientation()),
        (LEVEL, {Way.LEVEL: 0.4, Way.HALF_TURN: 0.6}, Orientation()),
        (TALL, {Way.CLOCKWISE: 0.99, Way.COUNTERCLOCKWISE: 0.6, Way.COLUMN: 0.5}, Orientation(1)),
        # Chinese on its side: its characters, lying, are half readable as a column.
        (TALL, {Way.CLOCKWISE: 0.99, Way.COUNTERCLOCKWISE: 0.81, Way.COLUMN: 0.86}, Orientation(1)),
        (TALL, {Way.CLOCKWISE: 0.5, Way.COUNTERCLOCKWISE: 0.99, Way.COLUMN: 0.4}, Orientation(3)),
        # Columns of Japanese: turned counterclockwise they read best, but their characters stand upright.
        (TALL, {Way.CLOCKWISE: 0.6, Way.COUNTERCLOCKWISE: 0.99, Way.COLUMN: 0.93}, Orientation(vertical=True)),
        (TALL, {Way.CLOCKWISE: 0.3, Way.COUNTERCLOCKWISE: 0.4, Way.COLUMN: 0.5}, Orientation(vertical=True)),
        ([], {}, Orientation()),
    ],
)
def test_the_way_that_reads_best_is_up(
    quads: list[Quad], confidences: Mapping[Way, float], expected: Orientation
) -> None:
    assert find_orientation(quads, Scripted(confidences)) == expected  # type: ignore[arg-type]


def test_an_upright_page_costs_a_few_lines_that_are_read_anyway() -> None:
    lines = Scripted({Way.LEVEL: 0.97})
    find_orientation(LEVEL, lines)  # type: ignore[arg-type]
    assert lines.ways == [Way.LEVEL] * 6


def test_single_tall_characters_do_not_turn_a_page() -> None:
    lines = Scripted({Way.LEVEL: 0.97, Way.CLOCKWISE: 0.99})
    digits = [box(14, 24)] * 60
    assert find_orientation([*digits, *LEVEL[:3]], lines) == Orientation()  # type: ignore[arg-type]
