"""What others may know of the servers, and a turn at one of them for requests that are not pages of ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import aiohttp

from pagemill.domain.errors import EngineError
from pagemill.engines.openai.endpoints import Dispatcher, Endpoint, Lease


class Slot:
    """A turn at a server; whoever has it says how its request ended.

    Args:
        lease: The turn.
        session: Connections to the server, with the key it wants.
        dispatcher: Learns of a success.
        note: Learns of a failure.
        replaces: Leaves a server alone where another one is in use; tells whether there is one.
    """

    def __init__(
        self,
        lease: Lease,
        session: aiohttp.ClientSession,
        dispatcher: Dispatcher,
        note: Callable[[Lease, EngineError], None],
        replaces: Callable[[Endpoint], bool],
    ) -> None:
        self._lease = lease
        self._dispatcher = dispatcher
        self._note = note
        self._replaces = replaces
        self.session = session

    @property
    def url(self) -> str:
        """Base URL of the server, ending in /v1 or in the path it was given with."""
        return self._lease.endpoint.url

    def succeeded(self, tokens: int) -> None:
        """The request ended well, with an answer of so many tokens."""
        self._dispatcher.succeeded(self._lease, tokens)

    def failed(self, error: EngineError) -> None:
        """The request failed; a server that fails again and again is left alone for a while."""
        self._note(self._lease, error)

    def refuses_all(self) -> bool:
        """The server refuses whatever comes from us; True where another one is in use and may be asked."""
        return self._replaces(self._lease.endpoint)


@dataclass(frozen=True, slots=True)
class EndpointStatus:
    """A server as it is now.

    Attributes:
        url: Its base URL.
        in_use: Whether it gets requests.
        in_flight: Requests it is working on.
        window: Requests that it may get at once.
        tokens_in_flight: Image tokens of those requests.
        completed: Requests that ended well.
        waiting: Requests in the server's own queue when it was last asked; 0 where it does not tell.
    """

    url: str
    in_use: bool
    in_flight: int
    window: int
    tokens_in_flight: int
    completed: int
    waiting: int

    @classmethod
    def of(cls, endpoint: Endpoint) -> EndpointStatus:
        """The status of an endpoint."""
        return cls(
            endpoint.url,
            not endpoint.set_aside,
            endpoint.busy,
            endpoint.window.limit,
            endpoint.tokens_in_flight,
            endpoint.completed,
            endpoint.queued,
        )
