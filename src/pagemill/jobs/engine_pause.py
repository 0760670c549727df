"""For how long no work is taken after an engine failed."""

from __future__ import annotations

import time
from collections.abc import Callable

_FIRST_S, _LONGEST_S = 1.0, 15.0


class EnginePause:
    """Grows with each failure until the engine has read a page again.

    Args:
        clock: Seconds, monotonic.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._length_s = 0.0
        self._ends_at = 0.0

    @property
    def is_over(self) -> bool:
        """Whether the engine may be asked how it is; also where it never failed."""
        return self.left_s == 0.0

    @property
    def left_s(self) -> float:
        """Seconds until then."""
        return max(0.0, self._ends_at - self._clock())

    @property
    def is_suspect(self) -> bool:
        """Whether the engine has read nothing since it failed."""
        return self._length_s > 0.0

    def failed(self) -> None:
        """It failed. What was under way then fails with it, one after the other: that is one failure."""
        if not self.is_over:
            return
        self._length_s = min(_LONGEST_S, max(_FIRST_S, self._length_s * 2))
        self._ends_at = self._clock() + self._length_s

    def worked(self) -> None:
        """It has read a page."""
        self._length_s = self._ends_at = 0.0
