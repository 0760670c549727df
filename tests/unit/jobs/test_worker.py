from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pikepdf
import pytest
import structlog

from document_builders import text_pdf
from fakes import FakeEngine
from job_service import Service
from pagemill.conversion import ConversionOptions
from pagemill.documents import RenderOptions, RenderPool
from pagemill.domain import ConversionStatus, JobStatus, PageImage, PageResult, SamplingParams
from pagemill.domain.errors import EngineUnavailableError, StoreUnavailableError
from pagemill.domain.job import Job
from pagemill.engines import EngineHealth
from pagemill.jobs.gate import CLAIMANT, Claimant, Gate
from pagemill.jobs.gated_engine import GatedEngine
from pagemill.jobs.page_codec import decode_page
from pagemill.jobs.worker import JobWorker


@pytest.fixture
async def pool() -> AsyncIterator[RenderPool]:
    async with RenderPool(RenderOptions(), workers=1) as pool:
        yield pool


class Workplace:
    """Workers on one store."""

    def __init__(self, service: Service, pool: RenderPool) -> None:
        self.service = service
        self.pool = pool
        self.running: list[tuple[JobWorker, asyncio.Task[None]]] = []

    def worker(self, engine: Any, name: str = "w1", capacity: int = 2, **more: Any) -> JobWorker:
        worker = JobWorker(
            more.pop("store", self.service.store),
            self.service.blobs,
            engine,
            self.pool,
            ConversionOptions(page_attempts=1),
            owner=name,
            lease_s=2.0,
            capacity=lambda: capacity,
            **more,
        )
        self.running.append((worker, asyncio.create_task(worker.run())))
        return worker

    async def until(self, job: Job, wanted: Callable[[Job], bool] = lambda job: job.status.ended) -> Job:
        for _ in range(1200):
            now = await self.service.store.get(job.id)
            if wanted(now):
                return now
            await asyncio.sleep(0.025)
        raise AssertionError(now)

    async def texts(self, job: Job) -> list[str]:
        return [decode_page(page).result.markdown for page in await self.service.store.pages(job.id)]


@pytest.fixture
async def workplace(service: Service, pool: RenderPool) -> AsyncIterator[Workplace]:
    workplace = Workplace(service, pool)
    yield workplace
    for worker, task in workplace.running:
        await worker.stop(0)
        await asyncio.wait_for(asyncio.gather(task, return_exceptions=True), 20)


async def test_a_document_becomes_pages_in_the_store(workplace: Workplace, tmp_path: Path) -> None:
    engine = FakeEngine()
    workplace.worker(engine)
    job = await workplace.service.submit(text_pdf(tmp_path / "x.pdf", "one", "two", "three"))
    done = await workplace.until(job)
    assert (done.status, done.outcome) == (JobStatus.SUCCEEDED, ConversionStatus.SUCCESS)
    assert (done.format, done.pages_total, done.pages_done, done.pages_failed) == ("pdf", 3, 3, 0)
    assert [text.splitlines()[0] for text in await workplace.texts(job)] == ["# Page 1", "# Page 2", "# Page 3"]
    assert sorted(engine.seen) == [0, 1, 2]
    (first, *_) = await workplace.service.store.pages(job.id)
    assert await workplace.service.blobs.get_bytes(first.figures[0])


async def test_options_of_the_job_choose_its_pages(workplace: Workplace, tmp_path: Path) -> None:
    engine = FakeEngine()
    workplace.worker(engine)
    job = await workplace.service.submit(text_pdf(tmp_path / "x.pdf", *"abcde"), options={"pages": "2,4-"})
    assert (await workplace.until(job)).pages_total == 3
    assert sorted(engine.seen) == [1, 3, 4]


async def test_what_cannot_be_opened_fails_with_its_code(workplace: Workplace, tmp_path: Path) -> None:
    broken = tmp_path / "x.pdf"
    broken.write_bytes(b"%PDF-1.7 nothing")
    workplace.worker(FakeEngine())
    done = await workplace.until(await workplace.service.submit(broken))
    assert done.status is JobStatus.FAILED
    assert done.error is not None
    assert done.error.code == "corrupt_document"


async def test_the_engine_knows_for_whom_it_reads(workplace: Workplace, tmp_path: Path) -> None:
    seen: list[Claimant] = []
    workplace.worker(FakeEngine(lambda _page: seen.append(CLAIMANT.get())))
    await workplace.until(await workplace.service.submit(text_pdf(tmp_path / "x.pdf", "a"), key_id="key_b"))
    assert [claimant.key_id for claimant in seen] == ["key_b"]


class WaitingEngine(FakeEngine):
    """Holds each page until it is told to go on."""

    def __init__(self) -> None:
        super().__init__(max_in_flight=8)
        self.go = asyncio.Event()
        self.cancelled = 0

    async def recognize(self, page: PageImage, params: SamplingParams) -> PageResult:
        try:
            self.in_flight += 1
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.in_flight -= 1
        return await super().recognize(page, params)


async def eventually(condition: Callable[[], bool], meanwhile: Callable[[], None] = lambda: None) -> None:
    for _ in range(1200):
        meanwhile()
        if condition():
            return
        await asyncio.sleep(0.025)
    raise AssertionError("it did not come to pass")


async def test_the_engine_is_soon_rid_of_a_cancelled_job(workplace: Workplace, tmp_path: Path) -> None:
    engine = WaitingEngine()
    worker = workplace.worker(engine, capacity=4)
    job = await workplace.service.submit(text_pdf(tmp_path / "x.pdf", *"abc"))
    await eventually(lambda: engine.in_flight == 3)
    await workplace.service.store.cancel(job.id)
    await eventually(lambda: engine.in_flight == 0)
    assert engine.cancelled == 3
    await eventually(lambda: worker.pages_held == 0)
    assert engine.seen == []


async def test_no_more_is_held_than_there_is_room_for(workplace: Workplace, tmp_path: Path) -> None:
    engine = WaitingEngine()
    worker = workplace.worker(engine, capacity=2)
    job = await workplace.service.submit(text_pdf(tmp_path / "x.pdf", *map(str, range(30))))
    await eventually(lambda: worker.pages_held >= 4)
    for _ in range(20):
        await asyncio.sleep(0.02)
        assert worker.pages_held <= 2 + 2 * workplace.pool.workers + 1
    engine.go.set()
    assert (await workplace.until(job)).pages_done == 30


async def test_pages_wait_while_the_engine_is_away_and_none_fails(workplace: Workplace, tmp_path: Path) -> None:
    class Away(FakeEngine):
        ready = False

        async def health(self) -> EngineHealth:
            return EngineHealth(self.ready, "away")

    def fail(_page: PageImage) -> None:
        if not engine.ready:
            raise EngineUnavailableError("gone")

    engine = Away(fail)
    workplace.worker(engine)
    job = await workplace.service.submit(text_pdf(tmp_path / "x.pdf", *"abc"))
    await eventually(lambda: len(engine.seen) >= 2)
    assert (await workplace.service.store.get(job.id)).pages_failed == 0
    engine.ready = True
    done = await workplace.until(job)
    assert (done.pages_done, done.pages_failed) == (3, 0)


async def test_a_store_that_is_away_for_a_while_loses_no_result(workplace: Workplace, tmp_path: Path) -> None:
    store = workplace.service.store
    failures = iter(range(3))

    class Shaky:
        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        async def finish_page(self, *arguments: Any) -> None:
            if next(failures, None) is not None:
                raise StoreUnavailableError("away")
            await store.finish_page(*arguments)

    engine = FakeEngine()
    workplace.worker(engine, store=Shaky())
    done = await workplace.until(await workplace.service.submit(text_pdf(tmp_path / "x.pdf", "a", "b")))
    assert done.pages_done == 2
    assert sorted(engine.seen) == [0, 1]


async def test_a_fault_of_ours_fails_its_pages_after_some_tries_and_ends_nothing_else(
    workplace: Workplace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pagemill.jobs.worker as module

    real = module.encode_page
    tries = 0

    def faulty(job_id: str, attempt: int, page: Any, result: PageResult) -> Any:
        nonlocal tries
        if job_id == bad.id and result.ok:
            tries += 1
            raise RuntimeError("a bug")
        return real(job_id, attempt, page, result)

    monkeypatch.setattr(module, "encode_page", faulty)
    bad = await workplace.service.submit(text_pdf(tmp_path / "x.pdf", "a"))
    good = await workplace.service.submit(text_pdf(tmp_path / "y.pdf", "a"))
    workplace.worker(FakeEngine())
    assert (await workplace.until(good)).pages_done == 1
    done = await workplace.until(bad)
    assert (done.status, done.pages_failed, tries) == (JobStatus.FAILED, 1, 3)
    (page,) = await workplace.service.store.pages(bad.id)
    assert page.error is not None
    assert page.error.code == "internal_error"


async def test_a_stop_finishes_what_it_can_and_hands_the_rest_back(workplace: Workplace, tmp_path: Path) -> None:
    engine = WaitingEngine()
    worker = workplace.worker(engine, "w1", capacity=4)
    job = await workplace.service.submit(text_pdf(tmp_path / "x.pdf", *"ab"))
    await eventually(lambda: engine.in_flight == 2)
    await worker.stop(0.05)
    assert worker.pages_held == 0
    other = FakeEngine()
    workplace.worker(other, "w2")
    # Long before the lease of the first would have run out: it was handed back.
    assert (await workplace.until(job)).pages_done == 2
    assert sorted(other.seen) == [0, 1]


async def test_a_drain_lets_pages_under_way_finish(workplace: Workplace, tmp_path: Path) -> None:
    engine = WaitingEngine()
    worker = workplace.worker(engine, capacity=4)
    job = await workplace.service.submit(text_pdf(tmp_path / "x.pdf", *"ab"))
    await eventually(lambda: engine.in_flight == 2)
    stopping = asyncio.create_task(worker.stop(20))
    await asyncio.sleep(0.05)
    engine.go.set()
    await stopping
    assert (await workplace.service.store.get(job.id)).pages_done == 2


async def test_a_result_that_comes_after_a_takeover_is_dropped(workplace: Workplace, tmp_path: Path) -> None:
    class Lost:
        count = 0

        def page_finished(self, result: PageResult, seconds: float) -> None:
            raise AssertionError("its result was taken")

        def lease_lost(self) -> None:
            self.count += 1

    slow, metrics = WaitingEngine(), Lost()
    first = workplace.worker(slow, "w1", capacity=2, metrics=metrics)
    job = await workplace.service.submit(text_pdf(tmp_path / "x.pdf", "a"))
    await eventually(lambda: slow.in_flight == 1)
    # Its heartbeats stop, as those of a process that hangs do.
    first._held.clear()
    await asyncio.sleep(2.1)
    await workplace.service.store.sweep()
    fast = FakeEngine()
    workplace.worker(fast, "w2")
    done = await workplace.until(job)
    assert done.pages_done == 1
    slow.go.set()
    await eventually(lambda: metrics.count == 1)
    after = await workplace.service.store.get(job.id)
    assert (after.pages_done, after.pages_failed) == (1, 0)


async def test_a_page_that_finds_the_gate_full_waits_and_does_not_fail(workplace: Workplace, tmp_path: Path) -> None:
    gate = Gate(10_000, capacity=lambda: 1, max_waiting=1)
    engine = FakeEngine()

    async def stay() -> None:
        async with gate.enter(1):
            await asyncio.Event().wait()

    crowd = [asyncio.create_task(stay()) for _ in range(2)]
    await eventually(lambda: gate.waiting == 1)
    worker = workplace.worker(GatedEngine(engine, gate))
    job = await workplace.service.submit(text_pdf(tmp_path / "x.pdf", "a"))
    await workplace.until(job, lambda now: now.pages_total == 1)
    await eventually(lambda: worker.pages_held == 1)
    await eventually(lambda: worker.pages_held == 0)
    assert engine.seen == []
    assert (await workplace.service.store.get(job.id)).pages_failed == 0
    for one in crowd:
        one.cancel()
    done = await workplace.until(job)
    assert (done.pages_done, done.pages_failed) == (1, 0)


async def test_work_that_is_just_being_taken_at_a_stop_goes_back(workplace: Workplace, tmp_path: Path) -> None:
    store = workplace.service.store
    taken, go = asyncio.Event(), asyncio.Event()

    class Slow:
        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        async def lease(self, owner: str, pages: int) -> Any:
            tasks = await store.lease(owner, pages)
            if tasks:
                taken.set()
                await go.wait()
            return tasks

    job = await workplace.service.submit(text_pdf(tmp_path / "x.pdf", "a"))
    worker = workplace.worker(FakeEngine(), store=Slow())
    await asyncio.wait_for(taken.wait(), 30)
    stopping = asyncio.create_task(worker.stop(0))
    await asyncio.sleep(0.05)
    go.set()
    await asyncio.wait_for(stopping, 30)
    assert worker.pages_held == 0
    # It was not even opened, and nobody has to wait for its lease to run out.
    assert sum((await store.stats()).tasks_leased.values()) == 0
    assert (await store.get(job.id)).pages_total is None


@pytest.mark.parametrize("where", ["lease", "health"])
async def test_a_fault_while_work_is_looked_for_ends_no_work(workplace: Workplace, tmp_path: Path, where: str) -> None:
    store = workplace.service.store
    hit = 0

    def fault() -> None:
        nonlocal hit
        if hit < 2:
            hit += 1
            raise RuntimeError("a bug")

    class Faulty:
        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        async def lease(self, owner: str, pages: int) -> Any:
            if where == "lease":
                fault()
            return await store.lease(owner, pages)

    class Sick(FakeEngine):
        async def health(self) -> EngineHealth:
            if where == "health":
                fault()
            return EngineHealth(ready=True)

    away = iter([True])

    def fail(_page: PageImage) -> None:
        if where == "health" and next(away, False):
            raise EngineUnavailableError("gone")

    worker = workplace.worker(Sick(fail), store=Faulty())
    job = await workplace.service.submit(text_pdf(tmp_path / "x.pdf", *"ab"))
    # It waits a while after each fault, unless there is news.
    await eventually(lambda: hit == 2, worker.wake)
    done = await workplace.until(job)
    assert (done.pages_done, done.pages_failed) == (2, 0)
    assert not workplace.running[0][1].done()


async def test_passwords_of_a_job_open_its_document(workplace: Workplace, tmp_path: Path) -> None:
    locked = tmp_path / "x.pdf"
    with pikepdf.open(text_pdf(tmp_path / "plain.pdf", "a", "b")) as document:
        document.save(locked, encryption=pikepdf.Encryption(owner="o", user="geheim"))
    workplace.worker(FakeEngine())
    known = await workplace.until(await workplace.service.submit(locked, secrets=("wrong", "geheim")))
    assert (known.status, known.pages_done) == (JobStatus.SUCCEEDED, 2)
    unknown = await workplace.until(await workplace.service.submit(locked))
    assert unknown.error is not None
    assert unknown.error.code == "encrypted_document"


async def test_a_document_of_more_pages_than_allowed_says_how_many(service: Service, tmp_path: Path) -> None:
    async with RenderPool(RenderOptions(max_pages=2), workers=1) as pool:
        workplace, engine = Workplace(service, pool), FakeEngine()
        worker = workplace.worker(engine)
        done = await workplace.until(await service.submit(text_pdf(tmp_path / "x.pdf", *"abc")))
        await worker.stop(0)
    assert done.error is not None
    assert done.error.code == "limit_exceeded"
    assert "3 pages" in done.error.message
    assert engine.seen == []


async def test_logs_of_a_page_name_its_job_and_its_request_and_no_others(workplace: Workplace, tmp_path: Path) -> None:
    bound: dict[int, dict[str, Any]] = {}
    workplace.worker(FakeEngine(lambda page: bound.__setitem__(page.index, structlog.contextvars.get_contextvars())))
    job = await workplace.service.submit(text_pdf(tmp_path / "x.pdf", "a", "b"), request_id="req_1")
    await workplace.until(job)
    assert bound == {index: {"job": job.id, "request": "req_1", "page": index + 1} for index in (0, 1)}
    assert "job" not in structlog.contextvars.get_contextvars()
