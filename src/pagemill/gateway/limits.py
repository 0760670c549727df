"""Bounds on the bodies of requests, kept while they stream in: bytes, and seconds."""

from __future__ import annotations

import asyncio
import time

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pagemill.domain.errors import BodyTooLargeError, BodyTooSlowError, PagemillError, RequestError
from pagemill.gateway.errors import error_response
from pagemill.gateway.options import LimitOptions


class BodyLimits:
    """ASGI middleware that ends requests whose bodies are too large or too slow.

    Whatever the application makes of the failed body, the answer is ours: frameworks like to hide such errors.

    Args:
        app: The application.
        limits: `body_bytes`, `json_bytes`, `body_idle_s` and `body_total_s` are kept here.
    """

    def __init__(self, app: ASGIApp, limits: LimitOptions) -> None:
        self._app = app
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Takes a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        most = self._most_bytes(headers)
        try:
            _check_length(headers, most)
        except RequestError as error:
            await error_response(error)(scope, receive, send)
            return
        body = _Body(receive, most, self._limits)
        answer = _Answer(send, body)
        try:
            await self._app(scope, body.receive, answer.send)
        except PagemillError:
            if body.failure is None:
                raise
        if body.failure is not None and not answer.started:
            await error_response(body.failure)(scope, receive, send)

    def _most_bytes(self, headers: Headers) -> int:
        media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        is_json = media_type == "application/json" or media_type.endswith("+json")
        return self._limits.json_bytes if is_json else self._limits.body_bytes


def _check_length(headers: Headers, most: int) -> None:
    text = headers.get("content-length")
    if text is None:
        return
    if not text.isascii() or not text.isdigit():
        raise RequestError("The header Content-Length is no number.", "Send the length of the body in bytes.")
    # Numbers of thousands of digits cannot even be converted.
    if len(text) > 18 or int(text) > most:
        raise _too_large(most)


def _too_large(most: int) -> BodyTooLargeError:
    return BodyTooLargeError(
        f"The body of the request is larger than {most} bytes.",
        "Send smaller documents, or have gateway.limits.body_bytes and gateway.limits.json_bytes raised by who runs "
        "the service.",
    )


class _Body:
    """The body as it arrives."""

    def __init__(self, receive: Receive, most: int, limits: LimitOptions) -> None:
        self._receive = receive
        self._most = most
        self._limits = limits
        self._ends_at = time.monotonic() + limits.body_total_s
        self._size = 0
        self._complete = False
        self.failure: PagemillError | None = None

    async def receive(self) -> Message:
        if self._complete:
            # What comes now is the end of the connection, and may be long in coming.
            return await self._receive()
        if self.failure is not None:
            raise self.failure
        left = self._ends_at - time.monotonic()
        try:
            message = await asyncio.wait_for(self._receive(), max(0.0, min(left, self._limits.body_idle_s)))
        except asyncio.TimeoutError:
            self.failure = BodyTooSlowError(
                f"The body of the request did not arrive: more than {self._limits.body_idle_s:g} s without a byte, "
                f"or {self._limits.body_total_s:g} s in all.",
                "Send it over a faster connection.",
            )
            raise self.failure from None
        if message["type"] == "http.request":
            self._size += len(message.get("body", b""))
            self._complete = not message.get("more_body", False)
            if self._size > self._most:
                self.failure = _too_large(self._most)
                raise self.failure
        return message


class _Answer:
    """The answer as it is sent; one that follows upon a failed body is dropped."""

    def __init__(self, send: Send, body: _Body) -> None:
        self._send = send
        self._body = body
        self.started = False

    async def send(self, message: Message) -> None:
        if self._body.failure is not None and not self.started:
            return
        self.started = True
        await self._send(message)
