"""Whatever happens to jobs in whatever order, their counts add up and no page is lost or counted twice."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pagemill.domain import JobStatus, PageError, Priority, TaskKind
from pagemill.domain.errors import JobConflictError, JobGoneError, LeaseLostError
from pagemill.domain.job import Task
from pagemill.jobs.sql import SqlJobStore, open_database
from pagemill.jobs.sql.database import Transaction
from pagemill.jobs.sql.tables import documents, events, flows, jobs, pages, tasks
from pagemill.jobs.store import StoreOptions
from stores import StandingClock, bad, good, new_job, pages_of

T = TypeVar("T")
OPTIONS = StoreOptions(lease_s=10, chunk_pages=2, max_takeovers=2, result_ttl_s=500, tombstone_ttl_s=10_000)
PICK = st.integers(0, 1_000_000)


class Histories(RuleBasedStateMachine):
    """Jobs, and tasks that some worker believes to hold: rightly, or because it slept too long."""

    @initialize()
    def start(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.folder = tempfile.TemporaryDirectory()
        self.clock = StandingClock()
        path = str(Path(self.folder.name) / "jobs.db")
        self.database = open_database(path, OPTIONS, process_id="test", clock=self.clock)
        self.run(self.database.start())
        self.store = SqlJobStore(self.database)
        self.jobs: list[str] = []
        self.held: list[tuple[str, Task]] = []
        self.good_pages: dict[tuple[str, int], bytes] = {}

    def teardown(self) -> None:
        if hasattr(self, "loop"):
            self.run(self.database.aclose())
            self.loop.run_until_complete(self.loop.shutdown_default_executor())
            self.loop.close()
            self.folder.cleanup()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(coroutine)

    @rule(count=st.integers(1, 3), key=st.integers(0, 2), batch=st.booleans(), limit=st.sampled_from([None, 30, 100]))
    def submit(self, count: int, key: int, batch: bool, limit: float | None) -> None:
        priority = Priority.BATCH if batch else Priority.INTERACTIVE
        deadline = None if limit is None else self.clock.now + limit
        news = [new_job(f"key_{key}", priority=priority, deadline=deadline) for _ in range(count)]
        self.jobs += [job.id for job, _ in self.run(self.store.submit(news))]

    @precondition(lambda self: self.jobs)
    @rule(owner=st.sampled_from(["a", "b"]), room=st.integers(1, 8))
    def lease(self, owner: str, room: int) -> None:
        for task in self.run(self.store.lease(owner, room)):
            known = {index for job_id, index in self.good_pages if job_id == task.job.id}
            assert known.isdisjoint(page.index for page in task.pages), "a page is read once"
            self.held.append((owner, task))

    @precondition(lambda self: self.jobs)
    @rule(steps=st.integers(1, 10), count=st.integers(1, 5), fails=st.lists(st.booleans(), min_size=1, max_size=7))
    def work(self, steps: int, count: int, fails: list[bool]) -> None:
        """A worker that does what it takes: most jobs come to an end that way."""
        done = 0
        for _ in range(steps):
            already = len(self.held)
            self.lease("a", 2)
            for _, task in self.held[already:]:
                if task.kind is TaskKind.OPEN:
                    self.run(self.store.opened(task, "pdf", pages_of(count)))
                for page in task.pages:
                    result = bad(page.index) if fails[done % len(fails)] else good(page.index)
                    self.run(self.store.finish_page(task, result))
                    done += 1

    @precondition(lambda self: self.held)
    @rule(pick=PICK, count=st.integers(0, 7), fails=st.booleans())
    def open(self, pick: int, count: int, fails: bool) -> None:
        _, task = self.held[pick % len(self.held)]
        if task.kind is TaskKind.OPEN:
            with contextlib.suppress(LeaseLostError):
                if fails:
                    self.run(self.store.open_failed(task, PageError("corrupt_document", "broken")))
                else:
                    self.run(self.store.opened(task, "pdf", pages_of(count)))

    @precondition(lambda self: self.held)
    @rule(pick=PICK, which=PICK, fails=st.booleans())
    def finish(self, pick: int, which: int, fails: bool) -> None:
        _, task = self.held[pick % len(self.held)]
        if task.kind is TaskKind.PAGES and task.pages:
            index = task.pages[which % len(task.pages)].index
            with contextlib.suppress(LeaseLostError):
                self.run(self.store.finish_page(task, bad(index) if fails else good(index)))

    @precondition(lambda self: self.held)
    @rule(pick=PICK)
    def hand_back(self, pick: int) -> None:
        owner, task = self.held[pick % len(self.held)]
        self.run(self.store.hand_back(owner, [task.token]))

    @rule(seconds=st.sampled_from([1, 11, 40, 200]), owner=st.sampled_from(["a", "b"]))
    def time_goes_by(self, seconds: float, owner: str) -> None:
        mine = [task.token for holder, task in self.held if holder == owner]
        lost = self.run(self.store.heartbeat(owner, mine))
        assert lost <= set(mine)
        self.clock.now += seconds
        self.run(self.store.sweep())
        if seconds > OPTIONS.lease_s:
            assert set(mine) == self.run(self.store.heartbeat(owner, mine)), "nobody holds what was taken away"

    @precondition(lambda self: self.jobs)
    @rule(pick=PICK)
    def cancel(self, pick: int) -> None:
        with contextlib.suppress(JobGoneError):
            assert self.run(self.store.cancel(self.jobs[pick % len(self.jobs)])).status.ended

    @precondition(lambda self: self.jobs)
    @rule(pick=PICK)
    def retry(self, pick: int) -> None:
        with contextlib.suppress(JobConflictError, JobGoneError):
            job = self.run(self.store.retry_failed(self.jobs[pick % len(self.jobs)]))
            assert job.status is JobStatus.QUEUED

    @invariant()
    def everything_adds_up(self) -> None:
        if hasattr(self, "jobs"):
            self.run(self.database.read(self.check))

    def check(self, transaction: Transaction) -> None:
        waiting: dict[int, int] = {}
        found = {row["id"]: row for row in transaction.rows(sa.select(jobs))}
        for job_id in self.jobs:
            row = found[job_id]
            results = transaction.rows(sa.select(pages).where(pages.c.job_id == job_id))
            work = transaction.rows(sa.select(tasks).where(tasks.c.job_id == job_id))
            if row["gone_at"] is not None:
                assert not results
                assert not work
                self.good_pages = {key: data for key, data in self.good_pages.items() if key[0] != job_id}
                continue
            waiting[row["flow_id"]] = waiting.get(row["flow_id"], 0) + (row["status"] == "queued")
            assert row["pages_done"] == sum(page["ok"] for page in results)
            assert row["pages_failed"] == sum(not page["ok"] for page in results)
            assert row["prompt_tokens"] >= 100 * row["pages_done"]
            self.check_good_pages(job_id, results)
            self.check_work(transaction, row, results, work)
        for flow in transaction.rows(sa.select(flows)):
            assert flow["waiting"] == waiting.get(flow["id"], 0)

    def check_good_pages(self, job_id: str, results: list[Any]) -> None:
        good_now = {(job_id, page["idx"]): page["data"] for page in results if page["ok"]}
        known = {key: data for key, data in self.good_pages.items() if key[0] == job_id}
        assert known.items() <= good_now.items(), "a good page stays as it is"
        self.good_pages |= good_now

    def check_work(self, transaction: Transaction, row: Any, results: list[Any], work: list[Any]) -> None:
        status = JobStatus(row["status"])
        last = transaction.run(sa.select(sa.func.max(events.c.seq)).where(events.c.job_id == row["id"])).scalar_one()
        assert last == row["last_event"]
        if status.ended:
            assert not work, "what has ended has no work"
            return
        if row["pages_total"] is None:
            assert [task["kind"] for task in work] == ["open"]
            return
        known = transaction.run(sa.select(documents.c.pages).where(documents.c.job_id == row["id"])).scalar_one()
        done = {page["idx"] for page in results}
        queued = [entry[0] for task in work for entry in task["pages"] if entry[0] not in done]
        assert sorted([*done, *queued]) == [entry[0] for entry in known], "no page is lost or twice there"
        for task in work:
            assert task["unfinished"] == sum(entry[0] not in done for entry in task["pages"]) > 0


TestHistories = pytest.mark.slow(Histories.TestCase)
TestHistories.settings = settings(
    max_examples=30, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
