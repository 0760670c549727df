from __future__ import annotations

import numpy as np
from PIL import ImageDraw

from drawn_pages import drawn
from pagemill.engines.embedded.detection import Quad
from pagemill.engines.embedded.imaging import Sheet
from pagemill.engines.embedded.tighten import tightened


def box(left: float, top: float, right: float, bottom: float) -> Quad:
    return Quad(np.array([[left, top], [right, top], [right, bottom], [left, bottom]]), 0.9)


LINE = box(75, 118, 700, 154)


def test_a_box_as_large_as_its_table_cell_shrinks_to_its_word() -> None:
    image = drawn(["a line of usual print that is long enough", "", "", "13"], pitch=2)
    ImageDraw.Draw(image).rectangle((60, 270, 160, 340), outline=0)
    usual, cell = tightened([LINE, box(58, 268, 162, 342)], Sheet(image))
    assert usual is LINE
    assert 30 < cell.thickness < 45
    assert cell.corners[0][0] > 64
    assert cell.corners[1][0] < 130
    rows = 280 + np.flatnonzero((np.asarray(image)[280:330, 70:150] < 128).any(axis=1))
    assert cell.corners[0][1] < rows.min()
    assert cell.corners[2][1] > rows.max()


def test_large_print_keeps_its_box() -> None:
    image = drawn(["a line of usual print that is long enough"])
    image.paste(drawn(["Title"], size=60, top=0, left=0, canvas=(300, 80)), (80, 300))
    title = box(70, 295, 240, 370)
    assert tightened([LINE, title], Sheet(image))[1] is title


def test_no_boxes_stay_none() -> None:
    assert tightened([], Sheet(drawn())) == []
