"""Requests of the OpenAI chat API passed on to the engine's servers, answers passed back as they come.

A request waits its turn at the gate and then at a server. As long as no byte of an answer has gone out, it is sent
again when its server fails or is full; after that, the client is told within the stream.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import time
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pydantic_core
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from pagemill.domain.errors import (
    EngineError,
    EngineOverloadedError,
    EngineUnavailableError,
    PagemillError,
    PageQuarantinedError,
    QueueFullError,
    RequestRejectedError,
)
from pagemill.engines.openai.discovery import is_alive
from pagemill.engines.openai.engine import OpenAIEngine
from pagemill.engines.openai.exchange import transport_errors
from pagemill.engines.openai.slots import Slot
from pagemill.engines.openai.wire import StreamParser, error_of_response
from pagemill.gateway.chat_request import ChatRequest, read_chat_request
from pagemill.gateway.disconnect import unless_gone
from pagemill.gateway.errors import error_body, error_response
from pagemill.gateway.runtime import Services
from pagemill.jobs.gate import CLAIMANT, Claimant
from pagemill.telemetry import get_logger, outgoing_headers

_ATTEMPTS = 5
_DEATHS = 2
_FIRST_PAUSE_S, _SHORTEST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 0.1, 30.0
_CONNECT_S = 10.0
_FIRST_GUESS = 1000
_SMOOTHING = 0.05
_ERROR_BYTES = 64 * 1024
_PIECE_BYTES = 256 * 1024
_TAIL_BYTES = 2048
_EVENTS = "text/event-stream"
_ABORTED = re.compile(rb'"finish_reason":\s*"abort"')
_PROMPT_TOKENS = re.compile(rb'"prompt_tokens":\s*(\d+)')
_ANSWER_TOKENS = re.compile(rb'"completion_tokens":\s*(\d+)')
_PASSING = frozenset({408, 425, 429})
_SLOW = "See conversion.page_timeout_s."
_OURS = frozenset({401, 403, 407})
"""Answers that tell of the way from us to the server, not of the client's request."""

_log = get_logger("pagemill.gateway")


class _RefusedError(RequestRejectedError):
    """The server refused the request, with this status."""

    def __init__(self, status: int, message: str, param: str | None) -> None:
        super().__init__(message)
        self.status = status
        self.param = param


class ChatProxy:
    """Passes requests on.

    Args:
        services: Gate, metrics and settings.
        engine: Knows the servers.
    """

    def __init__(self, services: Services, engine: OpenAIEngine) -> None:
        self._services = services
        self._engine = engine
        self._timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=_CONNECT_S, sock_read=services.conversion.page_timeout_s
        )
        self._answer_tokens = float(_FIRST_GUESS)
        self._held_bytes = 0

    @contextlib.asynccontextmanager
    async def request(self, received: Request) -> AsyncIterator[ChatRequest]:
        """The request, which is in memory for as long as the block lasts.

        Raises:
            QueueFullError: Too much is in memory already.
            RequestError, InputError: See `read_chat_request`.
        """
        options = self._services.options
        chunks: list[bytes] = []
        held = 0
        try:
            async for chunk in received.stream():
                held += len(chunk)
                self._held_bytes += len(chunk)
                if self._held_bytes > options.waiting_bytes:
                    waiting = self._services.gate.waiting
                    raise QueueFullError(
                        "The requests that wait are too large together.", "Try again later.", queued=waiting
                    )
                chunks.append(chunk)
            body = b"".join(chunks)
            chunks.clear()
            chat = await read_chat_request(
                body,
                model=self._engine.model,
                max_long_side=self._engine.capabilities.max_long_side,
                fetch=options.fetch,
                max_bytes=options.limits.body_bytes,
            )
            del body
            yield chat
        finally:
            self._held_bytes -= held

    async def relay(self, chat: ChatRequest, send: Send) -> None:
        """Answers a request.

        Args:
            chat: The request.
            send: Where the answer goes.

        Raises:
            PagemillError: There is no answer, and nothing was sent.
        """
        async with self._services.gate.enter(self._expected_tokens(chat)):
            pause, deaths = _FIRST_PAUSE_S, 0
            ends_at = time.monotonic() + self._services.conversion.page_timeout_s
            for attempt in range(1, _ATTEMPTS + 1):
                try:
                    await self._once(chat, send)
                except EngineError as error:
                    _log.info("chat request failed", code=error.code, attempt=attempt, error=str(error))
                    deaths += isinstance(error, EngineUnavailableError) and error.while_reading
                    if not error.retryable or attempt == _ATTEMPTS or time.monotonic() >= ends_at:
                        raise
                    if deaths == _DEATHS:
                        raise PageQuarantinedError(
                            f"The server died {deaths} times while it worked on the request.", "Do not send it again."
                        ) from error
                    if isinstance(error, EngineOverloadedError):
                        wanted = pause if error.retry_after is None else error.retry_after
                        await asyncio.sleep(min(_LONGEST_PAUSE_S, max(_SHORTEST_PAUSE_S, wanted)))
                        pause *= 2
                else:
                    return

    def _expected_tokens(self, chat: ChatRequest) -> int:
        # What is asked for is a bound; clients name thousands where hundreds come.
        usual = round(self._answer_tokens)
        tokens = chat.tokens + min(usual, chat.max_tokens or usual) * chat.answers
        # Whoever asks for more than servers give must not empty the window for it.
        return min(tokens, self._services.gate.window_tokens // 2)

    async def _once(self, chat: ChatRequest, send: Send) -> None:
        async with self._engine.reserve(chat.tokens, chat.long_side) as slot:
            try:
                async with self._posted(slot, chat) as answer:
                    if answer.status != 200:
                        raise await _refusal(answer, slot)
                    if answer.content_type == _EVENTS:
                        await self._relay_stream(slot, answer, send)
                    else:
                        await self._relay_whole(slot, answer, send)
            except EngineError as error:
                slot.failed(error)
                raise

    @contextlib.asynccontextmanager
    async def _posted(self, slot: Slot, chat: ChatRequest) -> AsyncIterator[aiohttp.ClientResponse]:
        headers = {
            "Content-Type": "application/json",
            "Content-Length": str(len(chat.body)),
            "Accept-Encoding": "identity",
            **outgoing_headers(),
        }
        with transport_errors(slot.url, _SLOW):
            async with slot.session.post(
                f"{slot.url}/chat/completions",
                data=_pieces(chat.body),
                headers=headers,
                timeout=self._timeout,
                allow_redirects=False,
            ) as answer:
                yield answer

    async def _relay_whole(self, slot: Slot, answer: aiohttp.ClientResponse, send: Send) -> None:
        body = await answer.read()
        _check_not_aborted(body)
        tail = body[-_TAIL_BYTES:]
        self._note_usage(slot, tail, _number(_ANSWER_TOKENS, tail))
        await _start(send, answer.headers.get("Content-Type", "application/json"), len(body))
        await send({"type": "http.response.body", "body": body})

    async def _relay_stream(self, slot: Slot, answer: aiohttp.ClientResponse, send: Send) -> None:
        chunks = answer.content.iter_any()
        first = await _first(chunks)
        await _start(send, answer.headers["Content-Type"], None)
        tail, events = first[-_TAIL_BYTES:], first.count(b"\n\n")
        await send({"type": "http.response.body", "body": first, "more_body": True})
        try:
            with transport_errors(slot.url, _SLOW):
                async for chunk in chunks:
                    _check_not_aborted(chunk)
                    tail = (tail + chunk)[-_TAIL_BYTES:]
                    events += chunk.count(b"\n\n")
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
        except EngineError as error:
            _log.warning("chat answer broke off", code=error.code, error=str(error))
            slot.failed(error)
            await send({"type": "http.response.body", "body": _error_event(error), "more_body": False})
            return
        self._note_usage(slot, tail, _number(_ANSWER_TOKENS, tail) or events)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _note_usage(self, slot: Slot, tail: bytes, answer_tokens: int) -> None:
        slot.succeeded(answer_tokens)
        if answer_tokens:
            self._answer_tokens += _SMOOTHING * (answer_tokens - self._answer_tokens)
        self._services.metrics.chat_done(prompt_tokens=_number(_PROMPT_TOKENS, tail), completion_tokens=answer_tokens)


class ChatAnswer(Response):
    """The answer to a chat request, whole or streamed, as the server gives it.

    Args:
        proxy: Passes the request on.
        claimant: On whose behalf.
    """

    def __init__(self, proxy: ChatProxy, claimant: Claimant) -> None:
        super().__init__()
        self._proxy = proxy
        self._claimant = claimant

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Reads the request and sends the answer; the server is left alone at once when the client goes."""

        async def relay(chat: ChatRequest) -> None:
            CLAIMANT.set(self._claimant)
            await self._proxy.relay(chat, send)

        async with self._proxy.request(Request(scope, receive)) as chat:
            try:
                await unless_gone(receive, relay(chat))
            except _RefusedError as error:
                await error_response(error, status=error.status)(scope, receive, send)


async def _pieces(body: bytes) -> AsyncIterator[memoryview]:
    """The body without a copy of it, which would stay for as long as the answer takes."""
    for start in range(0, len(body), _PIECE_BYTES):
        yield memoryview(body)[start : start + _PIECE_BYTES]


async def _refusal(answer: aiohttp.ClientResponse, slot: Slot) -> EngineError:
    body = await answer.content.read(_ERROR_BYTES)
    status = answer.status
    if status in _OURS:
        return _key_refused(status, slot)
    if status in _PASSING or not 400 <= status < 500:
        failure = error_of_response(status, body, answer.headers.get("Retry-After"))
        # vLLM answers 500 to all requests in flight when its engine dies, but also to new ones while it drains.
        if status == 500 and not await is_alive(slot.session, slot.url):
            return EngineUnavailableError(str(failure), while_reading=True)
        return failure
    message, param = _told(body)
    return _RefusedError(status, message or f"The server refuses the request ({status}).", param)


def _key_refused(status: int, slot: Slot) -> EngineError:
    """It answers at once, and would draw all requests if it stayed."""
    message, remedy = f"The server does not take our key ({status}).", "Set the engine's option api_key."
    return EngineOverloadedError(message, remedy, 0.0) if slot.refuses_all() else EngineError(message, remedy)


def _told(body: bytes) -> tuple[str, str | None]:
    """Message and parameter of a server's error."""
    try:
        data = pydantic_core.from_json(body)
    except ValueError:
        return body.decode("utf-8", "replace").strip(), None
    error = data.get("error", data) if isinstance(data, dict) else {}
    if not isinstance(error, dict):
        return str(error), None
    param = error.get("param")
    return str(error.get("message") or ""), param if isinstance(param, str) else None


async def _first(chunks: AsyncIterator[bytes]) -> bytes:
    """The first piece of a stream; a server that fails before it has begun says so here, under status 200."""
    try:
        first = await chunks.__anext__()
    except StopAsyncIteration:
        raise EngineUnavailableError("The server ended its answer at once.", while_reading=True) from None
    if b'"error"' in first:
        StreamParser().feed(first)
    _check_not_aborted(first)
    return first


def _check_not_aborted(data: bytes) -> None:
    if _ABORTED.search(data):
        raise EngineUnavailableError("The server gave the request up while it was shutting down.")


async def _start(send: Send, media_type: str, length: int | None) -> None:
    headers = [(b"content-type", media_type.encode("latin-1"))]
    if length is None:
        # Proxies must not collect what is a stream.
        headers.append((b"x-accel-buffering", b"no"))
    else:
        headers.append((b"content-length", str(length).encode()))
    await send({"type": "http.response.start", "status": 200, "headers": headers})


def _error_event(error: PagemillError) -> bytes:
    return b"\n\ndata: " + json.dumps(error_body(error)).encode() + b"\n\n"


def _number(pattern: re.Pattern[bytes], data: bytes) -> int:
    found = pattern.findall(data)
    return int(found[-1]) if found and len(found[-1]) < 18 else 0


def served_model(data: dict[str, Any]) -> dict[str, Any]:
    """A model as the OpenAI API lists it; servers leave some fields out that its clients rely on."""
    return {"object": "model", "created": 0, "owned_by": "pagemill", **data}
