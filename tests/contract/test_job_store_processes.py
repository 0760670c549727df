"""What every store of jobs must keep to when real processes share it, die, and come back from the dead."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pagemill.domain import JobStatus, Priority
from pagemill.jobs.sql import SqlJobStore, open_database
from pagemill.jobs.store import StoreOptions
from stores import new_job, open_document, submit

TESTS = Path(__file__).resolve().parent.parent
LEASE_S = 1.0


class Processes:
    """Workers in processes of their own, all killed at the end."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._all: list[asyncio.subprocess.Process] = []

    async def start(self, mode: str = "work") -> asyncio.subprocess.Process:
        arguments = (TESTS / "store_process.py", self._url, f"worker-{len(self._all)}", LEASE_S, mode)
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *map(str, arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            cwd=TESTS,
        )
        self._all.append(process)
        return process

    async def kill(self, process: asyncio.subprocess.Process) -> None:
        if process.returncode is None:
            process.kill()
            # Also closes its pipes.
            await process.communicate()

    async def kill_all(self) -> None:
        for process in self._all:
            await self.kill(process)


@pytest.fixture
async def processes(store_url: str) -> AsyncIterator[Processes]:
    made = Processes(store_url)
    yield made
    await made.kill_all()


@pytest.fixture
async def shared(store_url: str) -> AsyncIterator[SqlJobStore]:
    """A store with the clock that all processes have."""
    database = open_database(store_url, StoreOptions(lease_s=LEASE_S, max_takeovers=1000), process_id="test")
    await database.start()
    yield SqlJobStore(database)
    await database.aclose()


async def assert_all_read_once(store: SqlJobStore, sizes: dict[str, int]) -> None:
    for job_id, size in sizes.items():
        job = await store.get(job_id)
        assert (job.status, job.pages_total, job.pages_done, job.pages_failed) == (JobStatus.SUCCEEDED, size, size, 0)
        assert job.usage.prompt_tokens == 100 * size
        assert [page.index for page in await store.pages(job_id, limit=1000)] == list(range(size))
        told = [event.data["index"] for event in await store.events(job_id, limit=5000) if event.kind == "page"]
        assert sorted(told) == list(range(size))
    stats = await store.stats()
    for counts in (stats.queued, stats.running, stats.tasks_queued, stats.tasks_leased):
        assert dict(counts) == {Priority.INTERACTIVE: 0, Priority.BATCH: 0}


async def submit_some(store: SqlJobStore, count: int) -> dict[str, int]:
    sizes = {}
    for number in range(count):
        priority = Priority.BATCH if number % 3 == 0 else Priority.INTERACTIVE
        size = random.choice([1, 1, 2, 5, 30])
        sizes[(await submit(store, f"key_{number % 4}", priority=priority, size=size)).id] = size
    return sizes


async def all_ended(store: SqlJobStore, sizes: dict[str, int]) -> None:
    while True:
        stats = await store.stats()
        if not any([*stats.queued.values(), *stats.running.values()]):
            return
        await asyncio.sleep(0.1)


@pytest.mark.slow
async def test_processes_read_every_page_once_although_they_are_killed(
    shared: SqlJobStore, processes: Processes
) -> None:
    workers = [await processes.start() for _ in range(3)]
    sizes = await submit_some(shared, 60)
    kills = 0
    while kills < 8:
        done = (await shared.stats()).finished_last_minute
        victim = random.randrange(3)
        await asyncio.sleep(random.uniform(0.1, 0.7))
        await processes.kill(workers[victim])
        kills += 1
        workers[victim] = await processes.start()
        if done > len(sizes) / 2:
            sizes |= await submit_some(shared, 20)
    await all_ended(shared, sizes)
    await assert_all_read_once(shared, sizes)


@pytest.mark.slow
async def test_a_process_that_was_stopped_and_comes_back_is_fenced_off(
    shared: SqlJobStore, processes: Processes
) -> None:
    job = await submit(shared)
    await open_document(shared, 4)
    sleeper = await processes.start("hold")
    assert sleeper.stdout is not None
    assert sleeper.stdin is not None
    assert await sleeper.stdout.readline() == b"holds 0\n"
    sleeper.send_signal(signal.SIGSTOP)
    await processes.start()
    await all_ended(shared, {job.id: 4})
    sleeper.send_signal(signal.SIGCONT)
    sleeper.stdin.write(b"\n")
    assert await sleeper.stdout.readline() == b"lost\n"
    await assert_all_read_once(shared, {job.id: 4})


async def test_many_who_take_and_hand_in_at_once_never_get_the_same_page(store_url: str) -> None:
    databases = [open_database(store_url, StoreOptions(), process_id=f"test-{number}") for number in range(3)]
    for database in databases:
        await database.start()
    stores = [SqlJobStore(database) for database in databases]
    answers = await stores[0].submit([new_job(f"key_{number % 3}", size=9) for number in range(24)])
    seen: list[tuple[str, int]] = []

    async def work(store: SqlJobStore, owner: str) -> None:
        from store_process import read

        idle = 0
        while idle < 20:
            tasks = await store.lease(owner, 3)
            idle = 0 if tasks else idle + 1
            seen.extend((task.job.id, page.index) for task in tasks for page in task.pages)
            await asyncio.gather(*(read(store, task) for task in tasks))
            await store.heartbeat(owner, [task.token for task in tasks])
            if not tasks:
                await asyncio.sleep(0.02)

    await asyncio.gather(*(work(stores[number % 3], f"worker-{number}") for number in range(12)))
    assert len(seen) == len(set(seen)) == 24 * 9
    await assert_all_read_once(stores[1], {job.id: 9 for job, _ in answers})
    for database in databases:
        await database.aclose()


async def test_cancelling_while_many_work_leaves_no_work_behind(store_url: str) -> None:
    databases = [open_database(store_url, StoreOptions(), process_id=f"test-{number}") for number in range(2)]
    for database in databases:
        await database.start()
    stores = [SqlJobStore(database) for database in databases]
    jobs = [job for job, _ in await stores[0].submit([new_job(size=12) for _ in range(20)])]
    from store_process import read

    async def work(store: SqlJobStore, owner: str) -> None:
        while any((await store.stats()).running.values()) or any((await store.stats()).queued.values()):
            tasks: list[Any] = await store.lease(owner, 4)
            await asyncio.gather(*(read(store, task) for task in tasks))

    async def cancel() -> None:
        for number, job in enumerate(jobs):
            await stores[number % 2].cancel(job.id)

    await asyncio.gather(cancel(), *(work(stores[number % 2], f"worker-{number}") for number in range(6)))
    for job in jobs:
        found = await stores[0].get(job.id)
        assert found.status in {JobStatus.CANCELLED, JobStatus.SUCCEEDED}
        assert found.pages_done == len(await stores[0].pages(job.id))
    stats = await stores[0].stats()
    assert not any([*stats.tasks_queued.values(), *stats.tasks_leased.values(), *stats.queued.values()])
    for database in databases:
        await database.aclose()
