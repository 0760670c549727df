"""Paragraphs from lines."""

from __future__ import annotations

from pagemill.domain import BlockKind
from pagemill.engines.embedded.elements import Line
from pagemill.engines.embedded.structure import build_blocks, render_markdown
from structure_pages import line, lines, page

FULL = "a full line of running text that reaches the right margin"


def markdown(content: list[Line]) -> str:
    return render_markdown(build_blocks(page(content)).blocks)


def test_lines_that_follow_each_other_are_one_paragraph() -> None:
    assert markdown(lines([FULL, FULL, "and ends here."], 200, 400)) == f"{FULL} {FULL} and ends here.\n"


def test_a_wider_gap_starts_a_paragraph() -> None:
    first, second = lines([FULL, FULL], 200, 400), lines([FULL, FULL], 200, 480)
    assert markdown(first + second) == f"{FULL} {FULL}\n\n{FULL} {FULL}\n"


def test_an_indent_starts_a_paragraph() -> None:
    content = [*lines([FULL, FULL], 200, 400), line(f"The {FULL}"[:-4], 240, 456), *lines([FULL], 200, 484)]
    assert markdown(content).count("\n\n") == 1


def test_a_short_last_line_starts_a_paragraph_after_a_sentence() -> None:
    content = lines([FULL, "Short end.", f"The {FULL}"[:57], FULL], 200, 400)
    assert markdown(content).split("\n\n")[0] == f"{FULL} Short end."


def test_hanging_indents_start_each_entry_at_the_margin() -> None:
    content = [
        line("Adams, J. On rivers and the sediments that they carry to sea", 200, 400),
        line("in the north. Journal of Rivers, 1999, pages 1 to 99, and", 240, 428),
        line("the supplement of the same year.", 240, 456),
        line("Baker, K. On lakes and the fish that once lived in the deep", 200, 484),
        line("water of the Alps. Lake Studies, 2001.", 240, 512),
    ]
    assert markdown(content).count("\n\n") == 1


def test_addresses_keep_their_lines() -> None:
    content = lines(["Hotel Sankt Georg am See", "Uferweg 4", "88045 Friedrichshafen", "Deutschland"], 200, 400)
    assert markdown(content) == "Hotel Sankt Georg am See  \nUferweg 4  \n88045 Friedrichshafen  \nDeutschland\n"


def test_narrow_ragged_prose_is_no_address() -> None:
    content = lines(
        ["the quick brown fox jumps", "over the lazy dog that", "sleeps in the shade of a", "tree."], 200, 400
    )
    assert "  \n" not in markdown(content)


def test_a_label_keeps_its_value_on_its_line() -> None:
    content = [*lines(["Number:", "Date:"], 200, 400), *lines(["42183017", "3 August 2014"], 330, 400)]
    assert markdown(content) == "Number: 42183017  \nDate: 3 August 2014\n"


def test_blocks_carry_box_lines_and_confidence() -> None:
    content = lines([FULL, "and ends here."], 200, 400)
    (block,) = build_blocks(page(content)).blocks
    assert block.kind is BlockKind.TEXT
    assert [item.text for item in block.lines] == [FULL, "and ends here."]
    assert (block.box.left, block.box.top, block.box.bottom) == (200, 400, 448)
    assert block.confidence == 1.0


def test_arabic_paragraphs_start_at_the_right() -> None:
    arabic = "هذا سطر كامل من النص العربي الذي يصل إلى الهامش الآخر"
    content = [line(arabic, 200, 400), line(arabic, 200, 428), line("وينتهي هنا", 630, 456)]
    assert markdown(content) == f"{arabic} {arabic} وينتهي هنا\n"


def test_a_paragraph_goes_on_in_the_next_column() -> None:
    left = lines(["running text that fills its column to the very ed-"] * 4, 100, 300)
    right = lines(["ge of the page and then comes to its end in time."] * 4, 700, 300)
    text = markdown([*left, *right])
    assert "very edge of the page" in text
    assert "\n\n" not in text


def test_addresses_of_mail_and_web_keep_their_lines() -> None:
    content = lines(["Satoshi Nakamoto", "satoshin@gmx.com", "www.bitcoin.org"], 200, 400)
    assert markdown(content) == "Satoshi Nakamoto  \nsatoshin@gmx.com  \nwww.bitcoin.org\n"


def test_a_double_spaced_manuscript_has_paragraphs_too() -> None:
    content = [*lines([FULL] * 6, 200, 400, pitch=44), line("and ends here.", 200, 664)]
    assert markdown(content).count("\n\n") == 0
