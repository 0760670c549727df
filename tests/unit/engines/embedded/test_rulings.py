from __future__ import annotations

import pytest
from PIL import Image, ImageDraw

from drawn_pages import drawn, noisy
from pagemill.domain import BoundingBox
from pagemill.engines.embedded.imaging import Sheet
from pagemill.engines.embedded.rulings import find_rulings


def grid(image: Image.Image, ink: int = 0, width: int = 2) -> Image.Image:
    draw = ImageDraw.Draw(image)
    for y in (500, 560, 620):
        draw.line((100, y, 700, y), fill=ink, width=width)
    for x in (100, 300, 500, 700):
        draw.line((x, 500, x, 620), fill=ink, width=width)
    return image


@pytest.mark.parametrize(("ink", "width"), [(0, 1), (0, 2), (90, 1), (210, 2), (0, 5)])
def test_all_rules_of_a_table_are_found_and_nothing_else(ink: int, width: int) -> None:
    rulings = find_rulings(Sheet(grid(drawn(), ink, width)))
    assert sorted(round(rule.center_y / 10) for rule in rulings.horizontal) == [50, 56, 62]
    assert sorted(round(rule.center_x / 10) for rule in rulings.vertical) == [10, 30, 50, 70]
    assert all(rule.width == pytest.approx(600, abs=8) for rule in rulings.horizontal)
    assert all(rule.height == pytest.approx(120, abs=8) for rule in rulings.vertical)


def test_bars_and_stems_of_letters_are_no_rules_but_an_underline_is() -> None:
    image = drawn(["HEFTIEST TITLE — LETTER", "EEEEE TTTTT FFFFF ZZZZZ", "lllll IIIII |||||"], size=44)
    ImageDraw.Draw(image).line((80, 172, 700, 172), fill=0, width=3)
    text = [BoundingBox(70, 115 + 70 * number, 720, 178 + 70 * number) for number in range(3)]
    rulings = find_rulings(Sheet(image), text)
    assert [round(rule.center_y) for rule in rulings.horizontal] == [172]
    assert rulings.vertical == ()


def test_rules_of_a_noisy_scan_are_found() -> None:
    rulings = find_rulings(Sheet(noisy(grid(drawn(paper=225), 40), 9)))
    assert len(rulings.horizontal) == 3
    assert len(rulings.vertical) == 4


def test_a_slightly_slanted_rule_is_one() -> None:
    image = drawn([])
    ImageDraw.Draw(image).line((100, 500, 700, 503), fill=0, width=2)
    (rule,) = find_rulings(Sheet(image)).horizontal
    assert rule.width == pytest.approx(600, abs=8)
    assert rule.intersection_area(BoundingBox(0, 498, 800, 506)) == rule.area


def test_filled_areas_are_no_rules() -> None:
    image = drawn([])
    ImageDraw.Draw(image).rectangle((100, 500, 700, 900), fill=60)
    rulings = find_rulings(Sheet(image))
    assert rulings.horizontal == ()
    assert rulings.vertical == ()


def test_a_band_behind_a_table_s_head_gives_its_edges_and_nothing_between_its_letters() -> None:
    image = drawn([])
    draw = ImageDraw.Draw(image)
    draw.rectangle((100, 500, 750, 541), fill=60)
    for left in range(130, 700, 90):
        draw.rectangle((left, 512, left + 60, 528), fill=250)
    rulings = find_rulings(Sheet(image))
    assert [(rule.left, rule.top, rule.right) for rule in rulings.horizontal] == [(100, 500, 751), (100, 542, 751)]
    assert rulings.vertical == ()


@pytest.mark.parametrize("size", [(1, 1), (10, 300), (300, 10)])
def test_tiny_pages_have_none(size: tuple[int, int]) -> None:
    rulings = find_rulings(Sheet(Image.new("L", size, 255)))
    assert rulings.horizontal == ()
