from __future__ import annotations

import pytest

from pagemill.domain import ApiKey
from pagemill.domain.errors import AuthenticationError, PermissionDeniedError
from pagemill.gateway.auth import Authenticator, Caller, is_loopback
from pagemill.gateway.options import GatewayOptions


class Keys:
    """Keys by their text."""

    def __init__(self, **keys: ApiKey) -> None:
        self.keys = keys
        self.asked: list[str] = []

    async def all_keys(self) -> list[ApiKey]:
        return list(self.keys.values())

    async def find(self, key: str) -> ApiKey | None:
        self.asked.append(key)
        return self.keys.get(key)


ALICE = ApiKey("key_a", "alice", admin=False, created_at=0.0)
ROOT = ApiKey("key_r", "root", admin=True, created_at=0.0)


def authenticator(keys: Keys, **options: object) -> Authenticator:
    return Authenticator(keys, GatewayOptions.model_validate(options))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("auth", "host", "keys", "required"),
    [
        ("auto", "127.0.0.1", Keys(), False),
        ("auto", "localhost", Keys(), False),
        ("auto", "::1", Keys(), False),
        ("auto", "127.0.0.1", Keys(a=ALICE), True),
        ("auto", "0.0.0.0", Keys(), True),
        ("auto", "gateway.internal", Keys(), True),
        ("required", "127.0.0.1", Keys(), True),
        ("off", "0.0.0.0", Keys(a=ALICE), False),
    ],
)
async def test_when_keys_are_asked_for(auth: str, host: str, keys: Keys, required: bool) -> None:
    assert await authenticator(keys, auth=auth, host=host).required() is required


async def test_a_key_says_who_calls_and_what_they_see() -> None:
    keys = authenticator(Keys(a=ALICE, r=ROOT), auth="required")
    alice = await keys.identify("a", host="x", origin=None)
    assert (alice, alice.scope) == (Caller("key_a", admin=False), "key_a")
    assert (await keys.identify("r", host="x", origin=None)).scope is None


@pytest.mark.parametrize("key", [None, "", "b"])
async def test_without_a_valid_key_nobody_gets_in(key: str | None) -> None:
    with pytest.raises(AuthenticationError):
        await authenticator(Keys(a=ALICE), auth="required").identify(key, host="x", origin=None)


async def test_endless_keys_are_not_even_looked_up() -> None:
    keys = Keys(a=ALICE)
    with pytest.raises(AuthenticationError):
        await authenticator(keys, auth="required").identify("a" * 10_000, host="x", origin=None)
    assert keys.asked == []


async def test_without_keys_any_key_will_do_but_no_foreign_page() -> None:
    keys = authenticator(Keys())
    assert (await keys.identify("whatever", host="127.0.0.1:8080", origin=None)).scope is None
    with pytest.raises(PermissionDeniedError):
        await keys.identify(None, host="evil.example", origin=None)
    with pytest.raises(PermissionDeniedError):
        await keys.identify(None, host="127.0.0.1:8080", origin="https://evil.example")


@pytest.mark.parametrize(("host", "local"), [("127.0.0.9", True), ("192.0.2.1", False), ("example.com", False)])
def test_what_is_on_this_machine_alone(host: str, local: bool) -> None:
    assert is_loopback(host) is local
