"""Servers that share the pages among them: who gets the next one, and who is left alone for a while."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from pagemill.domain.errors import EngineUnavailableError
from pagemill.engines.openai.options import SizeClass
from pagemill.engines.openai.window import AdaptiveWindow

_FAILURES_TO_SET_ASIDE = 3
_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 60.0
_MOST_DOUBLINGS = 10


@dataclass
class Endpoint:
    """One server.

    Attributes:
        url: Its base URL, without user and password.
        window: How much it gets at once.
        in_flight: Requests in flight by size class.
        tokens_in_flight: Image tokens of all requests in flight.
        failures: Failures since its last success.
        out_since: When it was set aside, by the dispatcher's clock; None while it is in use.
        probes: How often it was asked whether it is back, since its last success.
        queued: Requests in its own queue when it was last asked; 0 where it does not tell.
        version: What it says it is; empty where it does not.
        context: Tokens of prompt and answer together that it takes; None where it does not say.
    """

    url: str
    window: AdaptiveWindow
    in_flight: dict[str, int] = field(default_factory=dict)
    tokens_in_flight: int = 0
    failures: int = 0
    out_since: float | None = None
    queued: int = 0
    version: str = ""
    context: int | None = None
    probes: int = 0
    completed: int = 0

    @property
    def busy(self) -> int:
        """Requests in flight."""
        return sum(self.in_flight.values())

    @property
    def set_aside(self) -> bool:
        """Whether it gets nothing until a probe succeeds."""
        return self.out_since is not None

    @property
    def has_room(self) -> bool:
        """Whether it may get another request now."""
        return not self.set_aside and self.busy < self.window.limit


@dataclass
class Lease:
    """The right to send one request to one server; give it back with `Dispatcher.release`."""

    endpoint: Endpoint
    size_class: str
    tokens: int
    started: float


@dataclass
class _Waiter:
    tokens: int
    allowed: frozenset[str]
    turn: asyncio.Future[Lease]


class Dispatcher:
    """Hands out the window of each server, fair between size classes.

    Among the classes that wait, the one whose requests in flight are the smallest part of its share comes first; a
    class may use what others leave free. A page goes to the server with the fewest tokens in flight for the width of
    its window.

    Args:
        endpoints: The servers.
        classes: Size classes with their shares.
        clock: Seconds, monotonic.
    """

    def __init__(
        self, endpoints: Sequence[Endpoint], classes: Sequence[SizeClass], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.endpoints = tuple(endpoints)
        self._shares = {size_class.name: size_class.share for size_class in classes}
        self._waiting: dict[str, deque[_Waiter]] = {size_class.name: deque() for size_class in classes}
        self._clock = clock
        self._open = False

    @property
    def waiting(self) -> int:
        """Requests that wait for their turn."""
        return sum(len(queue) for queue in self._waiting.values())

    def open(self) -> None:
        """From now on there are turns."""
        self._open = True

    def close(self) -> None:
        """There are no more turns; those who wait are told at once."""
        self._open = False
        for queue in self._waiting.values():
            while queue:
                queue.popleft().turn.set_exception(not_running())

    async def acquire(self, size_class: str, tokens: int, allowed: frozenset[str], timeout_s: float) -> Lease:
        """Waits for a turn.

        Args:
            size_class: Name of the page's class.
            tokens: Its image tokens.
            allowed: URLs of the servers that may read it; all where none of these is among the servers.
            timeout_s: Seconds for which no allowed server may be in use before this gives up.

        Raises:
            EngineUnavailableError: All allowed servers have been set aside for that long, or the engine is not running.
        """
        if not self._open:
            raise not_running()
        urls = {endpoint.url for endpoint in self.endpoints}
        waiter = _Waiter(tokens, allowed & urls or frozenset(urls), asyncio.get_running_loop().create_future())
        self._waiting[size_class].append(waiter)
        self.pump()
        try:
            return await self._turn(waiter, timeout_s)
        except BaseException:
            if not waiter.turn.done():
                self._waiting[size_class].remove(waiter)
            elif waiter.turn.exception() is None:
                self.release(waiter.turn.result())
            raise

    async def _turn(self, waiter: _Waiter, timeout_s: float) -> Lease:
        while not waiter.turn.done():
            if self._outage_s(waiter.allowed) >= timeout_s:
                names = ", ".join(sorted(waiter.allowed))
                raise EngineUnavailableError(
                    f"No server has answered for {timeout_s:g} s ({names}).",
                    "Start it, or check the URL; then run again with --retry-failed.",
                )
            await asyncio.wait({waiter.turn}, timeout=min(1.0, max(0.01, timeout_s)))
        return waiter.turn.result()

    def _outage_s(self, urls: frozenset[str]) -> float:
        """Seconds for which none of some servers has been in use.

        It is the servers' time and not that of who waits, so that pages that come up one after another, as suspects do,
        do not wait out the same outage one after another.
        """
        since = [endpoint.out_since for endpoint in self.endpoints if endpoint.url in urls]
        return min(-1.0 if moment is None else self._clock() - moment for moment in since)

    def pump(self) -> None:
        """Gives turns to those who wait, as far as there is room; called whenever something changed."""
        blocked: set[str] = set()
        while ready := [name for name, queue in self._waiting.items() if queue and name not in blocked]:
            name = min(ready, key=self._fill)
            lease = self._grant(name)
            if lease is None:
                blocked.add(name)

    def _fill(self, name: str) -> float:
        return sum(endpoint.in_flight.get(name, 0) for endpoint in self.endpoints) / self._shares[name]

    def _grant(self, name: str) -> Lease | None:
        queue = self._waiting[name]
        # Not only the first: those behind it may be allowed elsewhere.
        for waiter in queue:
            candidates = [e for e in self.endpoints if e.url in waiter.allowed and e.has_room]
            if not candidates:
                continue
            endpoint = min(candidates, key=lambda e: (e.tokens_in_flight / e.window.limit, e.completed))
            queue.remove(waiter)
            lease = Lease(endpoint, name, waiter.tokens, self._clock())
            endpoint.in_flight[name] = endpoint.in_flight.get(name, 0) + 1
            endpoint.tokens_in_flight += waiter.tokens
            waiter.turn.set_result(lease)
            return lease
        return None

    def release(self, lease: Lease) -> None:
        """Gives a turn back."""
        lease.endpoint.in_flight[lease.size_class] -= 1
        lease.endpoint.tokens_in_flight -= lease.tokens
        self.pump()

    def succeeded(self, lease: Lease, answer_tokens: int) -> None:
        """Tells that the request of a lease, not yet given back, ended well."""
        endpoint = lease.endpoint
        endpoint.failures = 0
        endpoint.probes = 0
        endpoint.completed += 1
        endpoint.window.on_completed(
            lease.tokens + answer_tokens, self._clock() - lease.started, in_flight=endpoint.busy
        )

    def failed(self, lease: Lease) -> bool:
        """Tells that the server of a lease failed; True where it is now set aside and must be probed."""
        lease.endpoint.failures += 1
        return lease.endpoint.failures >= _FAILURES_TO_SET_ASIDE and self.set_aside(lease.endpoint)

    def set_aside(self, endpoint: Endpoint) -> bool:
        """Leaves a server alone until it is taken back; False where it was left alone already."""
        if endpoint.set_aside:
            return False
        endpoint.out_since = self._clock()
        return True

    def take_back(self, endpoint: Endpoint) -> None:
        """Uses a server again, carefully: it has yet to read a page, and may not be what it was."""
        endpoint.out_since = None
        endpoint.failures = _FAILURES_TO_SET_ASIDE - 1
        endpoint.window.restart()
        self.pump()

    def trust(self, endpoint: Endpoint) -> None:
        """Uses a server on as before: it was set aside only until it was known to be there."""
        endpoint.out_since = None
        self.pump()

    async def probe_until_back(self, endpoint: Endpoint, probe: Callable[[], Awaitable[bool]]) -> None:
        """Asks a server that was set aside, at growing intervals, and takes it back when it answers."""
        while endpoint.set_aside:
            await asyncio.sleep(min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2 ** min(endpoint.probes, _MOST_DOUBLINGS)))
            endpoint.probes += 1
            if await probe():
                self.take_back(endpoint)


def not_running() -> EngineUnavailableError:
    """The error of who comes before the engine has started, or after it was closed."""
    return EngineUnavailableError("The engine is not running: no server has answered yet.", "Try again once it has.")
