"""HTTP connections that end when their client is too slow, and requests that can be read in one way only.

uvicorn waits without end for the first request of a connection, for the rest of a request's head, for a client that
does not read its answer, and for the rest of a body that was refused. A few hundred such clients would keep everybody
else out.

h11 takes heads that others read differently: with a length and chunks at once, with lines that go on in the next one,
with line feeds alone. Behind a proxy, such a head can smuggle a second request past it.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any, ClassVar

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from pagemill.domain.errors import RequestError
from pagemill.gateway.errors import error_response
from pagemill.gateway.options import LimitOptions

_LOOKS = 5
_TWO_LENGTHS = {b"content-length", b"transfer-encoding"}
_HEAD_BYTES = 32 * 2**10
_AMBIGUOUS_LINE = re.compile(rb"(?<!\r)\n|\n[ \t]")


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


class _StrictConnection(h11.Connection):
    """Refuses heads of requests that others may read differently."""

    def next_event(self) -> type[h11.NEED_DATA | h11.PAUSED] | h11.Event:
        """The next thing that has arrived.

        Raises:
            h11.RemoteProtocolError: It is not as it must be.
        """
        before = self.trailing_data[0] if self.their_state is h11.IDLE else b""
        event = super().next_event()
        if isinstance(event, h11.Request):
            head = before[: len(before) - len(self.trailing_data[0])]
            names = {name for name, _ in event.headers}
            if len(head) > _HEAD_BYTES or _AMBIGUOUS_LINE.search(head) or names >= _TWO_LENGTHS:
                raise h11.RemoteProtocolError("The head of the request is ambiguous or too long")
        return event


class _GuardedProtocol(H11Protocol):
    """Looks now and then at what the connection waits for, and ends it when that took too long."""

    head_s: ClassVar[float]
    idle_s: ClassVar[float]
    most: ClassVar[int]

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.conn = _StrictConnection(h11.SERVER, _HEAD_BYTES)

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

    def send_400_response(self, msg: str) -> None:
        """Answers a request that is no HTTP, in the form of all our errors, and ends the connection."""
        answer = error_response(
            RequestError(f"{msg.removesuffix('.')}.", "Write it as RFC 9112 says, in one way that all read alike.")
        )
        headers = [*answer.raw_headers, (b"connection", b"close")]
        for event in (
            h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
            h11.Data(data=bytes(answer.body)),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

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
