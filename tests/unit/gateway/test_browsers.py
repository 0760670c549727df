from __future__ import annotations

import pytest

from pagemill.domain.errors import PermissionDeniedError
from pagemill.gateway.browsers import check_no_foreign_page


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("127.0.0.1:8080", None),
        ("localhost", None),
        ("LOCALHOST:8080", "http://localhost:3000"),
        ("pagemill.localhost:8080", None),
        ("[::1]:8080", "http://[::1]:8080"),
        ("192.168.1.7:8080", None),
        ("gateway.example:8080", "https://Gateway.example"),
        ("192.168.1.7:8080", "http://192.168.1.7:3000"),
        (None, None),
    ],
)
def test_calls_by_address_or_own_name_are_let_through(host: str | None, origin: str | None) -> None:
    check_no_foreign_page(host, origin, "gateway.example")


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("evil.example:8080", None),
        ("evil.example", "http://evil.example"),
        ("localhost.evil.example:8080", None),
        ("evil-localhost", None),
        ("127.0.0.1.evil.example", None),
        ("127.0.0.1:8080", "https://evil.example"),
        ("127.0.0.1:8080", "http://127.0.0.1@evil.example"),
        ("127.0.0.1:8080", "http://203.0.113.9"),
        ("127.0.0.1:8080", "null"),
        ("127.0.0.1:8080", "file://"),
        ("127.0.0.1:8080", ""),
        ("", None),
        ("[::1", None),
    ],
)
def test_calls_of_foreign_pages_are_refused(host: str | None, origin: str | None) -> None:
    with pytest.raises(PermissionDeniedError, match="pagemill keys create"):
        check_no_foreign_page(host, origin, "127.0.0.1")
