"""Transactions that bring work: new jobs, and failed pages once more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from pagemill.domain import Job, JobStatus, NewJob, Page, Priority, TaskKind
from pagemill.domain.errors import JobConflictError, QueueFullError
from pagemill.jobs.sql.database import Row, Transaction
from pagemill.jobs.sql.records import change_job, discard, find_job, lock_flow, wake_flow
from pagemill.jobs.sql.rows import clean, pages_json, priority_number, to_job, to_pages
from pagemill.jobs.sql.tables import FIRST, REST, documents, events, flows, jobs, pages, tasks
from pagemill.jobs.store import StoreOptions

_RETRY_AFTER_S = 10.0


def submit(transaction: Transaction, options: StoreOptions, new: Sequence[NewJob]) -> list[tuple[Job, bool]]:
    """See `JobStore.submit`."""
    known = _known_jobs(transaction, new)
    answers: dict[str, tuple[Job, bool]] = {}
    same_as: dict[str, str] = {}
    named: dict[tuple[str, str], NewJob] = {}
    groups: dict[tuple[str, Priority], list[NewJob]] = {}
    for job in new:
        name = (job.key_id, clean(job.idempotency_key or job.id))
        row = known.get((job.key_id, job.id)) or known.get(name)
        if row is not None:
            _check_same(job, row["fingerprint"])
            answers[job.id] = (to_job(row), False)
            if job.blob != row["blob"]:
                discard(transaction, [job.blob], transaction.now)
        elif name in named:
            _check_same(job, named[name].fingerprint)
            same_as[job.id] = named[name].id
        else:
            named[name] = job
            groups.setdefault((job.key_id, job.priority), []).append(job)
    # Always in the same order: two submissions must not wait for each other's flows.
    for (key_id, priority), group in sorted(groups.items()):
        flow = _own_flow(transaction, key_id, priority)
        _check_room(transaction, options, key_id, len(group))
        answers.update((row["id"], (to_job(row), True)) for row in _insert_jobs(transaction, flow, group))
    for job_id, first in same_as.items():
        answers[job_id] = (answers[first][0], False)
    return [answers[job.id] for job in new]


def _known_jobs(transaction: Transaction, new: Sequence[NewJob]) -> dict[tuple[str, str], Row]:
    """Jobs that were submitted before, by owner and id, and by owner and idempotency key."""
    found = transaction.rows(sa.select(jobs).where(jobs.c.id.in_([job.id for job in new])))
    by_name = {(row["key_id"], row["id"]): row for row in found}
    named = [clean(job.idempotency_key) for job in new if job.idempotency_key is not None]
    if named:
        owners = {job.key_id for job in new}
        query = sa.select(jobs).where(jobs.c.key_id.in_(owners), jobs.c.idempotency_key.in_(named))
        by_name.update({(row["key_id"], row["idempotency_key"]): row for row in transaction.rows(query)})
    return by_name


def _check_same(job: NewJob, fingerprint: str) -> None:
    if job.fingerprint != fingerprint:
        message = f"The idempotency key {job.idempotency_key!r} was used before for something else."
        raise JobConflictError(message, "Use a new key for each document and set of options.")


def _own_flow(transaction: Transaction, key_id: str, priority: Priority) -> Row:
    number = priority_number(priority)
    own = sa.select(flows).where(flows.c.key_id == key_id, flows.c.priority == number).with_for_update()
    flow = transaction.row(own)
    if flow is None:
        new = transaction.insert(flows).values(key_id=key_id, priority=number)
        transaction.run(new.on_conflict_do_nothing(index_elements=["key_id", "priority"]))
        flow = transaction.one(own)
    wake_flow(transaction, flow)
    return flow


def _check_room(transaction: Transaction, options: StoreOptions, key_id: str, more: int) -> None:
    waiting = sa.func.coalesce(sa.func.sum(flows.c.waiting), 0)
    total = int(transaction.run(sa.select(waiting)).scalar_one())
    mine = int(transaction.run(sa.select(waiting).where(flows.c.key_id == key_id)).scalar_one())
    if total + more > options.max_queued:
        message = f"The queue is full: {total} jobs wait."
        raise QueueFullError(message, "Try again later.", retry_after=_RETRY_AFTER_S, queued=total)
    if mine + more > options.max_queued_per_key:
        message = f"The queue is full for this key: {mine} of its jobs wait."
        raise QueueFullError(message, "Try again later.", retry_after=_RETRY_AFTER_S, queued=mine)


def _insert_jobs(transaction: Transaction, flow: Row, group: Sequence[NewJob]) -> list[dict[str, Any]]:
    first = flow["last_turn"] + 1
    rows = [_job_row(job, flow, first + offset, transaction.now) for offset, job in enumerate(group)]
    transaction.run(sa.insert(jobs), rows)
    transaction.run(
        sa.insert(documents),
        [{"job_id": job.id, "secrets": list(job.secrets) or None, "pages": None} for job in group],
    )
    transaction.run(sa.insert(tasks), [_open_task(row) for row in rows])
    transaction.run(
        sa.insert(events),
        [{"job_id": row["id"], "seq": 1, "kind": "queued", "at": transaction.now, "data": {}} for row in rows],
    )
    transaction.run(
        sa.update(flows)
        .where(flows.c.id == flow["id"])
        .values(last_turn=flow["last_turn"] + len(rows), waiting=flows.c.waiting + len(rows))
    )
    return rows


def _job_row(job: NewJob, flow: Row, turn: int, now: float) -> dict[str, Any]:
    return {
        "id": job.id,
        "key_id": job.key_id,
        "flow_id": flow["id"],
        "turn": turn,
        "name": clean(job.name),
        "blob": job.blob,
        "size": job.size,
        "sha256": job.sha256,
        "options": dict(job.options),
        "priority": priority_number(job.priority),
        "status": JobStatus.QUEUED.value,
        "created_at": now,
        "batch_id": None if job.batch_id is None else clean(job.batch_id),
        "idempotency_key": None if job.idempotency_key is None else clean(job.idempotency_key),
        "fingerprint": job.fingerprint,
        "webhook": None if job.webhook is None else clean(job.webhook),
        "request_id": clean(job.request_id),
        "trace": clean(job.trace),
        "deadline": job.deadline,
        "format": "",
        "pages_total": None,
        "pages_done": 0,
        "pages_failed": 0,
        "prompt_tokens": 0,
        "completion_tokens": 0,
        "started_at": None,
        "finished_at": None,
        "expires_at": None,
        "gone_at": None,
        "error": None,
        "attempt": 1,
        "last_event": 1,
    }


def _open_task(job: Row) -> dict[str, Any]:
    return {
        "job_id": job["id"],
        "flow_id": job["flow_id"],
        "lane": FIRST,
        "turn": job["turn"],
        "kind": TaskKind.OPEN.value,
        "pages": [],
        "unfinished": 0,
    }


def add_page_tasks(
    transaction: Transaction, options: StoreOptions, job: Row, wanted: Sequence[Page], this_round: int
) -> None:
    """Queues pages: the first piece keeps the job's turn, the others have one turn in each round that follows."""
    size = options.chunk_pages
    pieces = [list(wanted[start : start + size]) for start in range(0, len(wanted), size)]
    rows = [
        {
            "job_id": job["id"],
            "flow_id": job["flow_id"],
            "lane": REST if position else FIRST,
            "turn": this_round + position if position else job["turn"],
            "kind": TaskKind.PAGES.value,
            "pages": pages_json(piece),
            "unfinished": len(piece),
        }
        for position, piece in enumerate(pieces)
    ]
    if rows:
        transaction.run(sa.insert(tasks), rows)


def retry_failed(transaction: Transaction, options: StoreOptions, job_id: str, key_id: str | None) -> Job:
    """See `JobStore.retry_failed`."""
    seen = find_job(transaction, job_id, key_id)
    flow = _own_flow_of(transaction, seen)
    job = find_job(transaction, job_id, key_id, lock=True)
    _check_retry(job)
    _check_room(transaction, options, job["key_id"], 1)
    turn = flow["last_turn"] + 1
    values = {
        "turn": turn,
        "status": JobStatus.QUEUED.value,
        "error": None,
        "started_at": None,
        "finished_at": None,
        "expires_at": None,
        "pages_failed": 0,
        "attempt": job["attempt"] + 1,
        # It gets as much time as it had at first.
        "deadline": None if job["deadline"] is None else transaction.now + job["deadline"] - job["created_at"],
    }
    _drop_failed_pages(transaction, job)
    transaction.run(
        sa.update(flows).where(flows.c.id == flow["id"]).values(last_turn=turn, waiting=flows.c.waiting + 1)
    )
    queued = change_job(transaction, job, [("retried", {"attempt": values["attempt"]})], values)
    known = transaction.run(sa.select(documents.c.pages).where(documents.c.job_id == job_id)).scalar_one_or_none()
    if known is None:
        transaction.run(sa.insert(tasks), [_open_task(queued)])
    else:
        good = set(transaction.run(sa.select(pages.c.idx).where(pages.c.job_id == job_id)).scalars())
        wanted = [page for page in to_pages(known) if page.index not in good]
        add_page_tasks(transaction, options, queued, wanted, flow["round"])
    return to_job(queued)


def _own_flow_of(transaction: Transaction, job: Row) -> Row:
    flow = lock_flow(transaction, job["flow_id"])
    wake_flow(transaction, flow)
    return flow


def _check_retry(job: Row) -> None:
    status = JobStatus(job["status"])
    if not status.ended:
        raise JobConflictError(f"Job {job['id']} has not ended.", "Wait for its end, or cancel it.")
    if status is JobStatus.CANCELLED:
        raise JobConflictError(f"Job {job['id']} was cancelled.", "Submit the document again.")
    if job["pages_total"] is not None and job["pages_done"] == job["pages_total"]:
        raise JobConflictError(f"Nothing of job {job['id']} has failed.", "There is nothing to retry.")


def _drop_failed_pages(transaction: Transaction, job: Row) -> None:
    failed = (pages.c.job_id == job["id"], pages.c.ok.is_(False))
    figures = transaction.run(sa.select(pages.c.figures).where(*failed)).scalars()
    discard(transaction, [name for names in figures for name in names], transaction.now)
    transaction.run(sa.delete(pages).where(*failed))
