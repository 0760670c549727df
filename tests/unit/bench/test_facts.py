from __future__ import annotations

from typing import Any

import pytest

from pagemill.bench.quality import Fact, FactVerdict, check_fact, facts_from_jsonl

TABLE = "| Type | Words | Bytes |\n|---|---|---|\n| Web | 3.71T | 1.2 |\n| Code | 3.32T | 21.3 |"


def verdict(markdown: str, kind: str, **values: Any) -> FactVerdict:
    return check_fact(Fact("f", kind, values), markdown)


@pytest.mark.parametrize(
    ("kind", "values", "markdown", "holds"),
    [
        ("present", {"text": "It's “so”"}, 'and it: It\'s "so".', True),
        ("present", {"text": "colour"}, "color", False),
        ("present", {"text": "colour", "max_diffs": 1}, "the color", True),
        ("present", {"text": "a much longer sentence"}, "sentence", False),
        ("present", {"text": "Title", "case_sensitive": False}, "TITLE", True),
        ("present", {"text": "end", "first_n": 5}, "start and end", False),
        ("absent", {"text": "Page 3"}, "text\n\n<!-- Page 3 -->", True),
        ("absent", {"text": "Page 3"}, "text\n\nPage 3", False),
        ("absent", {"text": "1", "last_n": 4}, "1 at the start only", True),
        ("absent", {"text": "anything"}, "", True),
        ("order", {"before": "one", "after": "two"}, "one two", True),
        ("order", {"before": "one", "after": "two"}, "two one", False),
        ("order", {"before": "one", "after": "two"}, "two one two", True),
        ("order", {"before": "one", "after": "two"}, "two", False),
        ("baseline", {"max_length": 3}, "# --", True),
        ("baseline", {"max_length": 3}, "ghost text", False),
        ("baseline", {}, "", False),
        ("table", {"cell": "3.32T", "up": "3.71T", "left": "Code", "right": "21.3"}, TABLE, True),
        ("table", {"cell": "3.71T", "down": "3.32T"}, TABLE, True),
        ("table", {"cell": "3.32T", "top_heading": "Words", "left_heading": "Code"}, TABLE, True),
        ("table", {"cell": "3.32T", "top_heading": "Bytes"}, TABLE, False),
        ("table", {"cell": "3.32T", "down": "3.71T"}, TABLE, False),
        ("table", {"cell": "3.32T"}, "3.32T", False),
    ],
)
def test_facts(kind: str, values: dict[str, Any], markdown: str, holds: bool) -> None:
    assert verdict(markdown, kind, **values) is (FactVerdict.PASSED if holds else FactVerdict.FAILED)


def test_formulas_and_unknown_kinds_are_not_judged() -> None:
    assert verdict("$$a$$", "math", math="a") is FactVerdict.UNSUPPORTED
    assert verdict("x", "future") is FactVerdict.UNSUPPORTED


def test_facts_are_read_from_lines() -> None:
    (fact,) = facts_from_jsonl('\n{"id": "a", "type": "present", "text": "x"}\n')
    assert (fact.id, fact.kind, fact.values["text"]) == ("a", "present", "x")


def test_a_line_that_is_no_fact_is_named() -> None:
    with pytest.raises(ValueError, match="Line 2"):
        facts_from_jsonl('{"id": "a", "type": "present"}\n{"id": "b"}')
