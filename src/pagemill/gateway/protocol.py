"""HTTP connections that end when their client is too slow.

uvicorn waits without end for the first request of a connection, for the rest of a request's head, for a client that
does not read its answer, and for the rest of a body that was refused. A few hundred such clients would keep everybody
else out.
"""

from __future__ import annotations

import asyncio
from typing import ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from pagemill.gateway.options import LimitOptions

_LOOKS = 5


def guarded_protocol(limits: LimitOptions) -> type[H11Protocol]:
    """The protocol for `uvicorn.Config(http=...)`.

    Args:
        limits: `head_s`, `answer_idle_s` and `connections` are kept here, the rest elsewhere.
    """
    return type(
        "GuardedProtocol",
        (_GuardedProtocol,),
        {"head_s": limits.head_s, "idle_s": limits.answer_idle_s, "most": limits.connections},
    )


class _GuardedProtocol(H11Protocol):
    """Looks now and then at what the connection waits for, and ends it when that took too long."""

    head_s: ClassVar[float]
    idle_s: ClassVar[float]
    most: ClassVar[int]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Takes a connection, unless there are too many."""
        super().connection_made(transport)
        self._owed = ""
        self._unsent = 0
        self._since = self.loop.time()
        self._next_look = self.loop.call_soon(self._look)
        if len(self.connections) > self.most:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends."""
        self._next_look.cancel()
        super().connection_lost(exc)

    def resume_writing(self) -> None:
        """The client has read a part of its answer."""
        self._since = self.loop.time()
        super().resume_writing()

    def on_response_complete(self) -> None:
        """The next request may come."""
        self._since = self.loop.time()
        super().on_response_complete()

    def _look(self) -> None:
        now = self.loop.time()
        unsent = self.transport.get_write_buffer_size()
        owed, limit = self._owed_by_client(unsent)
        if owed != self._owed or unsent < self._unsent:
            self._since = now
        self._owed, self._unsent = owed, unsent
        if owed and now - self._since >= limit:
            self.transport.abort()
        else:
            self._next_look = self.loop.call_later(min(self.head_s, self.idle_s) / _LOOKS, self._look)

    def _owed_by_client(self, unsent: int) -> tuple[str, float]:
        """What the client has to do next, and the seconds it has for that; empty where it is our turn."""
        if unsent:
            return "read", self.idle_s
        refused = self.conn.their_state is h11.SEND_BODY and self.conn.our_state in (h11.DONE, h11.MUST_CLOSE)
        if refused or self.conn.their_state is h11.IDLE:
            return "send", self.head_s
        return "", self.head_s
