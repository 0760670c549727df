from __future__ import annotations

import pytest

from pagemill.bench.quality import Fact, Heading, Truth, score
from pagemill.bench.quality.tables import table_from_rows

TRUTH = Truth(
    language="en",
    text="Title here\nPlain text.\nMark it\nRinse it\na b\nc d",
    headings=(Heading(1, "Title here"),),
    list_items=("Mark it", "Rinse it"),
    tables=(table_from_rows([["a", "b"], ["c", "d"]]),),
    furniture=("Page 7",),
    order=("Title here", "Rinse it"),
    facts=(Fact("ok", "present", {"text": "Plain"}), Fact("no", "present", {"text": "Absent"}), Fact("m", "math", {})),
    fields=("Plain", 99.5),
)
PERFECT = "# Title here\n\nPlain text.\n\n1. Mark it\n2. Rinse it\n\n| a | b |\n|---|---|\n| c | d |\n"


def test_a_perfect_output() -> None:
    result = score(PERFECT, TRUTH)
    assert result.character_error_rate == 0
    assert result.words is not None
    assert (result.words.recall, result.words.precision) == (1, 1)
    assert result.headings is not None
    assert (result.headings.headings.f1, result.headings.levels_right) == (1, 1)
    assert result.list_items is not None
    assert result.list_items.f1 == 1
    assert result.tables is not None
    assert result.tables.grid_similarity == pytest.approx(1)
    assert result.tables.rows.correct == 2
    assert result.furniture_leaks == 0
    assert result.order is not None
    assert result.order.f1 == 1
    assert (result.facts_passed, result.facts_failed, result.facts_unsupported) == (1, ("no",), 1)
    assert result.fields is not None
    assert (result.fields.correct, result.fields.expected) == (1, 2)


def test_furniture_is_a_leak_and_not_a_character_error() -> None:
    result = score(f"{PERFECT}\nPage 7\n", TRUTH)
    assert (result.character_error_rate, result.furniture_leaks) == (0, 1)


def test_lost_structure_keeps_its_text() -> None:
    result = score("Title here\n\nPlain text.\n\nMark it\n\nRinse it\n\na b\n\nc d", TRUTH)
    assert result.character_error_rate == 0
    assert result.headings is not None
    assert result.headings.headings.correct == 0
    assert result.tables is not None
    assert (result.tables.grid_similarity, result.tables.tables.correct) == (0, 0)


def test_what_is_not_known_is_not_scored() -> None:
    result = score("anything", Truth("en"))
    assert (result.character_error_rate, result.headings, result.tables, result.fields) == (None, None, None, None)


def test_full_markdown_is_used_for_text_only() -> None:
    truth = Truth("en", text="Running head\nBody", headings=())
    result = score("Body", truth, full_markdown="# Running head\n\nBody")
    assert result.character_error_rate == 0
    assert result.headings is not None
    assert result.headings.headings.predicted == 0
