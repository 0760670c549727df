"""The queue is never looked through: whatever is asked for often has an index."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import event

from pagemill.domain import JobStatus, Priority
from pagemill.jobs.sql import SqlJobStore, SqlKeyStore, SqlRateStore, SqlWebhookStore
from pagemill.jobs.sql.sqlite import SqliteDatabase
from pagemill.jobs.store import JobFilter, StoreOptions
from stores import StandingClock, bad, good, lease_one, new_job, open_document, submit, work_off

LARGE = ("jobs", "tasks", "pages", "events", "documents", "deliveries", "garbage", "api_keys", "rates")


async def use_everything(database: SqliteDatabase, clock: StandingClock) -> None:
    store = SqlJobStore(database)
    job = await submit(store, idempotency_key="a", webhook="https://example.com", deadline=clock.now + 100)
    await store.submit([new_job("key_2", priority=Priority.BATCH) for _ in range(3)])
    await store.place(job)
    await open_document(store, 5)
    tasks = await store.lease("worker", 2)
    await store.heartbeat("worker", [task.token for task in tasks])
    await store.finish_page(tasks[0], bad(tasks[0].pages[0].index, figures=("figures/j/1",)))
    await store.hand_back("worker", [task.token for task in tasks])
    await lease_one(store)
    clock.now += 20
    await store.sweep()
    await work_off(store, read=good)
    await store.retry_failed(job.id)
    clock.now += 200
    await store.sweep()
    for wanted in (
        JobFilter(),
        JobFilter(key_id="key_1"),
        JobFilter(batch_id="b"),
        JobFilter(key_id="key_1", statuses=(JobStatus.FAILED,), created_after=1.0),
    ):
        _, cursor = await store.search(wanted, limit=1)
        await store.search(wanted, limit=1, cursor=cursor)
    await store.events(job.id, after=1)
    await store.pages(job.id, first=1)
    await store.cancel((await submit(store)).id)
    await SqlWebhookStore(database).due("sender")
    await SqlRateStore(database).take("a", rate=1.0, burst=1.0)
    keys = SqlKeyStore(database)
    _, key = await keys.create("team")
    await keys.find(key)
    clock.now += 8 * 86_400
    await store.sweep()
    await store.forget_blobs((await store.sweep()).blobs)


async def test_no_call_looks_through_a_large_table(tmp_path: Path, clock: StandingClock) -> None:
    database = SqliteDatabase(tmp_path / "jobs.db", StoreOptions(), "test", clock)
    await database.start()
    asked: dict[str, Any] = {}
    for engine in (database._reader, database._writer):

        @event.listens_for(engine, "before_cursor_execute")
        def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
            asked.setdefault(statement, parameters)

    await use_everything(database, clock)

    def plans(transaction: Any) -> list[str]:
        found = []
        for statement, parameters in list(asked.items()):
            if statement.split()[0] in {"SELECT", "UPDATE", "DELETE"}:
                first = parameters[0] if isinstance(parameters, list) else parameters
                steps = transaction._connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", first)
                found += [f"{step[3]}   in   {statement}" for step in steps]
        return found

    steps = await database.read(plans)
    await database.aclose()
    assert len(steps) > 60
    scans = [step for step in steps for name in LARGE if step.startswith(f"SCAN {name}")]
    # A list follows its order and stops at its limit.
    assert [step for step in scans if "ORDER BY jobs.created_at DESC" not in step] == []
