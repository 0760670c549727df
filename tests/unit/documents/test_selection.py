from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagemill.documents import PageSelection
from pagemill.domain import Page
from pagemill.domain.errors import ConfigurationError, InputError


def pages(count: int) -> tuple[Page, ...]:
    return tuple(Page(index, 100.0, 100.0) for index in range(count))


def chosen(text: str | None, count: int) -> list[int]:
    return [page.index + 1 for page in PageSelection.parse(text).apply(pages(count))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, [1, 2, 3, 4, 5, 6]),
        ("2", [2]),
        ("1-3", [1, 2, 3]),
        ("5-", [5, 6]),
        ("-2", [1, 2]),
        ("6,1", [1, 6]),
        ("2-4,3,3", [2, 3, 4]),
        (" 1 - 2 , 5 ", [1, 2, 5]),
        ("4-99", [4, 5, 6]),
        ("99,1", [1]),
    ],
)
def test_ranges_choose_each_page_once_in_order(text: str | None, expected: list[int]) -> None:
    assert chosen(text, 6) == expected


@pytest.mark.parametrize("text", ["", " ", ",", "1,,2", "a", "1-b", "3-1", "0", "-0", "1--2", "1.5", "-", "²"])
def test_nonsense_is_refused_with_the_part_that_is_wrong(text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        PageSelection.parse(text)
    assert text in str(caught.value)


def test_a_selection_that_leaves_nothing_names_the_number_of_pages() -> None:
    with pytest.raises(InputError, match=r"7-9 exists: the document has 3 pages"):
        PageSelection.parse("7-9").apply(pages(3))


def test_huge_numbers_cost_nothing() -> None:
    assert chosen("1-999999999999", 2) == [1, 2]


@given(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 40)), min_size=1, max_size=5))
def test_any_selection_survives_its_own_text(ranges: list[tuple[int, int]]) -> None:
    selection = PageSelection(tuple((first, first + more) for first, more in ranges))
    assert PageSelection.parse(str(selection)) == selection
