from __future__ import annotations

import io

import pytest
from PIL import Image

from pagemill.domain import BoundingBox, PageImage
from pagemill.engines.openai.output import extract_pictures, repair_math


def page(width: int = 1000, height: int = 2000) -> PageImage:
    image = Image.new("RGB", (width, height), "white")
    image.paste("red", (100, 400, 500, 800))
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return PageImage(4, buffer.getvalue(), "image/png", width, height)


@pytest.mark.parametrize("space", ["", " "])
def test_boxes_become_crops_and_leave_the_text(space: str) -> None:
    text, figures = extract_pictures(f"Before\n\n![image](image_1.png){space}100,200,500,400\n\nAfter", page())
    assert text == "Before\n\n![figure](p0005-figure-1.png)\n\nAfter"
    (figure,) = figures
    assert figure.box == BoundingBox(100, 400, 500, 800)
    crop = Image.open(io.BytesIO(figure.data))
    assert crop.size == (400, 400)
    assert crop.getcolors() == [(160_000, (255, 0, 0))]


def test_links_without_boxes_become_comments() -> None:
    assert extract_pictures("A\n\n![image](image_1.png)\n\nB", page()) == ("A\n\n<!-- picture -->\n\nB", ())


def test_boxes_that_hold_nothing_become_comments() -> None:
    text, figures = extract_pictures("![image](image_1.png)500,500,100,100", page())
    assert (text, figures) == ("<!-- picture -->", ())


def test_boxes_over_the_edge_are_cut() -> None:
    _, figures = extract_pictures("![image](image_2.png)900,900,1200,1100", page())
    assert figures[0].box == BoundingBox(900, 1800, 1000, 2000)


@pytest.mark.parametrize(
    ("written", "repaired"),
    [
        (r"with \$E = mc^2\$ we have", "with $E = mc^2$ we have"),
        (r"\$\$\frac{a}{b}\$\$", r"$$\frac{a}{b}$$"),
        (r"from \$20,000 to \$30,000", r"from \$20,000 to \$30,000"),
        (r"costs \$5", r"costs \$5"),
        ("$x$ stays", "$x$ stays"),
    ],
)
def test_escaped_formulas_are_repaired_and_money_is_not_math(written: str, repaired: str) -> None:
    assert repair_math(written) == repaired
