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


async def exchange(session: aiohttp.ClientSession, url: str, body: dict[str, Any], options: OpenAIOptions) -> Answer:
    """Sends a request and reads its answer.

    Args:
        session: Connections to the server.
        url: Its base URL.
        body: The request.
        options: Time limits.

    Raises:
        EngineError: The server cannot be reached, refuses the request, or breaks off.
    """
    timeout = aiohttp.ClientTimeout(
        total=None, sock_connect=options.connect_timeout_s, sock_read=options.first_token_timeout_s
    )
    slow = "See the options first_token_timeout_s and stall_timeout_s."
    with span("engine.request", engine_url=url), transport_errors(url, slow):
        async with session.post(
            f"{url}/chat/completions", json=body, timeout=timeout, headers=outgoing_headers()
        ) as response:
            if response.status != 200:
                raise await _failure(response)
            return await _read(response, options)


@contextlib.contextmanager
def transport_errors(url: str, slow_remedy: str) -> Iterator[None]:
    """Errors of the connection to a server, as errors of the engine.

    Args:
        url: Its base URL.
        slow_remedy: What to do when it does not answer in time.
    """
    try:
        yield
    except asyncio.TimeoutError as error:
        raise EngineTimeoutError(f"{url} did not answer in time.", slow_remedy) from error
    except aiohttp.ClientConnectorError as error:
        raise EngineUnavailableError(f"{url} cannot be reached ({error}).", "Is it running?") from error
    except (aiohttp.ClientError, OSError) as error:
        raise EngineUnavailableError(
            f"The connection to {url} broke ({error or type(error).__name__}).", "Is it running?", while_reading=True
        ) from error


async def _failure(response: aiohttp.ClientResponse) -> Exception:
    failure = error_of_response(response.status, await response.read(), response.headers.get("Retry-After"))
    # vLLM answers 500 to all requests in flight when its engine dies.
    return EngineUnavailableError(str(failure), while_reading=True) if response.status == 500 else failure


async def _read(response: aiohttp.ClientResponse, options: OpenAIOptions) -> Answer:
    """Reads the stream to its end, or to the start of a loop; leaving early frees the server within moments."""
    parser, watch = StreamParser(), LoopWatch()
    usage, reason = Usage(), None
    chunks = response.content.iter_any().__aiter__()
    wait_s = options.first_token_timeout_s
    while True:
        try:
            data = await asyncio.wait_for(chunks.__anext__(), wait_s)
        except StopAsyncIteration:
            break
        wait_s = options.stall_timeout_s
        for delta in parser.feed(data):
            usage = delta.usage or usage
            reason = delta.finish_reason or reason
            loop = watch.feed(delta.text) if delta.text else None
            if loop is not None:
                response.close()
                kept = watch.text[: loop.start + len(loop.unit)]
                return Answer(kept, FinishReason.REPETITION, usage)
    if reason is None:
        raise EngineUnavailableError(
            "The server ended its answer in the middle.", "Look at its log.", while_reading=True
        )
    return Answer(watch.text, reason, usage)
