"""Signs of overload that vLLM itself gives, in its metrics: requests that wait in its queue, and preemptions.

A queue in the server is time for which pages of others cannot be put before ours, and a preempted page is computed
twice: the window is too wide in both cases, although every request still ends well.
"""

from __future__ import annotations

import asyncio
import contextlib

import aiohttp

from pagemill.engines.openai.endpoints import Endpoint
from pagemill.engines.openai.window import Overload

_INTERVAL_S = 1.0
_TIMEOUT_S = 5.0
_MISSES_TO_STOP = 3
_WAITING = "vllm:num_requests_waiting"
_PREEMPTIONS = ("vllm:num_preemptions_total", "vllm:num_preemptions")
_QUEUE_SHARE = 0.1
"""Of the window; fewer may wait for the moment until the scheduler's next step."""


def read_load(text: str) -> tuple[float, float] | None:
    """Requests waiting and preemptions so far, over all engines of a server; None where it tells neither.

    Args:
        text: Its metrics, in Prometheus' text format.
    """
    totals: dict[str, float] = {}
    for line in text.splitlines():
        if not line.startswith("vllm:num_"):
            continue
        name = line.split("{", 1)[0].split(" ", 1)[0]
        with contextlib.suppress(ValueError):
            totals[name] = totals.get(name, 0.0) + float(line.rsplit(" ", 1)[1])
    if _WAITING not in totals:
        return None
    return totals[_WAITING], next((totals[name] for name in _PREEMPTIONS if name in totals), 0.0)


class LoadWatch:
    """Looks at a server's metrics while requests are in flight there, and tells its window of what it sees.

    Args:
        endpoint: The server.
        session: Connections to it.
    """

    def __init__(self, endpoint: Endpoint, session: aiohttp.ClientSession) -> None:
        self._endpoint = endpoint
        self._session = session
        self._preemptions: float | None = None
        self._queued_before = False
        self._misses = 0
        self._task: asyncio.Task[None] | None = None

    def look(self) -> None:
        """Begins to look, where it does not yet; a server that has no such metrics is left in peace."""
        if self._misses < _MISSES_TO_STOP and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._run())

    async def aclose(self) -> None:
        """Ends it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        await asyncio.sleep(_INTERVAL_S)
        while self._endpoint.busy and self._misses < _MISSES_TO_STOP:
            with contextlib.suppress(aiohttp.ClientError, asyncio.TimeoutError, OSError, UnicodeDecodeError):
                self._hear(await self._ask())
            await asyncio.sleep(_INTERVAL_S)
        self._queued_before = False
        self._endpoint.queued = 0

    async def _ask(self) -> tuple[float, float] | None:
        url = f"{self._endpoint.url.removesuffix('/v1')}/metrics"
        async with self._session.get(url, timeout=aiohttp.ClientTimeout(total=_TIMEOUT_S)) as response:
            return read_load(await response.text()) if response.status == 200 else None

    def _hear(self, load: tuple[float, float] | None) -> None:
        # Only an answer tells that there are no such metrics; a server that is silent may have died or hang.
        if load is None:
            self._misses += 1
            return
        self._misses = 0
        self._judge(*load)

    def _judge(self, waiting: float, preemptions: float) -> None:
        window = self._endpoint.window
        self._endpoint.queued = int(waiting)
        queued = waiting > max(1.0, _QUEUE_SHARE * window.limit)
        if queued and self._queued_before:
            window.on_overload(Overload.QUEUEING)
        self._queued_before = queued
        # Fewer than before: the server was started anew.
        if self._preemptions is not None and preemptions > self._preemptions:
            window.on_overload(Overload.PREEMPTION)
        self._preemptions = preemptions
