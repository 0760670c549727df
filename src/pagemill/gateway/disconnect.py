"""Work for a client is given up when the client goes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from starlette.requests import ClientDisconnect
from starlette.types import Receive

_T = TypeVar("_T")


async def unless_gone(receive: Receive, work: Awaitable[_T]) -> _T:
    """Does something for a client, and gives it up when the client goes.

    Args:
        receive: Of a request whose body was read to its end.
        work: What to do; cancelled when the connection ends.

    Raises:
        ClientDisconnect: The client has gone.
    """

    async def gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    tasks = working, watching = asyncio.ensure_future(work), asyncio.ensure_future(gone())
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        watching.cancel()
        working.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
