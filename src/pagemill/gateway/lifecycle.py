"""Whether a process takes requests, and which it still answers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator


class Streams:
    """Answers without an end of their own that are open."""

    def __init__(self) -> None:
        self.count = 0

    @contextlib.contextmanager
    def one(self) -> Iterator[None]:
        """One is open inside the block."""
        self.count += 1
        try:
            yield
        finally:
            self.count -= 1


class Lifecycle:
    """From the start of a process to its graceful end."""

    def __init__(self) -> None:
        self._stopping = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._active = 0

    @property
    def stopping(self) -> bool:
        """Whether nothing new is taken."""
        return self._stopping.is_set()

    def stop(self) -> None:
        """Takes nothing new; streams without end are ended."""
        self._stopping.set()

    async def stopped(self, timeout_s: float) -> bool:
        """Waits for `stop`, at most so many seconds; says whether it has come."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), timeout_s)
        return self.stopping

    @contextlib.contextmanager
    def request(self) -> Iterator[None]:
        """A request is answered inside the block."""
        self._active += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._active -= 1
            if not self._active:
                self._idle.set()

    async def idle(self, timeout_s: float) -> bool:
        """Waits until no request is answered, at most so many seconds; says whether that came about."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._idle.wait(), timeout_s)
        return not self._active
