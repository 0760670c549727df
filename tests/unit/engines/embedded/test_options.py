from __future__ import annotations

import pytest

from pagemill.domain.errors import ConfigurationError
from pagemill.engines.embedded.options import parse_options, usable_cores


def test_as_many_threads_and_pages_as_cores_by_default() -> None:
    options = parse_options({})
    assert (options.line_threads, options.page_threads) == (usable_cores(), usable_cores())


def test_threads_and_pages_can_be_set() -> None:
    assert (parse_options({"threads": 3}).line_threads, parse_options({"threads": 3}).page_threads) == (3, 3)
    options = parse_options({"threads": 4, "pages_in_flight": 1})
    assert (options.line_threads, options.page_threads) == (4, 1)


@pytest.mark.parametrize("options", [{"pages_in_fligth": 2}, {"pages_in_flight": -1}, {"min_confidence": "much"}])
def test_wrong_options_are_named_together_with_the_right_ones(options: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError, match=rf"{next(iter(options))}.*threads, pages_in_flight"):
        parse_options(options)
