from __future__ import annotations

import pytest

from pagemill.api import choose_engine
from pagemill.domain.errors import ConfigurationError
from pagemill.engines.openai.options import parse_options, without_userinfo


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://anna:s3cret@host/v1", "https://host/v1"),
        ("anna:s3cret@host:8000", "host:8000"),
        ("anna@host", "host"),
        ("ftp://anna:s3@cret@host", "ftp://host"),
        ("http://host/v1/@home?mail=a@b", "http://host/v1/@home?mail=a@b"),
        ("host:8000/v1", "host:8000/v1"),
    ],
)
def test_user_and_password_are_left_out_of_what_is_shown(url: str, shown: str) -> None:
    assert without_userinfo(url) == shown
    assert "cret" not in choose_engine("auto", [url]).reason


@pytest.mark.parametrize(
    "options",
    [
        {"endpoints": ["ftp://anna:s3cret@host"]},
        {"endpoints": ["host"], "routes": [{"languages": ["zh"], "endpoint": "anna:s3cret@other"}]},
    ],
)
def test_errors_do_not_show_passwords(options: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_options(options)
    assert "s3cret" not in str(caught.value)
    assert "anna" not in str(caught.value)


def test_a_route_names_its_endpoint_without_the_password() -> None:
    routes = [{"languages": ["zh"], "endpoint": "https://host/v1"}]
    assert parse_options({"endpoints": ["https://anna:s3cret@host/v1"], "routes": routes}).routes
