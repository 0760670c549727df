"""A time limit on the work on a page that leaves out the time for which the page waits its turn.

With hundreds of pages in flight most of a page's time may be waiting, and a page that merely waits has done nothing
wrong. An engine that queues says so with `waiting()`; the time of one that does not counts in full.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Coroutine, Iterator
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")
_LEAST_LOOK_S = 0.05


class _Clock:
    """Runs unless it is paused."""

    def __init__(self) -> None:
        self._before = 0.0
        self._since = time.monotonic()
        self._pauses = 0

    @property
    def elapsed_s(self) -> float:
        running = 0.0 if self._pauses else time.monotonic() - self._since
        return self._before + running

    def pause(self) -> None:
        if self._pauses == 0:
            self._before = self.elapsed_s
        self._pauses += 1

    def go_on(self) -> None:
        self._pauses -= 1
        if self._pauses == 0:
            self._since = time.monotonic()


_CLOCK: ContextVar[_Clock | None] = ContextVar("pagemill_page_clock", default=None)


@contextlib.contextmanager
def waiting() -> Iterator[None]:
    """Around code of an engine in which a page waits for its turn: that time does not count."""
    clock = _CLOCK.get()
    if clock is None:
        yield
        return
    clock.pause()
    try:
        yield
    finally:
        clock.go_on()


async def within(limit_s: float, work: Coroutine[Any, Any, T]) -> T:
    """The result of work on a page.

    Args:
        limit_s: Seconds of work, without those spent `waiting`.
        work: The work; it is cancelled when its time is over.

    Raises:
        asyncio.TimeoutError: Its time was over.
    """
    clock = _Clock()
    mark = _CLOCK.set(clock)
    try:
        task = asyncio.ensure_future(work)
    finally:
        _CLOCK.reset(mark)
    try:
        while not task.done() and (left := limit_s - clock.elapsed_s) > 0:
            await asyncio.wait({task}, timeout=max(left, _LEAST_LOOK_S))
    finally:
        is_late = not task.done()
        if is_late:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
    if is_late and (task.cancelled() or task.exception() is not None):
        raise asyncio.TimeoutError
    return task.result()
