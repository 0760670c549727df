from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from pagemill.conversion import ConversionOptions, Enhancement, FurniturePolicy
from pagemill.domain import SamplingParams
from pagemill.domain.errors import ConfigurationError
from pagemill.jobs.options import DocumentOptions, conversion_options

SERVICE = ConversionOptions(pages="2-", page_markers=True, sampling=SamplingParams(temperature=0.3, max_tokens=777))


def test_what_a_client_leaves_out_stays_as_the_service_is_set() -> None:
    assert DocumentOptions().stored() == {}
    assert conversion_options(SERVICE, {}) == SERVICE


def test_what_a_client_sets_comes_before_the_service() -> None:
    given = DocumentOptions(
        pages="1,3", furniture=FurniturePolicy.KEEP, enhance=Enhancement.OFF, page_markers=False, temperature=0.0
    )
    options = conversion_options(SERVICE, given.stored())
    assert (options.pages, options.furniture, options.enhance) == ("1,3", FurniturePolicy.KEEP, Enhancement.OFF)
    assert options.page_markers is False
    assert options.sampling == SamplingParams(temperature=0.0, max_tokens=777)


def test_stored_options_are_plain_values_that_come_back_as_they_were() -> None:
    given = DocumentOptions(furniture=FurniturePolicy.KEEP, orient=False, top_p=0.5, max_tokens=10)
    stored = given.stored()
    assert all(type(value) in (str, bool, int, float) for value in stored.values())
    assert DocumentOptions.model_validate(stored) == given


@pytest.mark.parametrize(
    "wrong",
    [
        {"no_such_option": 1},
        {"temperature": 2.5},
        {"top_p": 0},
        {"max_tokens": 0},
        {"max_tokens": 40_000},
        {"furniture": "sometimes"},
        {"pages": "1," * 600},
    ],
)
def test_options_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        DocumentOptions.model_validate(wrong)


def test_page_ranges_are_looked_at_before_a_document_is_taken() -> None:
    DocumentOptions().check()
    DocumentOptions(pages="1-3,7,10-").check()
    with pytest.raises(ConfigurationError):
        DocumentOptions(pages="three").check()
