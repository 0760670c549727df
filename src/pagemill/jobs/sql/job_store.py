"""The store of jobs on a SQL database."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from functools import partial

from pagemill.domain import Job, JobEvent, NewJob, Page, PageError, QueueStats, StoredPage
from pagemill.domain.errors import LeaseLostError
from pagemill.domain.job import Task
from pagemill.jobs.sql import leasing, looking, results, submission, sweeping
from pagemill.jobs.sql.database import Database
from pagemill.jobs.sql.records import find_job
from pagemill.jobs.sql.rows import to_job
from pagemill.jobs.store import JobFilter, Sweep

_PLACES_FOR_S = 1.0


class SqlJobStore:
    """See `JobStore`.

    Args:
        database: Where it is kept; started and closed by its owner.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._options = database.options
        share = self._options.batch_share
        self._batch_first = (turn % share == share - 1 for turn in itertools.count())
        self._waiting: looking.Waiting | None = None

    async def submit(self, jobs: Sequence[NewJob]) -> list[tuple[Job, bool]]:
        """See `JobStore.submit`."""
        return await self._database.write(lambda transaction: submission.submit(transaction, self._options, jobs))

    async def get(self, job_id: str, key_id: str | None = None) -> Job:
        """See `JobStore.get`."""
        return await self._database.read(lambda transaction: to_job(find_job(transaction, job_id, key_id)))

    async def search(self, wanted: JobFilter, *, limit: int, cursor: str | None = None) -> tuple[list[Job], str | None]:
        """See `JobStore.search`."""
        return await self._database.read(lambda transaction: looking.search(transaction, wanted, limit, cursor))

    async def cancel(self, job_id: str, key_id: str | None = None) -> Job:
        """See `JobStore.cancel`."""
        return await self._database.write(
            lambda transaction: results.cancel(transaction, self._options, job_id, key_id)
        )

    async def retry_failed(self, job_id: str, key_id: str | None = None) -> Job:
        """See `JobStore.retry_failed`."""
        return await self._database.write(
            lambda transaction: submission.retry_failed(transaction, self._options, job_id, key_id)
        )

    async def events(self, job_id: str, after: int = 0, limit: int = 500) -> list[JobEvent]:
        """See `JobStore.events`."""
        return await self._database.read(lambda transaction: looking.list_events(transaction, job_id, after, limit))

    async def pages(self, job_id: str, *, first: int = 0, limit: int = 100) -> list[StoredPage]:
        """See `JobStore.pages`."""
        return await self._database.read(lambda transaction: looking.list_pages(transaction, job_id, first, limit))

    async def place(self, job: Job) -> int | None:
        """See `JobStore.place`."""
        own = await self._database.read(lambda transaction: looking.place_in_flow(transaction, job.id))
        if own is None:
            return None
        waiting, now = self._waiting, time.monotonic()
        if waiting is None or now - waiting.at > _PLACES_FOR_S:
            waiting = await self._database.read(lambda transaction: looking.count_waiting(transaction, now))
            self._waiting = waiting
        flow_id, before = own
        return looking.place_in_all(waiting, flow_id, before, job.priority, self._options.batch_share)

    async def stats(self) -> QueueStats:
        """See `JobStore.stats`."""
        return await self._database.read(looking.stats)

    async def lease(self, owner: str, pages: int) -> list[Task]:
        """See `JobStore.lease`."""
        # Those who ask in vain, again and again, must not take the lock that a transaction takes.
        if not await self._database.read(leasing.any_queued):
            return []
        return await self._database.write(
            lambda transaction: leasing.lease(transaction, self._options, owner, pages, self._batch_first)
        )

    async def heartbeat(self, owner: str, tokens: Sequence[str]) -> set[str]:
        """See `JobStore.heartbeat`."""
        if not tokens:
            return set()
        return await self._database.write(
            lambda transaction: leasing.heartbeat(transaction, self._options, owner, tokens)
        )

    async def opened(self, task: Task, document_format: str, pages: Sequence[Page]) -> None:
        """See `JobStore.opened`."""
        await self._database.write(
            lambda transaction: results.opened(transaction, self._options, task, document_format, pages)
        )

    async def open_failed(self, task: Task, error: PageError) -> None:
        """See `JobStore.open_failed`."""
        await self._database.write(lambda transaction: results.open_failed(transaction, self._options, task, error))

    async def finish_page(self, task: Task, page: StoredPage) -> None:
        """See `JobStore.finish_page`."""
        try:
            await self._database.write(lambda transaction: results.finish_page(transaction, self._options, task, page))
        except LeaseLostError:
            if page.figures:
                await self._database.write(lambda transaction: results.too_late(transaction, task, page))
            raise

    async def hand_back(self, owner: str, tokens: Sequence[str]) -> None:
        """See `JobStore.hand_back`."""
        if tokens:
            await self._database.write(lambda transaction: leasing.hand_back(transaction, owner, tokens))

    async def forget_blobs(self, names: Sequence[str]) -> None:
        """See `JobStore.forget_blobs`."""
        if names:
            await self._database.write(lambda transaction: sweeping.forget_blobs(transaction, tuple(names)))

    async def sweep(self) -> Sweep:
        """See `JobStore.sweep`."""
        write, options = self._database.write, self._options
        due = await self._database.read(lambda transaction: sweeping.find_due(transaction, options))
        released = [await write(partial(sweeping.release, options=options, task_id=task)) for task in due.vanished]
        overdue = [
            job for job in due.overdue if await write(partial(sweeping.end_overdue, options=options, job_id=job))
        ]
        expired = [job for job in due.expired if await write(partial(sweeping.delete_result, job_id=job))]
        if due.forgotten:
            await write(lambda at: sweeping.forget_jobs(at, options, due.forgotten))
        if due.rates:
            await write(sweeping.forget_rates)
        return Sweep(released=sum(released), overdue=tuple(overdue), expired=tuple(expired), blobs=due.blobs)
