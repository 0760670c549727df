"""Reading order."""

from __future__ import annotations

from pagemill.domain import BoundingBox
from pagemill.engines.embedded.elements import Line, Region, RegionKind
from pagemill.engines.embedded.structure import build_blocks
from structure_pages import line, lines, page, region

PROSE = "running text that fills its column to the edge"


def order(content: list[Line], names: list[str], regions: tuple[Region, ...] = (), **more: object) -> list[str]:
    """The names in the order in which they appear in the blocks."""
    blocks = build_blocks(page(content, regions, **more)).blocks  # type: ignore[arg-type]
    text = " ".join(item.text for block in blocks for item in block.lines)
    return sorted(names, key=text.index)


def column(name: str, left: float, top: float, rows: int = 4) -> list[Line]:
    return lines([f"{name} {PROSE}"[:48]] * rows, left, top)


def test_two_columns_whose_paragraphs_end_at_the_same_height() -> None:
    content = [*column("A", 100, 300), *column("C", 700, 300), *column("B", 100, 450), *column("D", 700, 450)]
    assert order(content, ["A r", "B r", "C r", "D r"]) == ["A r", "B r", "C r", "D r"]


def test_a_title_over_two_columns_comes_first() -> None:
    content = [line("Title over everything", 350, 200, size=40), *column("A", 100, 300), *column("B", 700, 300)]
    assert order(content, ["Title", "A r", "B r"]) == ["Title", "A r", "B r"]


def test_text_under_columns_comes_last() -> None:
    under = lines([f"Z {PROSE} {PROSE}"] * 3, 100, 500)
    content = [*column("A", 100, 300), *column("B", 700, 300), *under]
    assert order(content, ["A r", "B r", "Z r"]) == ["A r", "B r", "Z r"]


def test_three_columns() -> None:
    content = [part for k, name in enumerate("ABC") for part in column(name, 60 + 520 * k, 300, 6)]
    assert order(content, ["A r", "B r", "C r"]) == ["A r", "B r", "C r"]


def test_a_text_across_the_page_between_columns() -> None:
    wide = lines([f"W {PROSE} {PROSE}"] * 3, 100, 460)
    content = [
        *column("A", 100, 300),
        *column("B", 700, 300),
        *wide,
        *column("C", 100, 600),
        *column("D", 700, 600),
    ]
    assert order(content, ["A r", "B r", "W r", "C r", "D r"]) == ["A r", "B r", "W r", "C r", "D r"]


def test_a_sidebar_follows_the_text_it_stands_beside() -> None:
    content = [*column("A", 100, 300), *column("B", 100, 450), *lines(["S note beside"] * 9, 700, 310)]
    assert order(content, ["A r", "B r", "S n"]) == ["A r", "B r", "S n"]


def test_a_picture_that_reaches_a_little_over_the_gutter_parts_no_columns() -> None:
    content = [*column("A", 100, 300), *column("B", 100, 700), *column("C", 700, 300), *column("D", 700, 700)]
    images = [BoundingBox(90, 450, 660, 680)]
    assert order(content, ["A r", "B r", "C r", "D r"], images=images) == ["A r", "B r", "C r", "D r"]


def test_arabic_columns_follow_each_other_from_right_to_left() -> None:
    arabic = "نص جار يملأ عموده حتى الحافة كاملا تقريبا هنا"
    content = [*lines([f"أول {arabic}"] * 4, 700, 300), *lines([f"ثان {arabic}"] * 4, 100, 300)]
    assert order(content, ["أول", "ثان"]) == ["أول", "ثان"]


def test_regions_over_a_gutter_are_given_up() -> None:
    content = [*column("A", 100, 300), *column("B", 700, 300)]
    over = region(RegionKind.TEXT, 90, 290, 1300, 420)
    assert order(content, ["A r", "B r"], (over,)) == ["A r", "B r"]


def test_columns_run_on_beside_a_picture_set_into_both() -> None:
    content = [
        *column("A", 100, 300),
        *column("B", 700, 300),
        *lines(["C narrow text beside it"] * 10, 100, 450),
        *lines(["D narrow text beside it"] * 10, 950, 450),
        *column("E", 100, 770),
        *column("F", 700, 770),
    ]
    names = ["A r", "C n", "E r", "B r", "D n", "F r"]
    assert order(content, names, images=[BoundingBox(420, 450, 880, 720)]) == names


def test_a_picture_over_both_columns_parts_them() -> None:
    content = [*column("A", 100, 300), *column("B", 700, 300), *column("C", 100, 800), *column("D", 700, 800)]
    names = ["A r", "B r", "C r", "D r"]
    assert order(content, names, images=[BoundingBox(100, 450, 1180, 780)]) == names
