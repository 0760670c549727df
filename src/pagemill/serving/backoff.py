"""How long to wait before the next start; pure."""

from __future__ import annotations

import random
from collections.abc import Callable

_JITTER = 0.25


class Backoff:
    """Doubles the wait from failure to failure, up to a cap, and forgets after a time of good service.

    Args:
        first_s: The first wait.
        most_s: The longest wait.
        reset_s: Seconds of service that make the next failure a first one again.
        uniform: Gives a number between two; for tests.
    """

    def __init__(
        self,
        first_s: float,
        most_s: float,
        reset_s: float,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._first_s = first_s
        self._most_s = most_s
        self._reset_s = reset_s
        self._uniform = uniform
        self.failures = 0

    def next_wait(self, served_s: float) -> float:
        """Seconds to wait after a run that served for `served_s`; spread, so that many servers do not start as one."""
        if served_s >= self._reset_s:
            self.failures = 0
        self.failures += 1
        wait = min(self._most_s, self._first_s * 2.0 ** min(self.failures - 1, 32))
        return min(self._most_s, wait * self._uniform(1 - _JITTER, 1 + _JITTER))
