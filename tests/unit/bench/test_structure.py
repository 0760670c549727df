from __future__ import annotations

from pagemill.bench.quality.structure import (
    Heading,
    furniture_leaks,
    headings_in,
    list_items_in,
    score_headings,
    score_list_items,
    score_order,
    without_furniture,
    without_item_numbers,
)
from pagemill.bench.quality.tables import Matches


def test_headings_are_found_with_their_levels() -> None:
    markdown = "# One\n\ntext # no\n\n### **Two** ##\n\n<!-- # hidden -->\n#nospace"
    assert headings_in(markdown) == [Heading(1, "One"), Heading(3, "Two")]


def test_heading_score_counts_levels_and_inventions() -> None:
    expected = [Heading(1, "Title of it"), Heading(2, "First part"), Heading(2, "Last part")]
    score = score_headings("# Title of it\n\n# First part\n\n## Something else", expected, "en")
    assert score.headings == Matches(2, 3, 3)
    assert score.levels_right == 1


def test_a_misread_letter_does_not_lose_a_heading_and_each_counts_once() -> None:
    expected = [Heading(2, "Monitoring Tables"), Heading(2, "Monitoring Tables")]
    assert score_headings("## Monitorlng Tables", expected, "en").headings == Matches(1, 1, 2)


def test_list_items_of_all_kinds() -> None:
    markdown = "- one\n* two\n1. three\n2) four\n   - five\n\nno item\n\n- \n1987 was a year"
    assert list_items_in(markdown) == ["one", "two", "three", "four", "five"]


def test_list_items_are_scored_by_text() -> None:
    assert score_list_items("- Mark the start\n- other thing", ["Mark the start", "Rinse"], "en") == Matches(1, 2, 2)


def test_order_counts_neighbours() -> None:
    snippets = ["alpha one", "beta two", "gamma three"]
    assert score_order("alpha one, beta two, gamma three", snippets, "en") == Matches(2, 2, 2)
    assert score_order("alpha one, gamma three, beta two", snippets, "en") == Matches(1, 2, 2)
    assert score_order("alpha one, beta two", snippets, "en") == Matches(1, 2, 2)


def test_furniture_in_comments_does_not_leak() -> None:
    furniture = ["River Watch Handbook", "Page 7 of 32"]
    assert furniture_leaks("<!-- River Watch Handbook -->\ntext\n\nPage 7 of 32", furniture, "en") == 1


def test_furniture_lines_are_taken_out_whole() -> None:
    assert without_furniture("Page 7\ntext on Page 7", ["Page 7"], "en") == "text on Page 7"


def test_numbers_are_dropped_from_known_items_only() -> None:
    markdown = "1. Mark the start.\n2. Other\n3.1 Section"
    assert without_item_numbers(markdown, ["Mark the start."], "en") == "Mark the start.\n2. Other\n3.1 Section"
