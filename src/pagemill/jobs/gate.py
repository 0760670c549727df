"""One door before the engine, for job pages and for requests of the OpenAI API alike.

What waits here is ours to order; what is beyond it waits in the server's queue, first come, first served. So as little
as possible is let through: as many requests as the engine works on at once, and no more tokens than the window holds.

Fairness is that of start-time fair queueing (Goyal, Vin, Cheng 1996): the key that has had the fewest tokens goes next,
and one that comes back after a pause starts level with those that wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from dataclasses import dataclass

from pagemill.domain import Priority
from pagemill.domain.errors import QueueFullError

_TICK_S = 0.05
_SMOOTHING = 0.2
_LEAST_RETRY_S, _MOST_RETRY_S = 1.0, 60.0


@dataclass(frozen=True, slots=True)
class Claimant:
    """On whose behalf something is done.

    Attributes:
        key_id: The API key.
        priority: Who goes first.
    """

    key_id: str = ""
    priority: Priority = Priority.INTERACTIVE


CLAIMANT: ContextVar[Claimant] = ContextVar("pagemill_claimant", default=Claimant())  # noqa: B039 - frozen
"""Who the current task works for; set by the worker and by the routes."""


@dataclass(eq=False)
class _Waiter:
    tokens: int
    turn: asyncio.Future[None]


class _Line:
    """Those who wait under one priority, by key."""

    def __init__(self) -> None:
        self.waiting: dict[str, deque[_Waiter]] = {}
        self.served: dict[str, float] = {}
        self.level = 0.0

    def add(self, key: str, waiter: _Waiter) -> None:
        queue = self.waiting.setdefault(key, deque())
        if not queue:
            self.served[key] = max(self.served.get(key, 0.0), self.level)
        queue.append(waiter)

    def next(self) -> tuple[str, _Waiter] | None:
        key = min((key for key, queue in self.waiting.items() if queue), key=self.served.__getitem__, default=None)
        return None if key is None else (key, self.waiting[key][0])

    def take(self, key: str) -> None:
        waiter = self.waiting[key].popleft()
        self.level = self.served[key]
        self.served[key] += waiter.tokens
        self._forget(key)

    def remove(self, key: str, waiter: _Waiter) -> bool:
        if waiter not in self.waiting.get(key, ()):
            return False
        self.waiting[key].remove(waiter)
        self._forget(key)
        return True

    def _forget(self, key: str) -> None:
        if not self.waiting[key]:
            del self.waiting[key]
        # A key that is not ahead of the others would start level with them anyhow.
        if len(self.served) > 4 * len(self.waiting) + 64:
            self.served = {k: v for k, v in self.served.items() if k in self.waiting or v > self.level}


class Gate:
    """Lets requests through to the engine, in a fair order and within bounds.

    Args:
        window_tokens: Most tokens in flight; a larger request passes when nothing else is in flight.
        capacity: How many requests the engine works on at once, now.
        max_waiting: Requests that may wait.
        batch_share: Of so many turns one is for batch work although interactive work waits.
        clock: Seconds, monotonic.
    """

    def __init__(
        self,
        window_tokens: int,
        *,
        capacity: Callable[[], int],
        max_waiting: int = 1024,
        batch_share: int = 8,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.window_tokens = window_tokens
        self._capacity = capacity
        self._max_waiting = max_waiting
        self._batch_share = batch_share
        self._clock = clock
        self._lines = {priority: _Line() for priority in Priority}
        self._turns = 0
        self._ticker: asyncio.Task[None] | None = None
        self._last_left = clock()
        self._interval = 0.0
        self.waiting = 0
        self.in_flight = 0
        self.tokens_in_flight = 0

    @property
    def retry_after(self) -> float:
        """Seconds in which the queue as it is now will be worked off, as far as can be told."""
        return min(_MOST_RETRY_S, max(_LEAST_RETRY_S, self.waiting * self._interval))

    @contextlib.asynccontextmanager
    async def enter(self, tokens: int) -> AsyncIterator[None]:
        """Waits for a turn of the current `CLAIMANT`, and holds it for as long as the block lasts.

        Args:
            tokens: Of the request: image, text, and the answer as far as it can be foreseen.

        Raises:
            QueueFullError: Too many wait.
        """
        await self._wait(tokens)
        try:
            yield
        finally:
            self._leave(tokens)

    async def _wait(self, tokens: int) -> None:
        if self.waiting >= self._max_waiting:
            raise QueueFullError(
                f"{self.waiting} requests wait for the engine already.",
                "Try again after the time in Retry-After, or hand in a job at /v1/documents.",
                retry_after=self.retry_after,
                queued=self.waiting,
            )
        claimant = CLAIMANT.get()
        line = self._lines[claimant.priority]
        waiter = _Waiter(tokens, asyncio.get_running_loop().create_future())
        line.add(claimant.key_id, waiter)
        self.waiting += 1
        self._admit()
        try:
            await waiter.turn
        except asyncio.CancelledError:
            if waiter.turn.done() and not waiter.turn.cancelled():
                self._leave(tokens)
            else:
                self.waiting -= line.remove(claimant.key_id, waiter)
                self._admit()
            raise

    def _leave(self, tokens: int) -> None:
        self.in_flight -= 1
        self.tokens_in_flight -= tokens
        now = self._clock()
        self._interval += _SMOOTHING * (now - self._last_left - self._interval)
        self._last_left = now
        self._admit()

    def _admit(self) -> None:
        while chosen := self._choose():
            line, key, waiter = chosen
            if waiter.turn.cancelled():
                # Its task has yet to learn of it.
                self.waiting -= line.remove(key, waiter)
                continue
            fits = self.in_flight == 0 or self.tokens_in_flight + waiter.tokens <= self.window_tokens
            # At least one is let through whatever the capacity: it finds out whether the engine is there.
            if not fits or self.in_flight >= max(1, self._capacity()):
                self._tick()
                return
            line.take(key)
            self._turns += 1
            self.waiting -= 1
            self.in_flight += 1
            self.tokens_in_flight += waiter.tokens
            waiter.turn.set_result(None)

    def _choose(self) -> tuple[_Line, str, _Waiter] | None:
        batch_first = self._turns % self._batch_share == self._batch_share - 1
        order = (Priority.BATCH, Priority.INTERACTIVE) if batch_first else (Priority.INTERACTIVE, Priority.BATCH)
        for priority in order:
            line = self._lines[priority]
            if (found := line.next()) is not None:
                return line, *found
        return None

    def _tick(self) -> None:
        """Sees to it that those who wait are looked at again soon: the engine's capacity may grow by itself."""
        if self._ticker is None or self._ticker.done():
            self._ticker = asyncio.get_running_loop().create_task(self._look_again())

    async def _look_again(self) -> None:
        while self.waiting:
            await asyncio.sleep(_TICK_S)
            self._admit()
