"""Transactions that only read: lists, results, the state of the queue."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from pagemill.domain import Job, JobEvent, JobStatus, Priority, QueueStats, StoredPage
from pagemill.domain.errors import RequestError
from pagemill.jobs.sql.database import Transaction
from pagemill.jobs.sql.rows import clean, priority_number, to_event, to_job, to_priority, to_stored_page
from pagemill.jobs.sql.tables import LEASED, QUEUED, events, flows, jobs, pages, tasks
from pagemill.jobs.store import JobFilter

_MINUTE_S = 60.0


def search(transaction: Transaction, wanted: JobFilter, limit: int, cursor: str | None) -> tuple[list[Job], str | None]:
    """See `JobStore.search`."""
    query = sa.select(jobs).where(jobs.c.gone_at.is_(None))
    if wanted.key_id is not None:
        query = query.where(jobs.c.key_id == wanted.key_id)
    if wanted.statuses:
        query = query.where(jobs.c.status.in_([status.value for status in wanted.statuses]))
    if wanted.batch_id is not None:
        query = query.where(jobs.c.batch_id == clean(wanted.batch_id))
    if wanted.created_after is not None:
        query = query.where(jobs.c.created_at > wanted.created_after)
    if wanted.created_before is not None:
        query = query.where(jobs.c.created_at < wanted.created_before)
    if cursor is not None:
        at, job_id = _read_cursor(cursor)
        query = query.where(sa.tuple_(jobs.c.created_at, jobs.c.id) < sa.tuple_(sa.literal(at), sa.literal(job_id)))
    query = query.order_by(jobs.c.created_at.desc(), jobs.c.id.desc()).limit(limit + 1)
    found = [to_job(row) for row in transaction.rows(query)]
    more = len(found) > limit
    return found[:limit], _cursor(found[limit - 1]) if more else None


def _cursor(job: Job) -> str:
    return base64.urlsafe_b64encode(json.dumps([job.created_at, job.id]).encode()).decode().rstrip("=")


def _read_cursor(cursor: str) -> tuple[float, str]:
    try:
        at, job_id = json.loads(base64.urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4)))
        return float(at), clean(str(job_id))
    except (ValueError, TypeError) as error:
        raise RequestError("The cursor is none of ours.", "Leave it out to start from the newest job.") from error


def list_events(transaction: Transaction, job_id: str, after: int, limit: int) -> list[JobEvent]:
    """See `JobStore.events`."""
    query = sa.select(events).where(events.c.job_id == job_id, events.c.seq > after)
    return [to_event(row) for row in transaction.rows(query.order_by(events.c.seq).limit(limit))]


def list_pages(transaction: Transaction, job_id: str, first: int, limit: int) -> list[StoredPage]:
    """See `JobStore.pages`."""
    query = sa.select(pages).where(pages.c.job_id == job_id, pages.c.idx >= first)
    return [to_stored_page(row) for row in transaction.rows(query.order_by(pages.c.idx).limit(limit))]


@dataclass(frozen=True, slots=True)
class Waiting:
    """Jobs that wait, by flow.

    Attributes:
        at: When it was so.
        flows: Priority and number of jobs of each flow that has some, by its id.
    """

    at: float
    flows: Mapping[int, tuple[Priority, int]]


def count_waiting(transaction: Transaction, at: float) -> Waiting:
    """How many jobs wait in each flow."""
    query = sa.select(flows.c.id, flows.c.priority, flows.c.waiting).where(flows.c.waiting > 0)
    found = transaction.rows(query)
    return Waiting(at, {row["id"]: (to_priority(row["priority"]), row["waiting"]) for row in found})


def place_in_flow(transaction: Transaction, job_id: str) -> tuple[int, int] | None:
    """The flow of a job, and how many jobs will be begun before it there; None once it was begun."""
    mine = sa.select(jobs.c.flow_id, jobs.c.turn).where(jobs.c.id == job_id, jobs.c.status == JobStatus.QUEUED.value)
    found = transaction.row(mine)
    if found is None:
        return None
    before = (jobs.c.flow_id == found["flow_id"], jobs.c.status == JobStatus.QUEUED.value, jobs.c.turn < found["turn"])
    count = transaction.run(sa.select(sa.func.count()).select_from(jobs).where(*before)).scalar_one()
    return found["flow_id"], count


def place_in_all(waiting: Waiting, flow_id: int, before: int, priority: Priority, batch_share: int) -> int:
    """How many jobs will be begun before one that has `before` others before it in its flow.

    Flows take turns, so each puts as many jobs before it as its own flow does, where it has so many. That is exact
    only for jobs of equal size.
    """
    same, other = 0, 0
    for number, (kind, jobs_waiting) in waiting.flows.items():
        if kind is not priority:
            other += jobs_waiting
        elif number != flow_id:
            same += min(jobs_waiting, before)
    ahead = before + same
    one_in = max(1, batch_share - 1)
    return ahead + min(other, ahead // one_in if priority is Priority.INTERACTIVE else (ahead + 1) * one_in)


def stats(transaction: Transaction) -> QueueStats:
    """See `JobStore.stats`."""
    by_flow = sa.select(flows.c.priority, sa.func.sum(flows.c.waiting)).group_by(flows.c.priority)
    running = (
        sa.select(jobs.c.priority, sa.func.count())
        .where(jobs.c.status == JobStatus.RUNNING.value)
        .group_by(jobs.c.priority)
    )
    work = (
        sa.select(flows.c.priority, tasks.c.state, sa.func.count())
        .join(tasks, tasks.c.flow_id == flows.c.id)
        .group_by(flows.c.priority, tasks.c.state)
    )
    held = [tuple(row) for row in transaction.run(work)]
    finished = sa.select(sa.func.count()).where(jobs.c.finished_at > transaction.now - _MINUTE_S)
    return QueueStats(
        queued=_by_priority(transaction.run(by_flow)),
        running=_by_priority(transaction.run(running)),
        tasks_queued=_by_priority([(number, count) for number, state, count in held if state == QUEUED]),
        tasks_leased=_by_priority([(number, count) for number, state, count in held if state == LEASED]),
        oldest_s={priority: _oldest(transaction, priority) for priority in Priority},
        finished_last_minute=transaction.run(finished).scalar_one(),
    )


def _by_priority(counted: Iterable[Sequence[int]]) -> dict[Priority, int]:
    found = {to_priority(entry[0]): int(entry[1]) for entry in counted}
    return {priority: found.get(priority, 0) for priority in Priority}


def _oldest(transaction: Transaction, priority: Priority) -> float:
    query = sa.select(sa.func.min(jobs.c.created_at)).where(
        jobs.c.status == JobStatus.QUEUED.value, jobs.c.priority == priority_number(priority)
    )
    made = transaction.run(query).scalar_one_or_none()
    return 0.0 if made is None else max(0.0, transaction.now - made)
