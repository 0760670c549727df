from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagemill.bench.quality import character_error_rate, normalise, plain_text, word_overlap


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("# Title", "Title"),
        ("<!-- page 1 -->\nText", "\nText"),
        ("**bold** and *slanted* and _both_", "bold and slanted and both"),
        ("snake_case_name", "snake_case_name"),
        ("2 * 3 * 4", "2 * 3 * 4"),
        (r"\*not emphasis\* \# \|", "*not emphasis* # |"),
        ("![figure](a/b.png)Caption", "Caption"),
        ("see [the site](https://example.org)", "see the site"),
        ("[1] is no link", "[1] is no link"),
        ("- item\n- other", "item\nother"),
        ("a &amp; b &lt; c", "a & b < c"),
        ("<table><tr><td>a</td><td>b</td></tr></table>", "a b "),
        ("$5 and $6", "$5 and $6"),
        ("a<b and c>d", "a<b and c>d"),
    ],
)
def test_plain_text_is_what_a_reader_sees(markdown: str, expected: str) -> None:
    assert plain_text(markdown) == expected


def test_pipe_table_loses_its_frame() -> None:
    assert plain_text("| a | b |\n|---|---|\n| 1 | 2 |").split() == ["a", "b", "1", "2"]


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("„Zitat“ – ‚x‘", "de", "\"Zitat\" - 'x'"),
        ("long hyphen-\nated word", "en", "long hyphenated word"),
        ("North-\nSouth", "en", "North- South"),
        ("soft\u0002ly", "en", "softly"),
        ("ﬁne１", "en", "fine1"),
        ("你好， 世界。\n再见", "zh", "你好,世界.再见"),
        ("• item", "en", "item"),
        ("a\u00a0 b\n\nc", "fr", "a b c"),
    ],
)
def test_normalise(text: str, language: str, expected: str) -> None:
    assert normalise(text, language) == expected


@given(st.text(), st.sampled_from(["en", "zh", "ar"]))
def test_normalise_settles_at_once(text: str, language: str) -> None:
    once = normalise(text, language)
    assert normalise(once, language) == once


def test_character_error_rate_counts_edits_per_true_character() -> None:
    assert character_error_rate("kitten", "kitten") == 0
    assert character_error_rate("sitting", "kitten") == pytest.approx(3 / 6)
    assert character_error_rate("abcdef", "abc") == pytest.approx(1)


def test_any_text_on_an_empty_page_is_an_error() -> None:
    assert character_error_rate("", "") == 0
    assert character_error_rate("ghost", "") == 1


def test_word_overlap_tells_lost_words_from_invented_ones() -> None:
    lost = word_overlap("one two", "two one three four", "en")
    assert (lost.recall, lost.precision) == (0.5, 1.0)
    invented = word_overlap("one two two", "one two", "en")
    assert (invented.recall, invented.precision) == (1.0, pytest.approx(2 / 3))


def test_word_overlap_of_chinese_compares_pairs_of_characters() -> None:
    overlap = word_overlap("河流治理", "治理河流", "zh")
    assert overlap.recall == pytest.approx(2 / 3)
