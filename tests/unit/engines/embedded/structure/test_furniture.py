"""Headers and footers."""

from __future__ import annotations

import pytest

from pagemill.domain import BlockKind, BoundingBox
from pagemill.engines.embedded.elements import Line, Region, RegionKind, Rulings
from pagemill.engines.embedded.structure import build_blocks, render_markdown
from structure_pages import line, lines, page, region

BODY = lines(["The council approved the second phase of the river project", "and the work will start soon."], 200, 400)


def kinds(
    content: list[Line], regions: tuple[Region, ...] = (), rulings: Rulings | None = None
) -> dict[str, BlockKind]:
    blocks = build_blocks(page(content, regions, rulings)).blocks
    return {item.text: block.kind for block in blocks for item in block.lines}


@pytest.mark.parametrize("text", ["7", "- 7 -", "Page 7 of 32", "7 / 32", "xii", "Seite 7", "第 7 页", "7 von 32"])
def test_page_numbers(text: str) -> None:
    found = kinds([*BODY, line(text, 780, 2100)])
    assert found[text] is BlockKind.FOOTER
    assert found[BODY[0].text] is BlockKind.TEXT


def test_furniture_is_kept_as_blocks_and_left_out_of_the_body() -> None:
    content = [line("River Watch Handbook", 700, 90, size=16), *BODY, line("Page 7 of 32", 740, 2100, size=16)]
    blocks = build_blocks(page(content)).blocks
    assert [block.kind for block in blocks] == [BlockKind.HEADER, BlockKind.TEXT, BlockKind.FOOTER]
    assert render_markdown(blocks) == blocks[1].markdown + "\n"


def test_a_running_head_with_page_number_on_one_row() -> None:
    content = [line("Chapter Two", 200, 90), line("41", 1400, 90), *BODY]
    assert kinds(content)["41"] is BlockKind.HEADER


def test_a_running_head_over_a_ruling() -> None:
    rulings = Rulings((BoundingBox(200, 130, 1400, 132),))
    assert kinds([line("River Watch Handbook", 200, 100), *BODY], rulings=rulings)["River Watch Handbook"] is (
        BlockKind.HEADER
    )


def test_the_layout_model_may_tell() -> None:
    head = region(RegionKind.HEADER, 190, 90, 500, 130, score=0.8)
    assert kinds([line("River Watch Handbook", 200, 100), *BODY], (head,))["River Watch Handbook"] is BlockKind.HEADER


def test_the_top_of_a_letter_is_no_header() -> None:
    content = [line("Dear Ms Birkenfeld", 200, 120), *BODY]
    assert kinds(content)["Dear Ms Birkenfeld"] is BlockKind.TEXT


def test_a_last_line_of_the_text_is_no_footer() -> None:
    content = [*BODY, line("and this sentence ends at the foot of the page.", 200, 2120)]
    assert kinds(content)["and this sentence ends at the foot of the page."] is BlockKind.TEXT


def test_a_footnote_is_no_footer() -> None:
    note = "1 See the annual report of the council for more"
    assert kinds([*BODY, line(note, 200, 2100, size=14)])[note] is BlockKind.TEXT


def test_a_large_title_that_the_model_calls_header_is_a_heading() -> None:
    content = [line("Energy Balance", 200, 120, size=44), *BODY]
    head = region(RegionKind.HEADER, 190, 110, 600, 170, score=0.9)
    assert kinds(content, (head,))["Energy Balance"] is BlockKind.TITLE


def test_what_the_model_calls_footer_in_the_middle_is_text() -> None:
    content = [*BODY, line("Some lines in the middle", 200, 900)]
    foot = region(RegionKind.FOOTER, 190, 890, 600, 930, score=0.9)
    assert kinds(content, (foot,))["Some lines in the middle"] is BlockKind.TEXT


def test_a_stamp_in_the_margin_is_furniture() -> None:
    stamp = Line("arXiv:1706.03762v5", BoundingBox(30, 700, 60, 1300), vertical=True)
    assert kinds([*BODY, stamp])[stamp.text] is BlockKind.HEADER


def test_a_page_number_in_large_type() -> None:
    foot = region(RegionKind.FOOTER, 770, 2090, 820, 2130, score=0.6)
    assert kinds([*BODY, line("7", 780, 2100, size=28)], (foot,))["7"] is BlockKind.FOOTER
