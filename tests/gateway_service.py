"""The gateway in the process of a test, on a real port, so that tests see into it and clients do not."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pagemill.conversion import ConversionOptions
from pagemill.documents import RenderOptions
from pagemill.engines import Engine
from pagemill.engines.openai.engine import OpenAIEngine
from pagemill.engines.openai.options import parse_options
from pagemill.gateway.options import GatewayOptions
from pagemill.gateway.runtime import Gateway, Services
from pagemill.gateway.server import GatewayServer, listen, url_of


@dataclass(frozen=True)
class Service:
    """A gateway that answers at `url`."""

    url: str
    services: Services


@contextlib.asynccontextmanager
async def serving(folder: Path, engine: Engine, **options: Any) -> AsyncIterator[Service]:
    """Runs a gateway.

    Args:
        folder: For its data.
        engine: Reads pages; not started yet.
        options: Of `GatewayOptions`.
    """
    given = GatewayOptions.model_validate({"data": folder, "port": 0, "drain_s": 0.5, **options})
    gateway = Gateway(given, engine, ConversionOptions(render_workers=1), RenderOptions())
    server = GatewayServer(gateway, given)
    ready: asyncio.Future[Services] = asyncio.get_running_loop().create_future()

    async def on_ready(services: Services) -> None:
        ready.set_result(services)

    with listen("127.0.0.1", 0) as listener:
        running = asyncio.create_task(server.run(listener, on_ready))
        await asyncio.wait({running, ready}, return_when=asyncio.FIRST_COMPLETED)
        try:
            if running.done():
                await running
            yield Service(url_of(listener), ready.result())
        finally:
            server.request_stop()
            await running


def engine_of(*urls: str, **options: Any) -> OpenAIEngine:
    """The engine for these servers."""
    return OpenAIEngine(parse_options({"endpoints": list(urls), "outage_timeout_s": 5, **options}))


async def until(condition: Callable[[], object]) -> None:
    """Waits until something holds; the test's own time limit bounds it."""
    while not condition():
        await asyncio.sleep(0.01)
