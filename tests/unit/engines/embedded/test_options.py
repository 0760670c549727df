from __future__ import annotations

import pytest

from pagemill.domain.errors import ConfigurationError
from pagemill.engines.embedded.options import EmbeddedOptions, parse_options, usable_cores


def test_as_many_pages_as_cores_by_default() -> None:
    assert parse_options({}).workers == usable_cores()


def test_threads_share_the_cores() -> None:
    assert EmbeddedOptions(threads_per_page=64).workers == max(1, usable_cores() // 64)
    assert EmbeddedOptions(pages_in_flight=3, threads_per_page=2).workers == 3


@pytest.mark.parametrize("options", [{"pages_in_fligth": 2}, {"pages_in_flight": -1}, {"min_confidence": "much"}])
def test_wrong_options_are_named_together_with_the_right_ones(options: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError, match=rf"{next(iter(options))}.*pages_in_flight, threads_per_page"):
        parse_options(options)
