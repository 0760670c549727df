"""Transactions of workers: taking work, keeping it, giving it back.

Who comes next is found without looking through the queue: each owner and priority is a flow with a virtual time that
grows by the pages taken from it, and the flow that is furthest behind goes first. Within a flow there are two lanes
that take turns: the first piece of each document, in order of arrival, and all other pieces, in rounds of one piece a
document. So a book waits for no more than one receipt a piece, and a receipt for no more than one piece of a book.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence

import sqlalchemy as sa

from pagemill.domain import JobStatus, Priority, TaskKind
from pagemill.domain.job import Task
from pagemill.jobs.sql.database import Row, Transaction
from pagemill.jobs.sql.records import change_job
from pagemill.jobs.sql.rows import priority_number, to_job, to_pages
from pagemill.jobs.sql.tables import FIRST, LEASED, QUEUED, REST, documents, flows, jobs, pages, tasks
from pagemill.jobs.store import StoreOptions

_MOST_PIECES = 64
"""Of one transaction, which must be short."""


def any_queued(transaction: Transaction) -> bool:
    """Whether there is work that nobody holds."""
    return transaction.row(sa.select(tasks.c.id).where(tasks.c.state == QUEUED).limit(1)) is not None


def lease(
    transaction: Transaction, options: StoreOptions, owner: str, room: int, batch_first: Iterator[bool]
) -> list[Task]:
    """See `JobStore.lease`.

    Args:
        transaction: Where.
        options: Bounds and times.
        owner: Who takes it.
        room: Pages that it has room for.
        batch_first: For each piece, whether the batch queue goes first this time.
    """
    taken: list[Task] = []
    left = room
    while (left > 0 or not taken) and len(taken) < _MOST_PIECES:
        task = _take_one(transaction, options, owner, first=not taken, batch_first=next(batch_first))
        if task is None:
            break
        taken.append(task)
        left -= max(1, len(task.pages))
    return taken


def _take_one(
    transaction: Transaction, options: StoreOptions, owner: str, *, first: bool, batch_first: bool
) -> Task | None:
    order = [Priority.INTERACTIVE, Priority.BATCH]
    if batch_first:
        order.reverse()
    # Who holds flows already must not wait for others, who may wait for it.
    for patient in (False, True) if first else (False,):
        for priority in order:
            flow = _next_flow(transaction, priority, patient=patient)
            row = None if flow is None else _next_task(transaction, flow)
            if flow is not None and row is not None:
                return _hold(transaction, options, owner, flow, row)
    return None


def _next_flow(transaction: Transaction, priority: Priority, *, patient: bool) -> Row | None:
    has_work = sa.exists().where(tasks.c.flow_id == flows.c.id, tasks.c.state == QUEUED)
    query = (
        sa.select(flows)
        .where(flows.c.priority == priority_number(priority), has_work)
        .order_by(flows.c.vtime, flows.c.id)
        .limit(1)
        .with_for_update(skip_locked=not patient, of=flows)
    )
    return transaction.row(query)


def _next_task(transaction: Transaction, flow: Row) -> Row | None:
    for lane in (REST, FIRST) if flow["rest_next"] else (FIRST, REST):
        query = (
            sa.select(tasks)
            .where(tasks.c.flow_id == flow["id"], tasks.c.state == QUEUED, tasks.c.lane == lane)
            .order_by(tasks.c.turn, tasks.c.id)
            .limit(1)
            .with_for_update(skip_locked=True)
        )
        found = transaction.row(query)
        if found is not None:
            return found
    return None


def _hold(transaction: Transaction, options: StoreOptions, owner: str, flow: Row, row: Row) -> Task:
    job = transaction.one(sa.select(jobs).where(jobs.c.id == row["job_id"]).with_for_update())
    values = {
        "vtime": flow["vtime"] + max(1, row["unfinished"]),
        "rest_next": row["lane"] == FIRST,
        "round": max(flow["round"], row["turn"]) if row["lane"] == REST else flow["round"],
    }
    if job["status"] == JobStatus.QUEUED.value:
        values["waiting"] = flow["waiting"] - 1
        job = change_job(
            transaction, job, [("started", {})], {"status": JobStatus.RUNNING.value, "started_at": transaction.now}
        )
    transaction.run(sa.update(flows).where(flows.c.id == flow["id"]).values(values))
    token = secrets.token_hex(16)
    transaction.run(
        sa.update(tasks)
        .where(tasks.c.id == row["id"])
        .values(state=LEASED, token=token, owner=owner, lease_until=transaction.now + options.lease_s)
    )
    wanted = to_pages(row["pages"])
    if row["unfinished"] < len(wanted):
        indexes = [page.index for page in wanted]
        query = sa.select(pages.c.idx).where(pages.c.job_id == row["job_id"], pages.c.idx.in_(indexes))
        done = set(transaction.run(query).scalars())
        wanted = tuple(page for page in wanted if page.index not in done)
    passwords = transaction.run(sa.select(documents.c.secrets).where(documents.c.job_id == row["job_id"])).scalar_one()
    return Task(
        id=row["id"],
        token=token,
        kind=TaskKind(row["kind"]),
        job=to_job(job),
        pages=wanted,
        takeovers=row["takeovers"],
        secrets=tuple(passwords or ()),
    )


def heartbeat(transaction: Transaction, options: StoreOptions, owner: str, tokens: Sequence[str]) -> set[str]:
    """See `JobStore.heartbeat`."""
    held = _lock_held(transaction, owner, tokens)
    if held:
        transaction.run(
            sa.update(tasks)
            .where(tasks.c.id.in_([row["id"] for row in held]))
            .values(lease_until=transaction.now + options.lease_s)
        )
    return set(tokens) - {row["token"] for row in held}


def hand_back(transaction: Transaction, owner: str, tokens: Sequence[str]) -> None:
    """See `JobStore.hand_back`."""
    held = _lock_held(transaction, owner, tokens)
    if held:
        transaction.run(
            sa.update(tasks)
            .where(tasks.c.id.in_([row["id"] for row in held]))
            .values(state=QUEUED, token=None, owner=None, lease_until=None)
        )


def _lock_held(transaction: Transaction, owner: str, tokens: Sequence[str]) -> list[Row]:
    query = (
        sa.select(tasks.c.id, tasks.c.token)
        .where(tasks.c.token.in_(tokens), tasks.c.owner == owner)
        .order_by(tasks.c.id)
        .with_for_update()
    )
    return transaction.rows(query) if tokens else []
