"""Escaping and the page's Markdown."""

from __future__ import annotations

import pytest

from pagemill.domain import Block, BlockKind, BoundingBox
from pagemill.engines.embedded.structure.markdown import (
    escape_block,
    escape_cell,
    escape_heading,
    render_markdown,
)


@pytest.mark.parametrize(
    "text",
    [
        "It costs $20,000.",
        "from $5 to $10 a day",
        "$5-$10",
        "5 * 3 and 2 * 4",
        "snake_case_name",
        "x < 5 & y > 3",
        "AT&T [sic] (1) a|b",
        "a footnote* at the end",
        "Name: ________",
        "-5 degrees",
        "2.5 metres",
        "#hashtag",
        "C:\\temp",
    ],
)
def test_plain_text_stays_as_it_is(text: str) -> None:
    assert escape_block(text) == text


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("# not a heading", "\\# not a heading"),
        ("> no quote", "\\> no quote"),
        ("- no item", "\\- no item"),
        ("+ no item", "\\+ no item"),
        ("1. no item", "1\\. no item"),
        ("2024) no item", "2024\\) no item"),
        ("---", "\\---"),
        ("====", "\\===="),
        ("*no emphasis*", "\\*no emphasis*"),
        ("_no emphasis_", "\\_no emphasis_"),
        ("<b>no tag</b>", "\\<b>no tag\\</b>"),
        ("&amp; no entity", "\\&amp; no entity"),
        ("[no](link)", "\\[no](link)"),
        ("$x$ is no formula", "\\$x\\$ is no formula"),
        ("$$x$$", "\\$\\$x\\$\\$"),
        ("`no code`", "\\`no code\\`"),
        ("~~kept~~", "\\~\\~kept\\~\\~"),
        ("a \\* b", "a \\\\* b"),
        ("    indented", "indented"),
    ],
)
def test_what_would_be_syntax_is_escaped(text: str, escaped: str) -> None:
    assert escape_block(text) == escaped


def test_each_line_of_a_block_is_looked_at() -> None:
    assert escape_block("one\n# two") == "one\n\\# two"


def test_pipes_and_line_feeds_in_cells() -> None:
    assert escape_cell("a | b\nc") == "a \\| b<br>c"


def test_a_closing_run_of_hashes_in_a_heading() -> None:
    assert escape_heading("About C #") == "About C \\#"


def block(kind: BlockKind, markdown: str) -> Block:
    return Block(kind, markdown, BoundingBox(0, 0, 1, 1))


def test_body_without_furniture_and_one_newline_at_the_end() -> None:
    blocks = [
        block(BlockKind.HEADER, "running head"),
        block(BlockKind.TITLE, "# Title"),
        block(BlockKind.TEXT, "text"),
        block(BlockKind.LIST, "- a"),
        block(BlockKind.LIST, "- b"),
        block(BlockKind.TEXT, ""),
        block(BlockKind.FOOTER, "7"),
    ]
    assert render_markdown(blocks) == "# Title\n\ntext\n\n- a\n- b\n"


def test_nothing_is_nothing() -> None:
    assert render_markdown([]) == ""
