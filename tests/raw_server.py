"""An HTTP server of a few lines that answers what it is told, well-formed or not."""

from __future__ import annotations

import asyncio
import contextlib
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

Answer = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]


class Server:
    """Answers each connection with given bytes and keeps the requests."""

    def __init__(self, answer: bytes | Answer) -> None:
        self.answer = answer
        self.requests: list[bytes] = []
        self.bodies: list[bytes] = []
        self.port = 0
        self.tasks: list[Any] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.tasks.append(asyncio.current_task())
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            self.requests.append(head)
            length = re.search(rb"(?i)content-length: (\d+)", head)
            self.bodies.append(await reader.readexactly(int(length.group(1)) if length else 0))
            if isinstance(self.answer, bytes):
                writer.write(self.answer)
            else:
                await self.answer(head, writer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            writer.transport.abort()
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


@contextlib.asynccontextmanager
async def serving(answer: bytes | Answer, context: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    server = Server(answer)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=context)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        for task in server.tasks:
            task.cancel()
        await asyncio.gather(*server.tasks, return_exceptions=True)
