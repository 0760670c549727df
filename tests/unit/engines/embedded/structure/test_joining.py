"""Joining lines to running text."""

from __future__ import annotations

import pytest

from pagemill.engines.embedded.structure.joining import Vocabulary


@pytest.mark.parametrize(
    ("first", "second", "joined"),
    [
        ("the river", "rises", "the river rises"),
        ("resto-", "ration of", "restoration of"),
        ("a well-", "known fact", "a well-known fact"),
        ("self-", "locking nuts", "self-locking nuts"),
        ("Nord-", "Süd", "Nord-Süd"),
        ("COVID-", "19", "COVID-19"),
        ("Vor-", "und Nachteile", "Vor- und Nachteile"),
        ("light- and heavy-", "duty trucks", "light- and heavy-duty trucks"),
        ("soft\u00ad", "hyphen", "softhyphen"),
        ("one –", "two", "one – two"),
        ("河流", "治理", "河流治理"),
        ("使用 Python", "编写", "使用 Python编写"),
        ("open", "source 软件", "open source 软件"),
        ("한국어", "문장", "한국어 문장"),
        ("see https://example.org/", "path", "see https://example.org/path"),
        ("", "alone", "alone"),
        ("alone", "", "alone"),
    ],
)
def test_join(first: str, second: str, joined: str) -> None:
    assert Vocabulary().join(first, second) == joined


def test_the_page_itself_tells_which_hyphens_belong_to_a_word() -> None:
    vocabulary = Vocabulary.of(["a non-profit trust", "the problemsolving team"])
    assert vocabulary.join("non-", "profit") == "non-profit"
    assert vocabulary.join("problem-", "solving") == "problemsolving"
    assert Vocabulary.of(["a multi-stage plan", "multistage"]).join("multi-", "stage") == "multistage"
