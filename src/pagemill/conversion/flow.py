"""Bounds on what is under way: bytes of images that wait, and pages in flight."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator


class ByteBudget:
    """Lets images wait for an engine as long as their bytes fit; first come, first served.

    An image larger than the whole budget is let in when nothing else waits.

    Args:
        limit: Bytes that may be held at once.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._used = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @property
    def used(self) -> int:
        """Bytes held now."""
        return self._used

    def _fits(self, size: int) -> bool:
        return self._used == 0 or self._used + size <= self._limit

    @contextlib.asynccontextmanager
    async def hold(self, size: int) -> AsyncIterator[None]:
        """Holds `size` bytes of the budget, waiting until they fit."""
        await self._acquire(size)
        try:
            yield
        finally:
            self._used -= size
            self._admit()

    async def _acquire(self, size: int) -> None:
        if not self._waiting and self._fits(size):
            self._used += size
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((size, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._used -= size
            else:
                self._waiting.remove((size, turn))
            self._admit()
            raise

    def _admit(self) -> None:
        while self._waiting and self._fits(self._waiting[0][0]):
            size, turn = self._waiting.popleft()
            if not turn.done():
                self._used += size
                turn.set_result(None)
