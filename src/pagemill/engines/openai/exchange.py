"""One request and its streamed answer."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import aiohttp

from pagemill.domain import FinishReason, Usage
from pagemill.domain.errors import EngineTimeoutError, EngineUnavailableError
from pagemill.engines.openai.discovery import is_alive
from pagemill.engines.openai.options import OpenAIOptions
from pagemill.engines.openai.repetition import LoopWatch
from pagemill.engines.openai.wire import StreamParser, error_of_response
from pagemill.telemetry import outgoing_headers, span


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server wrote, and why it ended."""

    text: str
    finish_reason: FinishReason
    usage: Usage


async def exchange(
    session: aiohttp.ClientSession,
    url: str,
    body: dict[str, Any],
    options: OpenAIOptions,
    streaming: set[aiohttp.ClientResponse],
) -> Answer:
    """Sends a request and reads its answer.

    Args:
        session: Connections to the server.
        url: Its base URL.
        body: The request.
        options: Time limits.
        streaming: Holds the answer while it is read, for who wants to close it: closing a session wakes no reader.

    Raises:
        EngineError: The server cannot be reached, refuses the request, or breaks off.
    """
    timeout = aiohttp.ClientTimeout(
        total=None,
        sock_connect=options.connect_timeout_s,
        sock_read=max(options.first_token_timeout_s, options.stall_timeout_s),
    )
    slow = "See the options first_token_timeout_s and stall_timeout_s."
    with span("engine.request", engine_url=url), transport_errors(url, slow):
        async with session.post(
            f"{url}/chat/completions", json=body, timeout=timeout, headers=outgoing_headers()
        ) as response:
            streaming.add(response)
            try:
                if response.status != 200:
                    raise error_of_response(response.status, await response.read(), response.headers.get("Retry-After"))
                return await _read(response, options)
            except EngineUnavailableError as error:
                # vLLM answers 500 to all requests in flight when its engine dies, but also to new ones while it drains.
                # What a proxy says of a server that is out (502, 504) is no such sign: it may never have had the page.
                if error.while_reading or response.status not in (200, 500) or await is_alive(session, url):
                    raise
                raise EngineUnavailableError(str(error), while_reading=True) from error
            finally:
                streaming.discard(response)


@contextlib.contextmanager
def transport_errors(url: str, slow_remedy: str) -> Iterator[None]:
    """Errors of the connection to a server, as errors of the engine.

    Args:
        url: Its base URL.
        slow_remedy: What to do when it does not answer in time.
    """
    try:
        yield
    except aiohttp.ConnectionTimeoutError as error:
        raise EngineUnavailableError(f"{url} cannot be reached ({error}).", "Is it running?") from error
    except asyncio.TimeoutError as error:
        raise EngineTimeoutError(f"{url} did not answer in time.", slow_remedy) from error
    except aiohttp.ClientConnectorError as error:
        raise EngineUnavailableError(f"{url} cannot be reached ({error}).", "Is it running?") from error
    except (aiohttp.ClientError, OSError) as error:
        raise EngineUnavailableError(
            f"The connection to {url} broke ({error or type(error).__name__}).", "Is it running?", while_reading=True
        ) from error


async def _read(response: aiohttp.ClientResponse, options: OpenAIOptions) -> Answer:
    """Reads the stream to its end, or to the start of a loop; leaving early frees the server within moments."""
    parser, watch = StreamParser(), LoopWatch()
    usage, reason = Usage(), None
    patience = _Patience(response, options.first_token_timeout_s)
    try:
        while True:
            data = await response.content.readany()
            patience.heard(options.stall_timeout_s)
            for delta in parser.feed(data) if data else parser.end():
                usage = delta.usage or usage
                reason = delta.finish_reason or reason
                loop = watch.feed(delta.text) if delta.text else None
                if loop is not None:
                    response.close()
                    kept = watch.text[: loop.start + len(loop.unit)]
                    return Answer(kept, FinishReason.REPETITION, usage)
            if not data:
                break
    except aiohttp.ClientError:
        if patience.is_over:
            raise asyncio.TimeoutError from None
        raise
    finally:
        patience.stop()
    if reason is None:
        raise EngineUnavailableError(
            "The server ended its answer in the middle.", "Look at its log.", while_reading=True
        )
    return Answer(watch.text, reason, usage)


class _Patience:
    """Closes an answer in which nothing comes for too long.

    With hundreds of streams there are tens of thousands of tokens a second: a time that is moved on costs less than a
    task around each read, and cannot swallow a cancellation, as `asyncio.wait_for` could before Python 3.12.

    Args:
        response: The answer.
        seconds: Until its first piece.
    """

    def __init__(self, response: aiohttp.ClientResponse, seconds: float) -> None:
        self._response = response
        self._loop = asyncio.get_running_loop()
        self._until = self._loop.time() + seconds
        self._timer = self._loop.call_at(self._until, self._look)
        self.is_over = False

    def heard(self, seconds: float) -> None:
        """Something came; the next piece must come within so many seconds."""
        self._until = self._loop.time() + seconds
        if self._until < self._timer.when():
            self._timer.cancel()
            self._timer = self._loop.call_at(self._until, self._look)

    def stop(self) -> None:
        """The answer is complete."""
        self._timer.cancel()

    def _look(self) -> None:
        if self._loop.time() < self._until:
            self._timer = self._loop.call_at(self._until, self._look)
            return
        self.is_over = True
        self._response.close()
