"""Housekeeping: what has to be done is found by reading; each thing is then done in a short transaction of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from pagemill.domain import JobStatus, PageError, StoredPage, TaskKind
from pagemill.domain.errors import LimitExceededError, PageQuarantinedError
from pagemill.jobs.sql.database import Row, Transaction
from pagemill.jobs.sql.records import ENDED, discard, end_job, lock_flow
from pagemill.jobs.sql.results import keep_pages
from pagemill.jobs.sql.tables import (
    LEASED,
    QUEUED,
    deliveries,
    documents,
    events,
    garbage,
    jobs,
    pages,
    rates,
    tasks,
)
from pagemill.jobs.store import StoreOptions

_MOST = 100
"""Of each kind in one round; the next one goes on."""

_MOST_BLOBS = 1000
_OPEN = tuple(status.value for status in JobStatus if not status.ended)
_RATE_UNUSED_S = 3600.0


@dataclass(frozen=True, slots=True)
class Due:
    """What has to be done.

    Attributes:
        vanished: Tasks whose leases ran out.
        overdue: Jobs whose time is up.
        expired: Jobs whose results are to be deleted.
        forgotten: Jobs of which nothing is to be left.
        blobs: Blobs that nothing refers to.
        rates: Whether token buckets have long been full.
    """

    vanished: tuple[int, ...]
    overdue: tuple[str, ...]
    expired: tuple[str, ...]
    forgotten: tuple[str, ...]
    blobs: tuple[str, ...]
    rates: bool


def find_due(transaction: Transaction, options: StoreOptions) -> Due:
    """Looks for what has to be done, a bounded part of it."""
    now = transaction.now

    def column(query: sa.Select[Any], most: int = _MOST) -> tuple[Any, ...]:
        return tuple(transaction.run(query.limit(most)).scalars())

    return Due(
        vanished=column(
            sa.select(tasks.c.id)
            .where(tasks.c.state == LEASED, tasks.c.lease_until < now)
            .order_by(tasks.c.lease_until)
        ),
        overdue=column(sa.select(jobs.c.id).where(jobs.c.status.in_(_OPEN), jobs.c.deadline < now)),
        expired=column(sa.select(jobs.c.id).where(jobs.c.expires_at < now).order_by(jobs.c.expires_at)),
        forgotten=column(
            sa.select(jobs.c.id).where(jobs.c.gone_at < now - options.tombstone_ttl_s).order_by(jobs.c.gone_at)
        ),
        blobs=column(sa.select(garbage.c.name).where(garbage.c.due_at <= now).order_by(garbage.c.due_at), _MOST_BLOBS),
        rates=bool(column(sa.select(rates.c.bucket).where(rates.c.full_at < now - _RATE_UNUSED_S), 1)),
    )


def release(transaction: Transaction, options: StoreOptions, task_id: int) -> bool:
    """Lets others take a task whose lease ran out, or ends it where too many holders have vanished with it.

    Returns:
        Whether the lease had run out indeed.
    """
    seen = transaction.row(sa.select(tasks.c.job_id).where(tasks.c.id == task_id))
    if seen is None:
        return False
    job = transaction.one(sa.select(jobs).where(jobs.c.id == seen["job_id"]).with_for_update())
    held = transaction.row(
        sa.select(tasks)
        .where(tasks.c.id == task_id, tasks.c.state == LEASED, tasks.c.lease_until < transaction.now)
        .with_for_update()
    )
    if held is None:
        return False
    if held["takeovers"] < options.max_takeovers:
        transaction.run(
            sa.update(tasks)
            .where(tasks.c.id == task_id)
            .values(state=QUEUED, token=None, owner=None, lease_until=None, takeovers=held["takeovers"] + 1)
        )
        return True
    _give_up(transaction, options, job, held)
    return True


def _give_up(transaction: Transaction, options: StoreOptions, job: Row, held: Row) -> None:
    times = held["takeovers"] + 1
    message = f"{times} workers have vanished while they worked on it; it is not tried again by itself."
    error = PageError(PageQuarantinedError.code, message)
    if held["kind"] == TaskKind.OPEN.value:
        end_job(transaction, options, job, JobStatus.FAILED, error=error)
    else:
        failed = [StoredPage(int(entry[0]), ok=False, data=b"", error=error) for entry in held["pages"]]
        keep_pages(transaction, options, job, held, failed)


def end_overdue(transaction: Transaction, options: StoreOptions, job_id: str) -> bool:
    """Ends a job whose time is up; what was read of it stays."""
    job = _locked(transaction, job_id)
    if job is None or job["status"] in ENDED or job["deadline"] is None or job["deadline"] >= transaction.now:
        return False
    seconds = job["deadline"] - (job["finished_at"] or job["created_at"])
    message = f"The job had not ended after {seconds:.0f} s. Its finished pages are kept; retry it for the others."
    error = PageError(LimitExceededError.code, message, retryable=True)
    end_job(transaction, options, job, JobStatus.FAILED, error=error)
    return True


def delete_result(transaction: Transaction, job_id: str) -> bool:
    """Deletes all that was kept for a job, but for a row that says so."""
    job = _locked(transaction, job_id)
    if job is None or job["expires_at"] is None or job["expires_at"] >= transaction.now:
        return False
    figures = transaction.run(sa.select(pages.c.figures).where(pages.c.job_id == job_id)).scalars()
    discard(transaction, [job["blob"], *(name for names in figures for name in names)], transaction.now)
    for table in (pages, events, documents, deliveries):
        transaction.run(sa.delete(table).where(table.c.job_id == job_id))
    values: Mapping[str, Any] = {
        "gone_at": transaction.now,
        "expires_at": None,
        "idempotency_key": None,
        "webhook": None,
        "name": "",
        "options": {},
        "error": None,
    }
    transaction.run(sa.update(jobs).where(jobs.c.id == job_id).values(**values))
    return True


def forget_jobs(transaction: Transaction, options: StoreOptions, job_ids: tuple[str, ...]) -> None:
    """Deletes the last trace of jobs."""
    old = jobs.c.gone_at < transaction.now - options.tombstone_ttl_s
    transaction.run(sa.delete(jobs).where(jobs.c.id.in_(job_ids), old))


def forget_rates(transaction: Transaction) -> None:
    """Deletes token buckets that have long been full: they are as good as new ones."""
    transaction.run(sa.delete(rates).where(rates.c.full_at < transaction.now - _RATE_UNUSED_S))


def forget_blobs(transaction: Transaction, names: tuple[str, ...]) -> None:
    """See `JobStore.forget_blobs`."""
    transaction.run(sa.delete(garbage).where(garbage.c.name.in_(names), garbage.c.due_at <= transaction.now))


def _locked(transaction: Transaction, job_id: str) -> Row | None:
    flow_id = transaction.run(sa.select(jobs.c.flow_id).where(jobs.c.id == job_id)).scalar_one_or_none()
    if flow_id is None:
        return None
    lock_flow(transaction, flow_id)
    return transaction.row(sa.select(jobs).where(jobs.c.id == job_id).with_for_update())
