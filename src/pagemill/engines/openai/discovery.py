"""What a server serves, and what it is."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import aiohttp

from pagemill.engines.openai.wire import error_of_response

_VERSION_TIMEOUT_S = 5.0


async def described_models(session: aiohttp.ClientSession, url: str, timeout_s: float) -> list[dict[str, Any]]:
    """The models that a server offers, with all that it tells of them.

    Args:
        session: Connections to it.
        url: Its base URL.
        timeout_s: Seconds for the answer.

    Raises:
        EngineError: It answers with an error.
        aiohttp.ClientError, asyncio.TimeoutError, OSError: It cannot be reached.
    """
    timeout = aiohttp.ClientTimeout(total=timeout_s)
    async with session.get(f"{url}/models", timeout=timeout) as response:
        body = await response.read()
        if response.status != 200:
            raise error_of_response(response.status, body, response.headers.get("Retry-After"))
        data = await response.json(content_type=None)
    return [item for item in data.get("data", []) if isinstance(item, dict)]


async def served_models(session: aiohttp.ClientSession, url: str, timeout_s: float) -> list[str]:
    """Names of those models; arguments and errors as of `described_models`."""
    return [str(item.get("id", "")) for item in await described_models(session, url, timeout_s)]


async def server_version(session: aiohttp.ClientSession, url: str) -> str:
    """`vllm 0.30.0` where the server says so, else what kind of server it names itself; empty for neither."""
    with contextlib.suppress(aiohttp.ClientError, asyncio.TimeoutError, OSError, ValueError, AttributeError):
        timeout = aiohttp.ClientTimeout(total=_VERSION_TIMEOUT_S)
        async with session.get(f"{url.removesuffix('/v1')}/version", timeout=timeout) as response:
            if response.status == 200 and (version := (await response.json(content_type=None)).get("version")):
                return f"vllm {version}"
            return (response.headers.get("Server") or "").split("/")[0].lower()
    return ""
