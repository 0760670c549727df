"""Whether and when a page is sent again after a request for it failed."""

from __future__ import annotations

import time
from collections.abc import Callable

from pagemill.domain.errors import (
    EngineError,
    EngineOverloadedError,
    EngineUnavailableError,
    PageQuarantinedError,
)

_FIRST_PAUSE_S = 1.0
_SHORTEST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 30.0
_DEATHS_TO_QUARANTINE = 2


class Tries:
    """Counts what befell one page.

    Args:
        attempts: Requests after whose failure the page is given up.
        patience_s: Seconds for which servers may be full before it is. Being refused for want of room uses up no
            attempt: the page merely waits its turn.
        clock: Seconds, monotonic.
    """

    def __init__(self, attempts: int, patience_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._attempts = attempts
        self._patience_s = patience_s
        self._clock = clock
        self._full_since: float | None = None
        self._pause_s = _FIRST_PAUSE_S
        self._failures = 0
        self.deaths = 0

    def after(self, error: EngineError) -> float:
        """Seconds after which the page is sent again.

        Args:
            error: How its last request failed.

        Raises:
            PageQuarantinedError: The server died of it, or seems to, for the second time.
            EngineError: `error`, when it is not sent again.
        """
        if isinstance(error, EngineOverloadedError):
            return self._after_refusal(error)
        self._full_since, self._pause_s = None, _FIRST_PAUSE_S
        self._failures += 1
        self.deaths += isinstance(error, EngineUnavailableError) and error.while_reading
        if self.deaths == _DEATHS_TO_QUARANTINE:
            raise PageQuarantinedError(
                f"The server died {self.deaths} times while it read the page ({error}).",
                "Look at its log and at the page; --retry-failed sends it again.",
            ) from error
        if not error.retryable or self._failures >= self._attempts:
            raise error
        return 0.0

    def _after_refusal(self, error: EngineOverloadedError) -> float:
        now = self._clock()
        self._full_since = now if self._full_since is None else self._full_since
        if now - self._full_since >= self._patience_s:
            raise error
        pause_s, self._pause_s = self._pause_s, self._pause_s * 2
        wanted_s = pause_s if error.retry_after is None else error.retry_after
        return min(_LONGEST_PAUSE_S, max(_SHORTEST_PAUSE_S, wanted_s))
