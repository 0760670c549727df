"""Transactions that hand results in, and that end jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from pagemill.domain import Job, JobStatus, Page, PageError, StoredPage, TaskKind
from pagemill.domain.job import Task
from pagemill.jobs.sql.database import Row, Transaction
from pagemill.jobs.sql.records import Happening, change_job, discard, end_job, find_job, held_job, lock_flow
from pagemill.jobs.sql.rows import clean, error_json, pages_json, to_job
from pagemill.jobs.sql.submission import add_page_tasks
from pagemill.jobs.sql.tables import documents, flows, garbage, pages, tasks
from pagemill.jobs.store import StoreOptions

_LATE_FIGURES_S = 86_400.0


def opened(
    transaction: Transaction, options: StoreOptions, task: Task, document_format: str, found: Sequence[Page]
) -> None:
    """See `JobStore.opened`."""
    job, held = held_job(transaction, task)
    _check_kind(held, TaskKind.OPEN)
    transaction.run(sa.delete(tasks).where(tasks.c.id == held["id"]))
    transaction.run(sa.update(documents).where(documents.c.job_id == job["id"]).values(pages=pages_json(list(found))))
    values: Row = {"format": clean(document_format), "pages_total": len(found)}
    happened: list[Happening] = [("opened", {"pages": len(found), "format": values["format"]})]
    if not found:
        end_job(transaction, options, job, JobStatus.SUCCEEDED, happened=happened, values=values)
        return
    change_job(transaction, job, happened, values)
    this_round = transaction.run(sa.select(flows.c.round).where(flows.c.id == job["flow_id"])).scalar_one()
    add_page_tasks(transaction, options, job, found, this_round)


def open_failed(transaction: Transaction, options: StoreOptions, task: Task, error: PageError) -> None:
    """See `JobStore.open_failed`."""
    job, held = held_job(transaction, task)
    _check_kind(held, TaskKind.OPEN)
    end_job(transaction, options, job, JobStatus.FAILED, error=error)


def finish_page(transaction: Transaction, options: StoreOptions, task: Task, page: StoredPage) -> None:
    """See `JobStore.finish_page`."""
    job, held = held_job(transaction, task)
    _check_kind(held, TaskKind.PAGES)
    if page.index not in {int(entry[0]) for entry in held["pages"]}:
        raise ValueError(f"page {page.index} is none of task {task.id}")
    keep_pages(transaction, options, job, held, [page])


def keep_pages(
    transaction: Transaction,
    options: StoreOptions,
    job: Row,
    held: Row,
    results: Sequence[StoredPage],
) -> None:
    """Keeps results of pages of a task, those that are new; job and task are locked."""
    new = [page for page in results if _insert_page(transaction, job["id"], page)]
    if not new:
        return
    _count_down(transaction, held, len(new))
    good = sum(page.ok for page in new)
    values = {
        "pages_done": job["pages_done"] + good,
        "pages_failed": job["pages_failed"] + len(new) - good,
        "prompt_tokens": job["prompt_tokens"] + sum(page.usage.prompt_tokens for page in new),
        "completion_tokens": job["completion_tokens"] + sum(page.usage.completion_tokens for page in new),
    }
    happened = [("page", _told(page)) for page in new]
    if values["pages_done"] + values["pages_failed"] < job["pages_total"]:
        change_job(transaction, job, happened, values)
    elif values["pages_done"]:
        end_job(transaction, options, job, JobStatus.SUCCEEDED, happened=happened, values=values)
    else:
        error = _nothing_read(job["pages_total"], new[-1].error)
        end_job(transaction, options, job, JobStatus.FAILED, error=error, happened=happened, values=values)


def _insert_page(transaction: Transaction, job_id: str, page: StoredPage) -> bool:
    inserted = transaction.run(
        transaction.insert(pages)
        .values(
            job_id=job_id,
            idx=page.index,
            ok=page.ok,
            data=page.data,
            error=error_json(page.error),
            prompt_tokens=page.usage.prompt_tokens,
            completion_tokens=page.usage.completion_tokens,
            figures=list(page.figures),
        )
        .on_conflict_do_nothing(index_elements=["job_id", "idx"])
    )
    if inserted.rowcount and page.figures:
        # An earlier holder may have handed the same pictures in too late.
        transaction.run(sa.delete(garbage).where(garbage.c.name.in_(page.figures)))
    return bool(inserted.rowcount)


def _count_down(transaction: Transaction, held: Row, finished: int) -> None:
    left = held["unfinished"] - finished
    where = tasks.c.id == held["id"]
    transaction.run(sa.update(tasks).where(where).values(unfinished=left) if left else sa.delete(tasks).where(where))


def _told(page: StoredPage) -> dict[str, Any]:
    told: dict[str, Any] = {"index": page.index, "ok": page.ok}
    return told if page.error is None else {**told, "error": page.error.code}


def _nothing_read(total: int, last: PageError | None) -> PageError:
    cause = last or PageError("engine_error", "it has no result")
    if total == 1:
        return cause
    message = f"None of the {total} pages could be read; the last one: {cause.message}"
    return PageError(cause.code, message, cause.retryable)


def _check_kind(held: Row, kind: TaskKind) -> None:
    if held["kind"] != kind.value:
        raise ValueError(f"task {held['id']} is of another kind than {kind.value!r}")


def too_late(transaction: Transaction, task: Task, page: StoredPage) -> None:
    """Notes the pictures of a result that came too late, unless the result that is kept has the same ones.

    They go after a day: whoever does the page anew by then says which of them it uses.
    """
    query = sa.select(pages.c.figures).where(pages.c.job_id == task.job.id, pages.c.idx == page.index)
    used = transaction.run(query).scalar_one_or_none() or []
    left_over = [name for name in page.figures if name not in used]
    discard(transaction, left_over, transaction.now + _LATE_FIGURES_S)


def cancel(transaction: Transaction, options: StoreOptions, job_id: str, key_id: str | None) -> Job:
    """See `JobStore.cancel`."""
    seen = find_job(transaction, job_id, key_id)
    lock_flow(transaction, seen["flow_id"])
    job = find_job(transaction, job_id, key_id, lock=True)
    if JobStatus(job["status"]).ended:
        return to_job(job)
    return to_job(end_job(transaction, options, job, JobStatus.CANCELLED))
