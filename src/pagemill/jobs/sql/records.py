"""Steps that several transactions share: finding and locking jobs, their events, flows and ends.

Locks are always taken in the order flow, job, task, so that no two transactions wait for each other.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from pagemill.domain import JobStatus, PageError
from pagemill.domain.errors import JobGoneError, JobNotFoundError, LeaseLostError
from pagemill.domain.job import Task
from pagemill.jobs.sql.database import Row, Transaction
from pagemill.jobs.sql.rows import error_json, job_json
from pagemill.jobs.sql.tables import LEASED, QUEUED, deliveries, documents, events, flows, garbage, jobs, tasks
from pagemill.jobs.store import StoreOptions

Happening = tuple[str, dict[str, Any]]
"""Kind and data of an event."""

ENDED = tuple(status.value for status in JobStatus if status.ended)


def find_job(transaction: Transaction, job_id: str, key_id: str | None, *, lock: bool = False) -> Row:
    """The row of a job.

    Raises:
        JobNotFoundError: There is none, or it is somebody else's.
        JobGoneError: Its result was deleted.
    """
    query = sa.select(jobs).where(jobs.c.id == job_id)
    found = transaction.row(query.with_for_update() if lock else query)
    if found is None or (key_id is not None and found["key_id"] != key_id):
        raise JobNotFoundError(f"There is no job {job_id!r}.", "Check the id and the key that it was made with.")
    if found["gone_at"] is not None:
        raise JobGoneError(f"The result of job {job_id} was deleted.", "Submit the document again.")
    return found


def lock_flow(transaction: Transaction, flow_id: int) -> Row:
    """The row of a flow, held until the transaction ends."""
    return transaction.one(sa.select(flows).where(flows.c.id == flow_id).with_for_update())


def held_job(transaction: Transaction, task: Task) -> tuple[Row, Row]:
    """The rows of the job and of its task, both locked.

    Raises:
        LeaseLostError: The task is no longer held under its token.
    """
    job = transaction.row(sa.select(jobs).where(jobs.c.id == task.job.id).with_for_update())
    held = transaction.row(
        sa.select(tasks)
        .where(tasks.c.id == task.id, tasks.c.token == task.token, tasks.c.state == LEASED)
        .with_for_update()
    )
    if job is None or held is None:
        raise LeaseLostError(f"Work {task.id} of job {task.job.id} is no longer held: it was taken over or ended.")
    return job, held


def change_job(transaction: Transaction, job: Row, happened: Sequence[Happening], values: Row) -> Row:
    """Changes columns of a job that is locked, and adds events.

    Returns:
        The row as it is now.
    """
    changes = {**values, "last_event": job["last_event"] + len(happened)}
    transaction.run(sa.update(jobs).where(jobs.c.id == job["id"]).values(changes))
    if happened:
        first = job["last_event"] + 1
        transaction.run(
            sa.insert(events),
            [
                {"job_id": job["id"], "seq": first + offset, "kind": kind, "at": transaction.now, "data": data}
                for offset, (kind, data) in enumerate(happened)
            ],
        )
    return {**job, **changes}


def end_job(
    transaction: Transaction,
    options: StoreOptions,
    job: Row,
    status: JobStatus,
    *,
    error: PageError | None = None,
    happened: Sequence[Happening] = (),
    values: Row | None = None,
) -> Row:
    """Ends a job that is locked: its work goes, its webhook is made.

    Where the job may still wait, its flow must be locked, too.

    Returns:
        The row as it is now.
    """
    delete_tasks(transaction, job["id"])
    if job["status"] == JobStatus.QUEUED.value:
        transaction.run(sa.update(flows).where(flows.c.id == job["flow_id"]).values(waiting=flows.c.waiting - 1))
    data = {} if error is None else {"error": error.code}
    end = {
        "status": status.value,
        "error": error_json(error),
        "finished_at": transaction.now,
        "expires_at": transaction.now + options.result_ttl_s,
    }
    ended = change_job(transaction, job, [*happened, (status.value, data)], {**(values or {}), **end})
    if status is JobStatus.CANCELLED or ended["pages_done"] == ended["pages_total"]:
        # Nothing of it can be retried: nobody needs the passwords any more.
        transaction.run(sa.update(documents).where(documents.c.job_id == job["id"]).values(secrets=None))
    if ended["webhook"]:
        transaction.run(
            sa.insert(deliveries).values(
                id=f"msg_{secrets.token_hex(16)}",
                job_id=job["id"],
                job=job_json(ended),
                url=ended["webhook"],
                due_at=transaction.now,
            )
        )
    return ended


def delete_tasks(transaction: Transaction, job_id: str) -> None:
    """Deletes all work of a job, locking it in the order in which heartbeats do."""
    transaction.run(sa.select(tasks.c.id).where(tasks.c.job_id == job_id).order_by(tasks.c.id).with_for_update())
    transaction.run(sa.delete(tasks).where(tasks.c.job_id == job_id))


def wake_flow(transaction: Transaction, flow: Row) -> None:
    """Lets a flow that was idle start level with the others: it has saved up nothing."""
    own_work = sa.select(tasks.c.id).where(tasks.c.flow_id == flow["id"], tasks.c.state == QUEUED).limit(1)
    if transaction.row(own_work) is not None:
        return
    has_work = sa.exists().where(tasks.c.flow_id == flows.c.id, tasks.c.state == QUEUED)
    active = sa.select(flows.c.vtime).where(flows.c.priority == flow["priority"], has_work)
    level = transaction.run(active.order_by(flows.c.vtime).limit(1)).scalar_one_or_none()
    if level is not None and level > flow["vtime"]:
        transaction.run(sa.update(flows).where(flows.c.id == flow["id"]).values(vtime=level))


def discard(transaction: Transaction, names: Sequence[str], due_at: float) -> None:
    """Notes blobs that nothing refers to; `sweep` returns them from `due_at` on until they are forgotten."""
    if names:
        rows = [{"name": name, "due_at": due_at} for name in sorted(set(names))]
        transaction.run(transaction.insert(garbage).on_conflict_do_nothing(index_elements=["name"]), rows)
