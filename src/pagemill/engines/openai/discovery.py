"""What a server serves, and what it is."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

import aiohttp

from pagemill.domain.errors import EngineUnavailableError
from pagemill.engines.openai.wire import error_of_response

_QUICK_TIMEOUT_S = 5.0
_RUNS = "Does a model server run there?"


async def described_models(session: aiohttp.ClientSession, url: str, timeout_s: float) -> list[dict[str, Any]]:
    """The models that a server offers, with all that it tells of them.

    Args:
        session: Connections to it.
        url: Its base URL.
        timeout_s: Seconds for the answer.

    Raises:
        EngineError: It cannot be reached, answers with an error, or with something else.
    """
    timeout = aiohttp.ClientTimeout(total=timeout_s)
    try:
        async with session.get(f"{url}/models", timeout=timeout) as response:
            body = await response.read()
            if response.status != 200:
                raise error_of_response(response.status, body, response.headers.get("Retry-After"))
    except (aiohttp.ClientError, asyncio.TimeoutError, OSError) as error:
        raise EngineUnavailableError(f"{url} does not answer ({error or type(error).__name__}).", _RUNS) from error
    try:
        return [item for item in json.loads(body)["data"] if isinstance(item, dict)]
    except (ValueError, TypeError, LookupError) as error:
        raise EngineUnavailableError(f"What {url}/models gives is no list of models.", _RUNS) from error


def context_of(description: dict[str, Any]) -> int | None:
    """Tokens of prompt and answer together that a described model takes, where the server says so."""
    tokens = description.get("max_model_len")
    return tokens if isinstance(tokens, int) and tokens > 0 else None


ENGINE_DEAD = 503
"""What vLLM's /health says when its engine has died, for as long as its HTTP side goes on."""


async def health_status(session: aiohttp.ClientSession, url: str) -> int:
    """HTTP status of a server's /health; 0 where nothing answers."""
    with contextlib.suppress(aiohttp.ClientError, asyncio.TimeoutError, OSError):
        timeout = aiohttp.ClientTimeout(total=_QUICK_TIMEOUT_S)
        async with session.get(f"{url.removesuffix('/v1')}/health", timeout=timeout) as response:
            return response.status
    return 0


async def is_alive(session: aiohttp.ClientSession, url: str) -> bool:
    """Whether a server that has just failed a request is still there."""
    return 0 < await health_status(session, url) < 500


async def server_version(session: aiohttp.ClientSession, url: str) -> str:
    """`vllm 0.30.0` where the server says so, else what kind of server it names itself; empty for neither."""
    with contextlib.suppress(aiohttp.ClientError, asyncio.TimeoutError, OSError, ValueError, AttributeError):
        timeout = aiohttp.ClientTimeout(total=_QUICK_TIMEOUT_S)
        async with session.get(f"{url.removesuffix('/v1')}/version", timeout=timeout) as response:
            if response.status == 200 and (version := (await response.json(content_type=None)).get("version")):
                return f"vllm {version}"
            return (response.headers.get("Server") or "").split("/")[0].lower()
    return ""
