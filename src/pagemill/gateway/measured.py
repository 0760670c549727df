"""Parts of the service that tell how long they take."""

from __future__ import annotations

import time

from pagemill.documents import RenderOptions, RenderPool
from pagemill.domain import DocumentSource, Page, PageImage, PageResult, SamplingParams, StoredPage, Task
from pagemill.engines import EngineCapabilities, EngineHealth
from pagemill.gateway.metrics import Metrics
from pagemill.jobs.gated_engine import GatedEngine
from pagemill.jobs.sql import Database, SqlJobStore


class MeasuredPool(RenderPool):
    """A render pool that tells the time of each page.

    Args:
        options: What pages look like, and the limits.
        workers: Number of processes; None for one per available CPU.
        metrics: Gets the times.
    """

    def __init__(self, options: RenderOptions, workers: int | None, metrics: Metrics) -> None:
        super().__init__(options, workers=workers)
        self._metrics = metrics

    async def render(self, source: DocumentSource, page: Page, *, text_layer: bool = False) -> PageImage:
        """See `RenderPool.render`."""
        started = time.monotonic()
        image = await super().render(source, page, text_layer=text_layer)
        self._metrics.stage_done("render", time.monotonic() - started)
        return image


class MeasuredJobs(SqlJobStore):
    """A job store that tells how long it takes to keep a page.

    Args:
        database: Where it is kept; started and closed by its owner.
        metrics: Gets the times.
    """

    def __init__(self, database: Database, metrics: Metrics) -> None:
        super().__init__(database)
        self._metrics = metrics

    async def finish_page(self, task: Task, page: StoredPage) -> None:
        """See `JobStore.finish_page`."""
        started = time.monotonic()
        await super().finish_page(task, page)
        self._metrics.stage_done("store", time.monotonic() - started)


class MeasuredEngine:
    """An engine behind the gate that tells how long pages wait, and how long they are read.

    Args:
        engine: The engine.
        metrics: Gets the times.
    """

    def __init__(self, engine: GatedEngine, metrics: Metrics) -> None:
        self._engine = engine
        self._metrics = metrics

    @property
    def name(self) -> str:
        """That of the engine."""
        return self._engine.name

    @property
    def capabilities(self) -> EngineCapabilities:
        """Those of the engine."""
        return self._engine.capabilities

    async def start(self) -> None:
        """Starts the engine."""
        await self._engine.start()

    async def recognize(self, page: PageImage, params: SamplingParams) -> PageResult:
        """See `Engine.recognize`."""
        started = time.monotonic()
        result = await self._engine.recognize(page, params)
        seconds = time.monotonic() - started
        read = min(seconds, result.duration_s)
        self._metrics.stage_done("recognise", read)
        self._metrics.stage_done("wait", seconds - read)
        return result

    async def health(self) -> EngineHealth:
        """That of the engine."""
        return await self._engine.health()

    async def aclose(self) -> None:
        """Closes the engine."""
        await self._engine.aclose()
