from __future__ import annotations

import math

import numpy as np
import pytest
from PIL import Image, ImageDraw

from drawn_pages import drawn
from pagemill.engines.embedded.detection import Quad, merged_share, quads_from_map
from pagemill.engines.embedded.imaging import Sheet

ONE = np.array([1.0, 1.0])


def probability(*boxes: tuple[int, int, int, int], value: float = 0.9) -> np.ndarray:
    result = np.zeros((200, 300), dtype=np.float32)
    for left, top, right, bottom in boxes:
        result[top:bottom, left:right] = value
    return result


def test_a_shrunken_line_grows_by_area_times_ratio_over_perimeter() -> None:
    (quad,) = quads_from_map(probability((50, 80, 250, 90)), ONE)
    grow = 200 * 10 * 1.6 / (2 * (200 + 10))
    expected = [[50 - grow, 80 - grow], [250 + grow, 80 - grow], [250 + grow, 90 + grow], [50 - grow, 90 + grow]]
    np.testing.assert_allclose(quad.corners, expected, atol=0.01)
    assert quad.score == pytest.approx(0.9)


def test_boxes_come_in_pixels_of_the_page() -> None:
    (small,) = quads_from_map(probability((50, 80, 250, 90)), ONE)
    (large,) = quads_from_map(probability((50, 80, 250, 90)), np.array([2.0, 3.0]))
    np.testing.assert_allclose(large.corners, small.corners * [2, 3])


def test_specks_and_unlikely_areas_are_left_out() -> None:
    assert quads_from_map(probability((50, 80, 52, 82)), ONE) == []
    assert quads_from_map(probability((50, 80, 250, 90), value=0.4), ONE) == []
    assert quads_from_map(np.zeros((64, 64), dtype=np.float32), ONE) == []


@pytest.mark.parametrize("degrees", [-12.0, -3.0, 4.0, 20.0])
def test_a_leaning_line_gets_a_leaning_box(degrees: float) -> None:
    canvas = Image.new("L", (300, 200))
    dx, dy = 110 * math.cos(math.radians(degrees)), 110 * math.sin(math.radians(degrees))
    ImageDraw.Draw(canvas).line((150 - dx, 100 - dy, 150 + dx, 100 + dy), fill=255, width=9)
    (quad,) = quads_from_map(np.asarray(canvas, dtype=np.float32) / 255, ONE)
    assert quad.slope == pytest.approx(degrees, abs=0.6)
    assert quad.length == pytest.approx(220 + 2 * 7, abs=6)
    assert quad.thickness < 30
    assert not quad.tall


def test_a_square_spot_has_no_direction_of_its_own() -> None:
    y, x = np.mgrid[:200, :300]
    diamond = (np.abs(x - 150) + np.abs(y - 100) < 20).astype(np.float32)
    (quad,) = quads_from_map(diamond, ONE)
    assert quad.slope == 0


def test_a_column_is_tall_and_keeps_its_corners_in_order() -> None:
    (quad,) = quads_from_map(probability((140, 20, 150, 180)), ONE)
    assert quad.tall
    assert quad.corners[0][0] < quad.corners[1][0]
    assert quad.corners[0][1] < quad.corners[3][1]


def box(left: float, top: float, right: float, bottom: float) -> Quad:
    return Quad(np.array([[left, top], [right, top], [right, bottom], [left, bottom]]), 0.9)


def test_boxes_with_two_lines_of_print_in_them_are_told() -> None:
    sheet = Sheet(
        drawn(["first line of the text", "second line of the text"], top=100, size=28, pitch=1.6).convert("RGB")
    )
    assert merged_share(sheet, [box(70, 95, 500, 190)]) == 1
    assert merged_share(sheet, [box(70, 95, 500, 140), box(70, 140, 500, 185)]) == 0
