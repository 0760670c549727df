"""List items."""

from __future__ import annotations

import pytest

from pagemill.domain import BlockKind
from pagemill.engines.embedded.elements import Line
from pagemill.engines.embedded.structure import build_blocks, render_markdown
from pagemill.engines.embedded.structure.lists import parse_marker
from structure_pages import line, lines, page


def markdown(content: list[Line]) -> str:
    return render_markdown(build_blocks(page(content)).blocks)


@pytest.mark.parametrize("bullet", ["•", "●", "▪", "◦", "–", "-", "・", "\uf0b7"])
def test_bullets_become_dashes(bullet: str) -> None:
    content = lines([f"{bullet} waders and a jacket", f"{bullet} a mobile phone"], 200, 400)
    assert markdown(content) == "- waders and a jacket\n- a mobile phone\n"


def test_a_bullet_that_stands_alone_goes_with_its_line() -> None:
    content = [line("•", 200, 400), line("waders", 240, 400), line("•", 200, 428), line("a phone", 240, 428)]
    assert markdown(content) == "- waders\n- a phone\n"


def test_numbers_are_kept() -> None:
    content = lines(["3. Mark the start.", "4. Measure the depth.", "5. Rinse the net."], 200, 400)
    assert markdown(content) == "3. Mark the start.\n4. Measure the depth.\n5. Rinse the net.\n"


def test_numbering_without_syntax_stands_behind_a_bullet() -> None:
    assert markdown(lines(["(a) first case", "(b) second case"], 200, 400)) == "- (a) first case\n- (b) second case\n"
    assert markdown(lines(["① 第一項目", "② 第二項目"], 200, 400)) == "- ① 第一項目\n- ② 第二項目\n"
    assert markdown(lines(["一、检查天气", "二、检查水位"], 200, 400)) == "- 一、检查天气\n- 二、检查水位\n"


def test_wrapped_items_go_on() -> None:
    content = [
        line("• The first item is long and goes on in", 200, 400),
        line("the next line", 220, 428),
        line("• The second is short", 200, 456),
    ]
    assert markdown(content) == "- The first item is long and goes on in the next line\n- The second is short\n"


def test_items_are_nested_by_indentation() -> None:
    content = [
        line("1. Outer item", 200, 400),
        line("• inner item", 240, 428),
        line("• inner item", 240, 456),
        line("2. Outer item", 200, 484),
    ]
    assert markdown(content) == "1. Outer item\n   - inner item\n   - inner item\n2. Outer item\n"


def test_items_in_regions_of_their_own_are_one_list() -> None:
    content = [line("• one", 200, 400), line("• two", 200, 445), line("• three", 200, 490)]
    blocks = build_blocks(page(content)).blocks
    assert [block.kind for block in blocks] == [BlockKind.LIST]


@pytest.mark.parametrize(
    "texts",
    [
        ["The reform was passed in the year", "1848. It changed the country."],
        ["A. Smith and his wife lived there", "until the war."],
        ["* p < 0.05 after correction"],
    ],
)
def test_what_only_looks_like_an_item(texts: list[str]) -> None:
    blocks = build_blocks(page(lines(texts, 200, 400))).blocks
    assert all(block.kind is not BlockKind.LIST for block in blocks)


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("12) text", "digit", 12),
        ("（3）文字", "wide", 3),
        ("iv. text", "roman", 4),
        ("b) text", "letter", 2),
        ("⑤ 文字", "circled", 5),
        ("（二）文字", "ideograph", 2),
        ("• text", "bullet •", 0),
    ],
)
def test_markers(text: str, kind: str, value: int) -> None:
    marker = parse_marker(text)
    assert marker is not None
    assert (marker.kind, marker.value) == (kind, value)


@pytest.mark.parametrize("text", ["3.5 metres", "1,200 people", "-5 degrees", "e.g. this", "text", ""])
def test_no_markers(text: str) -> None:
    assert parse_marker(text) is None
