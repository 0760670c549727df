"""The job store under a long queue: what each call takes with next to no jobs waiting, and with very many.

python bench/store.py --jobs 20000 --keys 200
python bench/store.py --jobs 20000 --database postgresql://user@host/empty
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import sqlalchemy as sa

from pagemill.domain import Job, NewJob, Page, Priority, StoredPage, TaskKind, new_job_id
from pagemill.jobs.sql import Database, SqlJobStore, open_database
from pagemill.jobs.store import JobFilter, StoreOptions

CALLS = 300
RESULT = random.Random(1).randbytes(3000)


def new_job(key: int) -> NewJob:
    job_id = new_job_id()
    priority = Priority.BATCH if key % 4 == 3 else Priority.INTERACTIVE
    return NewJob(job_id, f"key_{key}", "letter.pdf", f"documents/{job_id}", 100_000, "ab" * 32, priority=priority)


async def timed(call: Callable[[], Awaitable[object]]) -> float:
    start = time.perf_counter()
    await call()
    return (time.perf_counter() - start) * 1000


async def fill(store: SqlJobStore, jobs: int, keys: int) -> None:
    for start in range(0, jobs, 500):
        await store.submit([new_job(number % keys) for number in range(start, min(jobs, start + 500))])


async def measure(store: SqlJobStore, keys: int) -> dict[str, list[float]]:
    """Milliseconds of each call; each is made `CALLS` times, one after the other."""
    took: dict[str, list[float]] = {}
    known: list[Job] = []

    async def note(name: str, call: Callable[[], Awaitable[object]]) -> None:
        took.setdefault(name, []).append(await timed(call))

    for number in range(CALLS):
        new = new_job(number % keys)
        await note("submit", lambda new=new: store.submit([new]))
        known.append(await store.get(new.id))
        job = random.choice(known)
        await note("get", lambda job=job: store.get(job.id))
        await note("place", lambda job=job: store.place(job))
        await note("search", lambda job=job: store.search(JobFilter(key_id=job.key_id), limit=20))
    for number in range(CALLS):
        start = time.perf_counter()
        (task,) = await store.lease("bench", 1)
        took.setdefault("lease", []).append((time.perf_counter() - start) * 1000)
        if task.kind is TaskKind.OPEN:
            await note("opened", lambda task=task: store.opened(task, "pdf", [Page(0, 595.0, 842.0)]))
        for page in task.pages:
            result = StoredPage(page.index, ok=True, data=RESULT)
            await note("finish_page", lambda task=task, result=result: store.finish_page(task, result))
        if number % 10 == 0:
            await note("heartbeat", lambda task=task: store.heartbeat("bench", [task.token]))
            await note("stats", store.stats)
            await note("sweep", store.sweep)
    return took


async def throughput(store: SqlJobStore, workers: int, seconds: float) -> float:
    """Pages a second that so many workers take, open and hand in at once, when reading takes no time."""
    done = 0
    end = time.monotonic() + seconds

    async def work(owner: str) -> None:
        nonlocal done
        while time.monotonic() < end:
            for task in await store.lease(owner, 4):
                if task.kind is TaskKind.OPEN:
                    await store.opened(task, "pdf", [Page(index, 595.0, 842.0) for index in range(4)])
                for page in task.pages:
                    await store.finish_page(task, StoredPage(page.index, ok=True, data=RESULT))
                    done += 1

    await asyncio.gather(*(work(f"worker-{number}") for number in range(workers)))
    return done / seconds


async def run(database: Database, jobs: int, keys: int) -> None:
    await database.start()
    store = SqlJobStore(database)
    await fill(store, 10, keys)
    short = await measure(store, keys)
    start = time.perf_counter()
    await fill(store, jobs, keys)
    print(f"{jobs} jobs of {keys} keys submitted in batches of 500: {time.perf_counter() - start:.1f} s")
    # PostgreSQL does this by itself within a minute; until then it plans for an empty queue.
    await database.write(lambda transaction: transaction.run(sa.text("ANALYZE")).close())
    long = await measure(store, keys)
    print(f"{'milliseconds':<14}{'few jobs':>16}{f'{jobs} jobs':>18}\n{'':<14}{'p50     p99':>16}{'p50     p99':>18}")
    for name, before in short.items():
        figures = [figure for took in (before, long[name]) for figure in quantiles(took)]
        print(f"{name:<14}{figures[0]:>8.2f}{figures[1]:>8.2f}{figures[2]:>10.2f}{figures[3]:>8.2f}")
    print(f"8 workers that read at once: {await throughput(store, 8, 5):.0f} pages/s")
    await database.aclose()


def quantiles(took: list[float]) -> tuple[float, float]:
    return statistics.median(took), statistics.quantiles(took, n=100)[98]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--keys", type=int, default=200)
    parser.add_argument("--database", help="an empty database; a SQLite file in a temporary folder by default")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = given.database or str(Path(folder) / "jobs.db")
        options = StoreOptions(max_queued=10 * given.jobs, max_queued_per_key=10 * given.jobs)
        asyncio.run(run(open_database(url, options, process_id="bench"), given.jobs, given.keys))


if __name__ == "__main__":
    main()
