"""Headings and their levels."""

from __future__ import annotations

import pytest

from pagemill.domain import BlockKind
from pagemill.engines.embedded.elements import Line, RegionKind
from pagemill.engines.embedded.structure import build_blocks
from structure_pages import line, lines, page, read, region

BODY = ["The council approved the second phase of the river project", "and the work will start in the late autumn."]


def headings(content: list[Line], regions: tuple[object, ...] = (), index: int = 0) -> list[tuple[int, str]]:
    blocks = build_blocks(page(content, regions, index=index)).blocks  # type: ignore[arg-type]
    return [(b.level, b.markdown.lstrip("# ")) for b in blocks if b.kind is BlockKind.TITLE]


def document() -> list[Line]:
    return [
        line("Field Manual", 200, 200, size=36),
        *lines(BODY, 200, 280),
        line("1. Before You Go", 200, 380, size=26),
        *lines(BODY, 200, 430),
        line("1.1 Weather", 200, 530, size=23),
        *lines(BODY, 200, 580),
        line("Afterwards", 200, 680, size=26),
        *lines(BODY, 200, 730),
    ]


def test_levels_follow_size_and_numbering() -> None:
    assert headings(document()) == [(1, "Field Manual"), (2, "1. Before You Go"), (3, "1.1 Weather"), (2, "Afterwards")]


def test_bold_lines_that_lead_on_are_headings() -> None:
    content = [*lines(BODY, 200, 300), line("Weather", 200, 400, bold=True), *lines(BODY, 200, 430)]
    assert headings(content, index=3) == [(2, "Weather")]


def test_slanted_lines_that_lead_on_are_headings() -> None:
    content = [*lines(BODY, 200, 300), line("Boots Self-Locking Nut", 200, 400, italic=True), *lines(BODY, 200, 430)]
    assert headings(content, index=3) == [(2, "Boots Self-Locking Nut")]


def test_chinese_numbering() -> None:
    body = ["市议会批准了河流治理项目的第二阶段预算为三百四十八万元计划在深秋完工", "工程师将拆除两座堰坝"]
    content = [
        line("一、总则", 200, 300, size=24),
        *lines(body, 200, 350),
        line("（一）范围", 200, 450, size=22, bold=True),
        *lines(body, 200, 500),
    ]
    assert headings(content, index=2) == [(2, "一、总则"), (3, "（一）范围")]


@pytest.mark.parametrize(
    "odd",
    [
        line("Table 3. Costs of the work by year", 200, 400, bold=True),
        line("Total:", 200, 400, bold=True),
        line("and this bold line ends a sentence.", 200, 400, bold=True),
        line("3,482,000", 200, 400, size=30),
        line("• A bullet in large type goes on", 200, 400, size=30),
        line("E = mc2", 200, 400, size=30),
    ],
    ids=lambda item: item.text,
)
def test_no_headings(odd: Line) -> None:
    assert headings([*lines(BODY, 200, 300), odd, *lines(BODY, 200, 450)]) == []


def test_a_bold_label_beside_its_value_is_no_heading() -> None:
    content = [
        *lines(BODY, 200, 300),
        line("Invoice number", 200, 400, bold=True),
        line("42183017", 360, 400),
        *lines(BODY, 200, 440),
    ]
    assert headings(content) == []


def test_a_passage_in_large_type_is_no_heading() -> None:
    content = [*lines([*BODY, *BODY], 200, 300, size=30, pitch=40), *lines(BODY * 3, 200, 600)]
    assert headings(content) == []


def test_scans_tell_headings_by_height_and_the_layout_model() -> None:
    content = [
        read("Field Manual", 200, 200, height=44),
        read(BODY[0], 200, 300),
        read(BODY[1], 200, 328),
        read("Weather and water", 200, 400, height=26),
        read(BODY[0], 200, 450),
        read(BODY[1], 200, 478),
    ]
    title = region(RegionKind.TITLE, 190, 398, 400, 430, score=0.6)
    assert headings(content, (title,)) == [(1, "Field Manual"), (2, "Weather and water")]


def test_scans_tell_headings_by_the_weight_of_their_strokes() -> None:
    content = [
        read(BODY[0], 200, 300, stroke=2.0),
        read(BODY[1], 200, 328, stroke=2.1),
        read("Weather", 200, 400, stroke=3.2),
        read(BODY[0], 200, 450, stroke=2.0),
        read(BODY[1], 200, 478, stroke=2.0),
    ]
    assert headings(content, index=1) == [(2, "Weather")]


def test_a_numbered_title_in_a_scan_is_no_list_item() -> None:
    content = [
        read(BODY[0], 200, 300),
        read(BODY[1], 200, 328),
        read("2.2 Sampling Steps", 200, 400),
        read("1. Mark the start of the section.", 220, 450),
        read("2. Measure the depth of the water.", 220, 478),
    ]
    assert headings(content, index=1) == [(3, "2.2 Sampling Steps")]


def test_a_title_over_two_columns_of_a_newspaper_is_two() -> None:
    content = [
        line("Bridge to close", 200, 300, size=28),
        line("Choir wins at last", 820, 300, size=28),
        *lines(BODY * 2, 200, 350),
        *lines(BODY * 2, 820, 350),
    ]
    title = region(RegionKind.TITLE, 195, 295, 1100, 330, score=0.7)
    assert [text for _, text in headings(content, (title,))] == ["Bridge to close", "Choir wins at last"]


def test_a_heading_inside_a_region_of_text_in_a_scan_is_parted_from_it() -> None:
    content = [
        read(BODY[0], 200, 300, stroke=2.0),
        read(BODY[1], 200, 328, stroke=2.0),
        read("Weather", 200, 362, height=28, stroke=2.8),
        read(BODY[0], 200, 400, stroke=2.0),
        read(BODY[1], 200, 428, stroke=2.0),
    ]
    text = region(RegionKind.TEXT, 190, 295, 900, 460)
    assert headings(content, (text,), index=1) == [(2, "Weather")]


def test_headings_of_two_columns_beside_each_other() -> None:
    content = [
        line("Bridge to close for six weeks", 200, 300, bold=True),
        line("Choir wins at last this year", 530, 300, bold=True),
        *lines(["narrow text set in a column as", "newspapers have it everywhere"] * 2, 200, 330),
        *lines(["another text set in a column,", "which goes on beside the first"] * 2, 530, 330),
    ]
    titles = [text for _, text in headings(content, index=1)]
    assert titles == ["Bridge to close for six weeks", "Choir wins at last this year"]


def test_a_sentence_that_mentions_a_table_is_no_caption() -> None:
    blocks = build_blocks(
        page([line("Table 1 gives the medians of three classes", 200, 300), *lines(BODY, 200, 400)])
    ).blocks
    assert all(block.kind is BlockKind.TEXT for block in blocks)
