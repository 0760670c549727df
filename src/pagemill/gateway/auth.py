"""Who calls: API keys, and whether they are asked for."""

from __future__ import annotations

import ipaddress
import time
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import APIKeyHeader, HTTPAuthorizationCredentials, HTTPBearer

from pagemill.domain.errors import AuthenticationError
from pagemill.gateway.browsers import check_no_foreign_page
from pagemill.gateway.options import GatewayOptions
from pagemill.jobs.store import KeyStore

ANONYMOUS = "anonymous"
"""Owner of the jobs of a service that asks for no keys."""

_KEYS_KNOWN_FOR_S = 2.0
_LONGEST_KEY = 512


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request.

    Attributes:
        key_id: Id of the key; `ANONYMOUS` where none is asked for.
        admin: Whether it sees the jobs of all.
    """

    key_id: str
    admin: bool

    @property
    def scope(self) -> str | None:
        """The key whose jobs it sees; None for all."""
        return None if self.admin else self.key_id


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address to listen on."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Authenticator:
    """Checks API keys.

    Args:
        keys: Where they are kept.
        options: `auth` and `host`.
    """

    def __init__(self, keys: KeyStore, options: GatewayOptions) -> None:
        self._keys = keys
        self._options = options
        self._local = is_loopback(options.host)
        self._have_keys = False
        self._known_until = 0.0

    async def required(self) -> bool:
        """Whether requests need a key now; a key that was made while the service runs counts within seconds."""
        if self._options.auth != "auto":
            return self._options.auth == "required"
        if not self._local:
            return True
        if time.monotonic() >= self._known_until:
            # Keys that were withdrawn count: taking away the last one must not open the service to all.
            self._have_keys = bool(await self._keys.all_keys())
            self._known_until = time.monotonic() + _KEYS_KNOWN_FOR_S
        return self._have_keys

    async def identify(self, key: str | None, *, host: str | None, origin: str | None) -> Caller:
        """Who calls.

        Args:
            key: The key that was sent; ignored where none is asked for.
            host: The header Host.
            origin: The header Origin.

        Raises:
            AuthenticationError: A key is needed, and this is none.
            PermissionDeniedError: No key is needed, and a web page of others calls.
        """
        if not await self.required():
            if self._local:
                check_no_foreign_page(host, origin, self._options.host)
            return Caller(ANONYMOUS, admin=True)
        if not key:
            raise AuthenticationError(
                "The request has no API key.",
                "Send `Authorization: Bearer KEY`; keys are made with `pagemill keys create NAME`.",
            )
        found = await self._keys.find(key) if len(key) <= _LONGEST_KEY else None
        if found is None:
            raise AuthenticationError(
                "The API key is unknown or was withdrawn.", "Check it, or have a new one made: `pagemill keys create`."
            )
        return Caller(found.id, found.admin)


_bearer = HTTPBearer(auto_error=False, description="An API key, see `pagemill keys`.")
_header = APIKeyHeader(name="X-API-Key", auto_error=False, description="The same key, for clients without Bearer.")


async def caller_of(
    request: Request,
    bearer: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
    header: Annotated[str | None, Depends(_header)],
) -> Caller:
    """Dependency of routes: who calls.

    Raises:
        AuthenticationError, PermissionDeniedError: See `Authenticator.identify`.
    """
    authenticator: Authenticator = request.app.state.authenticator
    caller = await authenticator.identify(
        bearer.credentials if bearer is not None else header,
        host=request.headers.get("host"),
        origin=request.headers.get("origin"),
    )
    request.state.key_id = caller.key_id
    return caller


CallerDependency = Annotated[Caller, Depends(caller_of)]
