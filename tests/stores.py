"""What tests of the store share: databases of both kinds, a clock that stands, and workers that read at once."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from pagemill.domain import Job, NewJob, Page, PageError, StoredPage, TaskKind, Usage, new_job_id
from pagemill.domain.job import Task
from pagemill.jobs.sql import Database, SqlJobStore, open_database
from pagemill.jobs.store import StoreOptions


class StandingClock:
    """Stands still until a test moves it."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> StandingClock:
    return StandingClock()


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """URL of an empty database, of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'jobs.db'}"
    return request.getfixturevalue("postgres").new_database()


OpenStore = Callable[..., Any]


@pytest.fixture
async def open_store(store_url: str, clock: StandingClock) -> AsyncIterator[OpenStore]:
    """Opens stores on the same database, each as another process would."""
    async with contextlib.AsyncExitStack() as stack:
        opened = 0

        async def open_one(**options: Any) -> SqlJobStore:
            nonlocal opened
            opened += 1
            database = open_database(store_url, StoreOptions(**options), process_id=f"test-{opened}", clock=clock)
            stack.push_async_callback(database.aclose)
            await database.start()
            return SqlJobStore(database)

        yield open_one


@pytest.fixture
async def store(open_store: OpenStore) -> SqlJobStore:
    return await open_store()


@pytest.fixture
async def database(store_url: str, clock: StandingClock) -> AsyncIterator[Database]:
    made = open_database(store_url, StoreOptions(), process_id="test", clock=clock)
    await made.start()
    yield made
    await made.aclose()


def new_job(key_id: str = "key_1", **values: Any) -> NewJob:
    job_id = values.pop("id", None) or new_job_id()
    given = {"name": "letter.pdf", "blob": f"documents/{job_id}", "size": 1000, "sha256": "ab" * 32, **values}
    return NewJob(id=job_id, key_id=key_id, **given)


async def submit(store: SqlJobStore, key_id: str = "key_1", **values: Any) -> Job:
    ((job, new),) = await store.submit([new_job(key_id, **values)])
    assert new
    return job


def pages_of(count: int) -> list[Page]:
    return [Page(index, 595.0, 842.5, 90 if index % 2 else 0) for index in range(count)]


def good(index: int, **values: Any) -> StoredPage:
    return StoredPage(index, ok=True, data=f"page {index}".encode(), usage=Usage(100, 10), **values)


def bad(index: int, code: str = "engine_error", **values: Any) -> StoredPage:
    error = PageError(code, f"page {index} failed", retryable=True)
    return StoredPage(index, ok=False, data=b"failed", error=error, usage=Usage(100, 1), **values)


async def lease_one(store: SqlJobStore, owner: str = "worker") -> Task:
    (task,) = await store.lease(owner, 1)
    return task


async def open_document(store: SqlJobStore, pages: int, owner: str = "worker") -> Task:
    """Leases what must be a document to open, and opens it with so many pages."""
    task = await lease_one(store, owner)
    assert task.kind is TaskKind.OPEN
    await store.opened(task, "pdf", pages_of(pages))
    return task


async def work_off(
    store: SqlJobStore,
    *,
    pages: int = 1,
    read: Callable[[int], StoredPage] = good,
    owner: str = "worker",
    room: int = 4,
) -> list[tuple[str, tuple[int, ...]]]:
    """Does all work there is; the jobs and pages in the order in which they came, documents to open without pages."""
    done = []
    while tasks := await store.lease(owner, room):
        for task in tasks:
            done.append((task.job.id, tuple(page.index for page in task.pages)))
            if task.kind is TaskKind.OPEN:
                await store.opened(task, "pdf", pages_of(pages))
            for page in task.pages:
                await store.finish_page(task, read(page.index))
    return done
