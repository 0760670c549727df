from __future__ import annotations

import pytest

from pagemill.bench.quality.fields import field_values, is_shown, is_telling


@pytest.mark.parametrize(
    ("value", "text", "shown"),
    [
        (1234.5, "Total 1.234,50 €", True),
        (1234.5, "Total $1,234.50", True),
        (1234.5, "Total 1 234,50", True),
        (1234.5, "Total 11.234,50", False),
        (4.11, "sum 14.11", False),
        (4.11, "sum 4.115", False),
        (42.0, "42 pieces", True),
        ("0.01", "each 0,01", True),
        ("2014-08-03", "am 03.08.2014", True),
        ("2014-08-03", "August 03, 2014", True),
        ("2014-08-03", "08.2014", False),
        ("2014-99-03", "2014-99-03", True),
        ("Acme GmbH", "an ACME GmbH, Berlin", True),
        ("ab", "abc", False),
    ],
)
def test_values_are_found_in_usual_spellings_only(value: str | float, text: str, shown: bool) -> None:
    assert is_shown(value, text) is shown


def test_leaves_of_nested_json() -> None:
    assert field_values([{"a": 1.5, "b": ["x", {"c": "y"}], "d": None, "e": True, "f": ""}]) == [1.5, "x", "y"]


@pytest.mark.parametrize(
    ("value", "telling"), [(1, False), (1.0, False), (0.5, True), (12, True), ("US", False), ("EUR", True)]
)
def test_short_values_tell_nothing(value: str | float, telling: bool) -> None:
    assert is_telling(value) is telling
