"""The gateway within a test's own process, answering over real HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp

from pagemill.conversion import ConversionOptions
from pagemill.documents import RenderOptions
from pagemill.engines import Engine
from pagemill.gateway.options import GatewayOptions
from pagemill.gateway.runtime import Gateway, Services
from pagemill.gateway.server import GatewayServer, listen, url_of


class Served:
    """A gateway that answers.

    Args:
        url: Where.
        services: What its routes work with.
        server: The server itself.
        client: For requests.
    """

    def __init__(self, url: str, services: Services, server: GatewayServer, client: aiohttp.ClientSession) -> None:
        self.url = url
        self.services = services
        self.server = server
        self.client = client

    async def json(self, method: str, path: str, *, status: int = 200, **request: Any) -> Any:
        """What is answered, which must have that status."""
        async with self.client.request(method, path, **request) as response:
            body = await response.text()
            assert response.status == status, body
            return json.loads(body)

    async def status(self, path: str) -> int:
        async with self.client.get(path) as response:
            return response.status

    async def text(self, path: str) -> str:
        async with self.client.get(path) as response:
            assert response.status == 200, await response.text()
            return await response.text()

    async def error(self, method: str, path: str, status: int, **request: Any) -> str:
        """The code of the error that is answered with that status."""
        return str((await self.json(method, path, status=status, **request))["error"]["code"])

    async def submit(self, *documents: Path | bytes, path: str = "/v1/documents", **fields: str) -> Any:
        """Hands in documents as a form."""
        return await self.json("POST", path, status=202, data=form(*documents, **fields))

    async def ended(self, job_id: str) -> Any:
        """The job, once it has ended."""
        while True:
            job = await self.json("GET", f"/v1/jobs/{job_id}")
            if job["status"] in ("succeeded", "failed", "cancelled"):
                return job
            await asyncio.sleep(0.02)


def form(*documents: Path | bytes, **fields: str) -> aiohttp.FormData:
    """A form with documents in the field `file`."""
    made = aiohttp.FormData()
    for document in documents:
        data = document if isinstance(document, bytes) else document.read_bytes()
        name = "document.pdf" if isinstance(document, bytes) else document.name
        made.add_field("file", data, filename=name, content_type="application/octet-stream")
    for name, value in fields.items():
        made.add_field(name, value)
    return made


@contextlib.asynccontextmanager
async def serving(
    folder: Path, engine: Engine, conversion: ConversionOptions | None = None, **options: Any
) -> AsyncIterator[Served]:
    """Runs a gateway until the block ends.

    Args:
        folder: For its data.
        engine: Reads the pages.
        conversion: How documents are converted.
        options: Of `GatewayOptions`.
    """
    values = GatewayOptions.model_validate({"port": 0, "data": folder, "drain_s": 5.0, **options})
    conversion = conversion or ConversionOptions(render_workers=1)
    server = GatewayServer(Gateway(values, engine, conversion, RenderOptions()), values)
    ready: asyncio.Future[Services] = asyncio.get_running_loop().create_future()

    async def on_ready(services: Services) -> None:
        ready.set_result(services)

    with listen(values.host, values.port) as listener:
        running = asyncio.create_task(server.run(listener, on_ready))
        try:
            await asyncio.wait({running, ready}, return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                await running
            url = url_of(listener)
            async with aiohttp.ClientSession(url) as client:
                yield Served(url, ready.result(), server, client)
        finally:
            server.request_stop()
            await running
