"""How many requests a server gets at once: a number that finds its own level.

A batching server gives more tokens a second the more requests it has, up to a point that depends on the GPU, the model
and the pages, and beyond it only longer queues. The window climbs while throughput climbs (doubling at first, as TCP's
slow start does, then by a tenth), stays where it no longer does, and falls by a third at every sign of overload: 429,
503, time-outs, requests that wait in the server's queue, preemptions.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from enum import Enum

_BETTER = 1.04
"""Throughput counts as grown from here; measured noise between equal epochs is about 3 %."""
_WORSE = 0.85
_CLIMB = 1.1
_FALL = 2 / 3
_PLATEAU_EPOCHS = 4
_MIN_EPOCH = 8


class Overload(str, Enum):
    """Signs that a server has too much to do."""

    REFUSED = "refused"
    """It answered 429 or 503."""
    TIMEOUT = "timeout"
    """It did not answer in time."""
    QUEUEING = "queueing"
    """Requests wait in its own queue."""
    PREEMPTION = "preemption"
    """It ran out of KV cache and threw work away."""


class AdaptiveWindow:
    """The number of requests in flight at one server.

    Throughput is measured over epochs of as many completions as the window is wide.

    Args:
        initial: Width to begin with.
        least: Never narrower.
        most: Never wider.
        fixed: Whether it stays at `initial`.
        clock: Seconds, monotonic.
    """

    def __init__(
        self, initial: int, least: int, most: int, *, fixed: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._initial = float(min(max(initial, least), most))
        self._least = least
        self._most = most
        self._fixed = fixed
        self._clock = clock
        self.restart()

    def restart(self) -> None:
        """Begins anew: the server was out, and is not the one that was measured."""
        self._limit = self._initial
        self._starting = True
        self._settled_rate = 0.0
        self._settled_limit = self._limit
        self._plateau = 0
        self._held_until = 0.0
        self._latency = 0.0
        self._begin_epoch()

    @property
    def limit(self) -> int:
        """Requests that may be in flight now."""
        return max(self._least, int(self._limit))

    def on_completed(self, tokens: int, seconds: float, *, in_flight: int) -> None:
        """A request ended well.

        Args:
            tokens: Tokens of its prompt and answer.
            seconds: How long it took.
            in_flight: Requests in flight when it ended, itself among them.
        """
        if self._fixed:
            return
        self._latency = seconds if self._latency == 0.0 else 0.9 * self._latency + 0.1 * seconds
        self._epoch_done += 1
        self._epoch_tokens += tokens
        self._epoch_full |= in_flight >= self.limit
        if self._epoch_done >= max(_MIN_EPOCH, self.limit):
            self._end_epoch()

    def on_overload(self, sign: Overload) -> None:
        """The server shows that it has too much; one fall for all signs within a request's time."""
        del sign
        now = self._clock()
        if self._fixed or now < self._held_until:
            return
        self._starting = False
        self._limit = max(float(self._least), self._limit * _FALL)
        self._settled_rate = 0.0
        self._settled_limit = self._limit
        self._held_until = now + max(1.0, self._latency)
        self._begin_epoch()

    def _end_epoch(self) -> None:
        elapsed = self._clock() - self._epoch_start
        rate = self._epoch_tokens / elapsed if elapsed > 0 else 0.0
        # Throughput of an epoch in which requests were lacking says nothing about the server.
        if self._epoch_full and rate > 0:
            self._judge(rate)
        self._begin_epoch()

    def _judge(self, rate: float) -> None:
        if rate > self._settled_rate * _BETTER:
            self._settled_rate, self._settled_limit = rate, self._limit
            self._plateau = 0
            self._limit = min(float(self._most), self._limit * 2 if self._starting else self._climbed())
        elif rate < self._settled_rate * _WORSE and self._limit > self._settled_limit:
            self._starting = False
            self._limit = self._settled_limit
        else:
            # No gain from the last step: back to where it was as good, and try again after a while.
            self._starting = False
            self._limit = max(float(self._least), self._settled_limit)
            self._plateau += 1
            if self._plateau >= _PLATEAU_EPOCHS:
                self._plateau = 0
                self._settled_rate = rate
                self._limit = min(float(self._most), self._climbed())

    def _climbed(self) -> float:
        return max(self._limit + 1, math.floor(self._limit * _CLIMB))

    def _begin_epoch(self) -> None:
        self._epoch_start = self._clock()
        self._epoch_done = 0
        self._epoch_tokens = 0
        self._epoch_full = False
