"""A worker: takes work of jobs from the store, does it, and hands the results in page by page.

It may be killed at any moment: what it held is taken over by others once its lease has run out, and pages that it has
handed in are not read again.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import structlog

from pagemill.conversion import ConversionOptions
from pagemill.conversion.page_store import DocumentKey, MemoryPageStore
from pagemill.conversion.page_work import PageBounds, PageJob, PageWorker
from pagemill.documents import PageSelection, RenderPool
from pagemill.domain import DocumentInfo, DocumentSource, FinishReason, Page, PageError, PageResult, Task, TaskKind
from pagemill.domain.errors import (
    EngineOverloadedError,
    EngineUnavailableError,
    LeaseLostError,
    PagemillError,
    StoreUnavailableError,
)
from pagemill.engines import Engine
from pagemill.jobs.blobs import BlobStore
from pagemill.jobs.engine_pause import EnginePause
from pagemill.jobs.gate import CLAIMANT, Claimant
from pagemill.jobs.options import conversion_options
from pagemill.jobs.page_codec import encode_page, figure_blobs
from pagemill.jobs.store import JobStore
from pagemill.telemetry import TraceContext, get_logger, span

_IDLE_S = 0.3
_HEARTBEAT_S = 1.0
_STORE_PAUSE_S, _LONGEST_STORE_PAUSE_S = 0.2, 5.0
_FAULTS_TO_FAIL = 3
_AWAY = frozenset(error.code for error in (EngineUnavailableError, EngineOverloadedError))
"""Errors that tell of the engine and not of the page: the page waits until the engine is back."""

_log = get_logger("pagemill.jobs")


class WorkerMetrics(Protocol):
    """What a worker reports."""

    def page_finished(self, result: PageResult, seconds: float) -> None:
        """A page was read, from the start of its rendering to its result in the store."""
        ...

    def lease_lost(self) -> None:
        """Work was taken away: others have it, or its job has ended."""
        ...


class _NoMetrics:
    def page_finished(self, result: PageResult, seconds: float) -> None:
        """Ignores it."""

    def lease_lost(self) -> None:
        """Ignores it."""


class _EngineAwayError(Exception):
    """The engine cannot be reached; the work is handed back."""


@dataclass
class _Held:
    """Work that is held, and who does it."""

    task: Task
    left: int
    doing: asyncio.Task[None] | None = None


class JobWorker:
    """Works on jobs until it is stopped.

    Args:
        store: The jobs.
        blobs: Their documents.
        engine: A started engine.
        pool: A started render pool.
        conversion: How documents are converted where a job does not say otherwise.
        owner: Id of this worker, new for each start of a process.
        lease_s: For how long the store lets work be held without a sign of life.
        capacity: How many pages the engine works on at once, now.
        metrics: Gets what happens.
    """

    def __init__(
        self,
        store: JobStore,
        blobs: BlobStore,
        engine: Engine,
        pool: RenderPool,
        conversion: ConversionOptions,
        *,
        owner: str,
        lease_s: float,
        capacity: Callable[[], int],
        metrics: WorkerMetrics | None = None,
    ) -> None:
        self._store = store
        self._blobs = blobs
        self._engine = engine
        self._pool = pool
        self._conversion = conversion
        self._owner = owner
        self._heartbeat_s = min(_HEARTBEAT_S, lease_s / 4)
        self._capacity = capacity
        self._metrics = metrics or _NoMetrics()
        self._bounds = PageBounds(engine, pool, conversion.buffer_bytes)
        self._held: dict[str, _Held] = {}
        self._faults: Counter[int] = Counter()
        self._changed = asyncio.Event()
        self._taking = asyncio.Lock()
        self._stopping = asyncio.Event()
        self._engine_pause = EnginePause()

    @property
    def pages_held(self) -> int:
        """Pages of the work that is held and not yet done."""
        return sum(held.left for held in self._held.values())

    def wake(self) -> None:
        """Looks for work at once: some was just handed in."""
        self._changed.set()

    async def run(self) -> None:
        """Works until `stop`."""
        beat = asyncio.create_task(self._heartbeats())
        try:
            while not self._stopping.is_set():
                self._changed.clear()
                if not await self._look_for_work():
                    await self._wait(_IDLE_S * random.uniform(0.7, 1.3))  # noqa: S311 - no secret
        finally:
            if not self._stopping.is_set():
                await self.stop(0.0)
            beat.cancel()
            await asyncio.gather(beat, return_exceptions=True)

    async def stop(self, drain_s: float) -> None:
        """Takes nothing more, lets what is under way finish for so long, and hands back the rest."""
        self._stopping.set()
        self.wake()
        doing = {held.doing for held in self._held.values() if held.doing is not None}
        if doing and drain_s > 0:
            _, doing = await asyncio.wait(doing, timeout=drain_s)
        for task in doing:
            task.cancel()
        await asyncio.gather(*doing, return_exceptions=True)
        async with self._taking:
            # What was just being taken has gone back.
            pass

    async def _wait(self, seconds: float) -> None:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._changed.wait(), seconds)

    async def _look_for_work(self) -> bool:
        """As `_take_work`; whatever fails, the work that is held goes on."""
        try:
            return await self._take_work()
        except StoreUnavailableError as error:
            _log.warning("no work can be taken", error=str(error))
        except Exception:  # noqa: BLE001 - a fault must not end what is under way
            _log.exception("no work can be taken")
        await self._wait(_LONGEST_STORE_PAUSE_S)
        return False

    async def _take_work(self) -> bool:
        """Takes as much as there is room for; False where there was none, or nothing to do."""
        room = self._wanted() - self.pages_held
        if room <= 0 or not await self._engine_is_there():
            return False
        async with self._taking:
            if self._stopping.is_set():
                return False
            tasks = await self._store.lease(self._owner, room)
            if self._stopping.is_set():
                await self._give_back(tasks)
                return False
        for task in tasks:
            held = _Held(task, max(1, len(task.pages)))
            self._held[task.token] = held
            held.doing = asyncio.create_task(self._work(held))
        return bool(tasks)

    def _wanted(self) -> int:
        """Pages to hold: what the engine works on, and what is rendered ahead of it."""
        return max(1, self._capacity()) + 2 * self._pool.workers

    async def _engine_is_there(self) -> bool:
        """Whether the engine can be given pages; after a failure it is asked at growing intervals."""
        pause = self._engine_pause
        if not pause.is_suspect:
            return True
        await self._wait(pause.left_s)
        if not pause.is_over:
            # Woken early: work that is handed in does not make the engine come back.
            return False
        health = await self._engine.health()
        if health.ready:
            return True
        pause.failed()
        _log.warning("no work is taken while the engine is away", detail=health.detail)
        return False

    async def _heartbeats(self) -> None:
        while True:
            await asyncio.sleep(self._heartbeat_s)
            try:
                lost = await self._store.heartbeat(self._owner, list(self._held))
            except PagemillError as error:
                _log.warning("leases cannot be prolonged", error=str(error))
                continue
            except Exception:  # noqa: BLE001 - without signs of life all work would be lost
                _log.exception("leases cannot be prolonged")
                continue
            for token in lost:
                if (held := self._held.get(token)) is not None and held.doing is not None:
                    self._metrics.lease_lost()
                    held.doing.cancel()

    async def _work(self, held: _Held) -> None:
        """Does a piece of work; whatever happens, it is not held any longer afterwards."""
        task = held.task
        job = task.job
        CLAIMANT.set(Claimant(job.key_id, job.priority))
        structlog.contextvars.bind_contextvars(job=job.id, request=job.request_id)
        give_back = True
        try:
            await (self._open(task) if task.kind is TaskKind.OPEN else self._read(held))
            give_back = False
            self._faults.pop(task.id, None)
        except LeaseLostError:
            give_back = False
            self._metrics.lease_lost()
        except _EngineAwayError:
            self._engine_pause.failed()
        except StoreUnavailableError as error:
            _log.warning("work is handed back", error=str(error))
        except Exception:  # noqa: BLE001 - a fault in one job must not end the work on others
            self._faults[task.id] += 1
            _log.exception("work failed in an unexpected way", task=task.id, faults=self._faults[task.id])
        finally:
            self._held.pop(task.token, None)
            if give_back:
                await self._give_back([task])
            self._changed.set()

    async def _give_back(self, tasks: Sequence[Task]) -> None:
        # Shielded: also one who is cancelled at the end of the process gives its work back.
        with contextlib.suppress(PagemillError):
            await asyncio.shield(self._store.hand_back(self._owner, [task.token for task in tasks]))

    async def _open(self, task: Task) -> None:
        """Looks into a document and says which pages it has."""
        job = task.job
        if self._faults[task.id] >= _FAULTS_TO_FAIL:
            await self._insist(lambda: self._store.open_failed(task, _internal_error("The document")))
            return
        options = conversion_options(self._conversion, job.options)
        with span("job.open", TraceContext(job.trace), job=job.id):
            try:
                async with self._blobs.local(job.blob) as path:
                    info = await self._pool.inspect(DocumentSource(path, job.name, task.secrets))
                pages = PageSelection.parse(options.pages).apply(info.pages)
            except StoreUnavailableError:
                raise
            except PagemillError as error:
                failure = PageError(error.code, str(error), error.retryable)
                await self._insist(lambda: self._store.open_failed(task, failure))
                return
            await self._insist(lambda: self._store.opened(task, info.format, pages))

    async def _read(self, held: _Held) -> None:
        """Reads pages of a document, all at once as far as the bounds let them."""
        task = held.task
        job = task.job
        options = conversion_options(self._conversion, job.options)
        info = DocumentInfo(job.sha256, job.format, task.pages)
        worker = PageWorker(self._engine, self._pool, MemoryPageStore(), options, self._bounds)
        async with self._blobs.local(job.blob) as path:
            source = DocumentSource(path, job.name, task.secrets)
            reading = [
                asyncio.create_task(
                    self._page(held, worker, PageJob(source, info, page, DocumentKey(job.sha256, job.id)))
                )
                for page in task.pages
            ]
            try:
                outcomes = await asyncio.gather(*reading, return_exceptions=True)
            finally:
                for one in reading:
                    one.cancel()
                await asyncio.gather(*reading, return_exceptions=True)
        errors = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        # One page's fault is told before the engine's absence: the latter passes by itself.
        errors.sort(key=lambda error: isinstance(error, _EngineAwayError))
        if errors:
            raise errors[0]

    async def _page(self, held: _Held, worker: PageWorker, page_job: PageJob) -> None:
        task, page = held.task, page_job.page
        job = task.job
        structlog.contextvars.bind_contextvars(page=page.index + 1)
        started = time.monotonic()
        with span("job.page", TraceContext(job.trace), job=job.id, page=page.index + 1):
            if self._faults[task.id] >= _FAULTS_TO_FAIL:
                result = _failed_page(page)
            else:
                outcome = await worker.process(page_job)
                assert outcome is not None
                result = outcome[0]
            if result.error is not None and result.error.code in _AWAY:
                raise _EngineAwayError(result.error.message)
            self._engine_pause.worked()
            for name, data in figure_blobs(job.id, job.attempt, result).items():
                await self._insist(lambda name=name, data=data: self._blobs.put_bytes(name, data))  # type: ignore[misc]
            stored = await asyncio.to_thread(encode_page, job.id, job.attempt, page, result)
            await self._insist(lambda: self._store.finish_page(task, stored))
        held.left = max(0, held.left - 1)
        self._changed.set()
        self._metrics.page_finished(result, time.monotonic() - started)

    async def _insist(self, action: Callable[[], Awaitable[None]]) -> None:
        """Does something with the store, again and again while that does not answer: the work is not to be lost."""
        pause = _STORE_PAUSE_S
        while True:
            try:
                await action()
            except StoreUnavailableError as error:
                _log.warning("the store is asked again", error=str(error))
                await asyncio.sleep(pause)
                pause = min(_LONGEST_STORE_PAUSE_S, pause * 2)
            else:
                return


def _internal_error(what: str) -> PageError:
    return PageError(
        "internal_error",
        f"{what} failed {_FAULTS_TO_FAIL} times in an unexpected way. The service's log has the details.",
        retryable=True,
    )


def _failed_page(page: Page) -> PageResult:
    return PageResult(page.index, "", finish_reason=FinishReason.ERROR, error=_internal_error(f"Page {page.index + 1}"))
