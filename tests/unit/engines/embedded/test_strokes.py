from __future__ import annotations

import pytest
from PIL import Image, ImageDraw, ImageFont

from drawn_pages import drawn
from pagemill.domain import BoundingBox
from pagemill.engines.embedded.imaging import Sheet
from pagemill.engines.embedded.strokes import stroke_thickness


@pytest.mark.parametrize("thickness", [2, 3, 5])
@pytest.mark.parametrize("ink", [0, 120])
def test_drawn_strokes_are_measured_whatever_their_ink(thickness: int, ink: int) -> None:
    image = drawn([])
    for x in range(100, 300, 20):
        ImageDraw.Draw(image).rectangle((x, 100, x + thickness - 1, 180), fill=ink)
    measured = stroke_thickness(Sheet(image), BoundingBox(90, 95, 310, 185))
    assert measured == pytest.approx(thickness, rel=0.25)


def test_bold_print_is_thicker_than_regular_print_of_the_same_size() -> None:
    image = Image.new("L", (600, 200), 255)
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(28)
    draw.text((20, 20), "Regular words", fill=0, font=font)
    draw.text((20, 120), "Regular words", fill=0, font=font, stroke_width=1)
    sheet = Sheet(image)
    regular = stroke_thickness(sheet, BoundingBox(15, 15, 400, 60))
    bold = stroke_thickness(sheet, BoundingBox(15, 115, 400, 160))
    assert bold > 1.3 * regular


@pytest.mark.parametrize(
    "box", [BoundingBox(10, 10, 11, 11), BoundingBox(700, 1000, 790, 1090), BoundingBox(900, 0, 950, 50)]
)
def test_no_strokes_measure_zero(box: BoundingBox) -> None:
    assert stroke_thickness(Sheet(drawn()), box) == 0
