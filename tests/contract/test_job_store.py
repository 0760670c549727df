"""What every store of jobs must keep to: handing in, working off, results."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from pagemill.domain import ConversionStatus, JobStatus, PageError, Priority, TaskKind, Usage
from pagemill.domain.errors import JobConflictError, JobNotFoundError, LeaseLostError, QueueFullError
from pagemill.jobs.sql import SqlJobStore
from stores import (
    OpenStore,
    StandingClock,
    bad,
    good,
    lease_one,
    new_job,
    open_document,
    pages_of,
    submit,
    work_off,
)


async def test_a_job_is_kept_as_it_was_handed_in(open_store: OpenStore, clock: StandingClock) -> None:
    store, other = await open_store(), await open_store()
    new = new_job(
        options={"pages": "1-3", "nested": {"list": [1, None, "ä"]}},
        priority=Priority.BATCH,
        batch_id="batch_1",
        webhook="https://example.com/hook",
        request_id="req_1",
        deadline=clock.now + 60,
        secrets=("hush",),
    )
    ((job, made),) = await store.submit([new])
    assert made
    assert await other.get(job.id) == job
    assert job.status is JobStatus.QUEUED
    assert job.outcome is None
    assert job.created_at == clock.now
    for name in ("id", "key_id", "name", "blob", "size", "sha256", "options", "priority", "batch_id", "webhook"):
        assert getattr(job, name) == getattr(new, name), name
    assert (job.request_id, job.deadline) == ("req_1", clock.now + 60)
    assert "hush" not in repr(job)
    assert [event.kind for event in await other.events(job.id)] == ["queued"]


async def test_text_of_every_kind_is_taken(store: SqlJobStore) -> None:
    job = await submit(
        store, name="a\0b\ud800 \U0001f4c4 \u202e.pdf", request_id="r\0", batch_id="b\0", idempotency_key="k\0"
    )
    assert job.name == "a\ufffdb? \U0001f4c4 \u202e.pdf"
    task = await lease_one(store)
    await store.open_failed(task, PageError("corrupt_document", "a NUL \0 and half a pair \udc00"))
    found = await store.get(job.id)
    assert found.error is not None
    assert found.error.message.startswith("a NUL ")


async def test_a_job_is_seen_by_its_owner_alone(store: SqlJobStore) -> None:
    job = await submit(store, "key_1")
    assert (await store.get(job.id, "key_1")).id == job.id
    for call in (store.get, store.cancel, store.retry_failed):
        with pytest.raises(JobNotFoundError):
            await call(job.id, "key_2")
        with pytest.raises(JobNotFoundError):
            await call("job_unknown", None)
    assert (await store.get(job.id)).status is JobStatus.QUEUED


async def test_the_same_idempotency_key_gives_the_same_job(store: SqlJobStore) -> None:
    job = await submit(store, idempotency_key="abc", fingerprint="f")
    again = new_job(idempotency_key="abc", fingerprint="f")
    assert await store.submit([again]) == [(job, False)]
    with pytest.raises(JobNotFoundError):
        await store.get(again.id)
    with pytest.raises(JobConflictError):
        await store.submit([new_job(idempotency_key="abc", fingerprint="other")])
    assert (await submit(store, "key_2", idempotency_key="abc", fingerprint="other")).id != job.id


async def test_a_document_that_was_handed_in_twice_is_garbage(store: SqlJobStore) -> None:
    job = await submit(store, idempotency_key="abc")
    again = new_job(idempotency_key="abc")
    await store.submit([again])
    assert (await store.sweep()).blobs == (again.blob,)
    assert job.blob != again.blob


async def test_a_submission_whose_answer_was_lost_can_be_made_again(store: SqlJobStore) -> None:
    new = new_job()
    ((job, _),) = await store.submit([new])
    assert await store.submit([new]) == [(job, False)]
    assert (await store.sweep()).blobs == ()
    with pytest.raises(JobConflictError):
        await store.submit([replace(new, fingerprint="other")])


async def test_the_same_idempotency_key_twice_in_a_batch_gives_one_job(store: SqlJobStore) -> None:
    batch = [new_job(idempotency_key=key, fingerprint="f") for key in ("a", "b", "a")]
    answers = await store.submit(batch)
    assert [new for _, new in answers] == [True, True, False]
    assert [job.id for job, _ in answers] == [batch[0].id, batch[1].id, batch[0].id]
    with pytest.raises(JobConflictError):
        await store.submit([new_job(idempotency_key="c", fingerprint=text) for text in ("1", "2")])


async def test_submissions_of_one_key_at_the_same_time_give_one_job(open_store: OpenStore) -> None:
    stores = [await open_store() for _ in range(4)]
    news = [
        new_job(idempotency_key="abc", priority=priority) for priority in (Priority.INTERACTIVE, Priority.BATCH) * 8
    ]
    answers = await asyncio.gather(*(stores[index % 4].submit([new]) for index, new in enumerate(news)))
    assert len({job.id for ((job, _),) in answers}) == 1
    assert [new for ((_, new),) in answers].count(True) == 1


async def test_jobs_are_taken_all_or_none(store: SqlJobStore) -> None:
    await submit(store, idempotency_key="abc", fingerprint="f")
    fine = new_job()
    with pytest.raises(JobConflictError):
        await store.submit([fine, new_job(idempotency_key="abc", fingerprint="other")])
    with pytest.raises(JobNotFoundError):
        await store.get(fine.id)


async def test_a_full_queue_refuses_with_its_length(open_store: OpenStore) -> None:
    store = await open_store(max_queued=5, max_queued_per_key=3)
    await store.submit([new_job() for _ in range(2)])
    with pytest.raises(QueueFullError) as caught:
        await store.submit([new_job() for _ in range(2)])
    assert caught.value.queued == 2
    assert caught.value.retry_after > 0
    await submit(store, priority=Priority.BATCH)
    with pytest.raises(QueueFullError):
        await submit(store)
    await store.submit([new_job("key_2") for _ in range(2)])
    with pytest.raises(QueueFullError) as caught:
        await submit(store, "key_3")
    assert caught.value.queued == 5
    await lease_one(store)
    await submit(store, "key_3")


async def test_a_document_goes_from_the_queue_to_its_end(store: SqlJobStore, clock: StandingClock) -> None:
    job = await submit(store)
    assert await store.place(job) == 0
    clock.now += 5
    opening = await open_document(store, 6)
    assert opening.job.status is JobStatus.RUNNING
    assert await store.place(job) is None
    first, second = await store.lease("worker", 6)
    assert {page for task in (first, second) for page in task.pages} == set(pages_of(6))
    assert first.kind is TaskKind.PAGES
    assert first.token != second.token
    for task in (first, second):
        for page in task.pages:
            await store.finish_page(task, good(page.index, figures=(f"figures/{job.id}/{page.index}",)))
            running = await store.get(job.id)
    ended = await store.get(job.id)
    assert running == ended
    assert (ended.status, ended.outcome) == (JobStatus.SUCCEEDED, ConversionStatus.SUCCESS)
    assert (ended.pages_total, ended.pages_done, ended.pages_failed, ended.format) == (6, 6, 0, "pdf")
    assert ended.usage == Usage(600, 60)
    assert (ended.started_at, ended.finished_at) == (clock.now, clock.now)
    assert ended.expires_at == clock.now + 7 * 86_400
    assert [event.kind for event in await store.events(job.id)] == [
        *("queued", "started", "opened"),
        *["page"] * 6,
        "succeeded",
    ]
    assert await store.lease("worker", 10) == []


async def test_results_can_be_read_while_they_come(store: SqlJobStore) -> None:
    job = await submit(store)
    await open_document(store, 3)
    task = await lease_one(store)
    await store.finish_page(task, good(2, figures=("figures/x/1", "figures/x/2")))
    await store.finish_page(task, bad(0))
    assert await store.pages(job.id) == [bad(0), good(2, figures=("figures/x/1", "figures/x/2"))]
    assert [page.index for page in await store.pages(job.id, first=1)] == [2]
    assert [page.index for page in await store.pages(job.id, limit=1)] == [0]
    events = await store.events(job.id, after=3)
    assert [event.data for event in events] == [
        {"index": 2, "ok": True},
        {"index": 0, "ok": False, "error": "engine_error"},
    ]
    assert [event.id for event in await store.events(job.id, limit=2)] == [1, 2]


async def test_a_failed_page_is_no_failed_job(store: SqlJobStore) -> None:
    job = await submit(store)
    await work_off(store, pages=5, read=lambda index: bad(index) if index == 3 else good(index))
    ended = await store.get(job.id)
    assert (ended.status, ended.outcome) == (JobStatus.SUCCEEDED, ConversionStatus.PARTIAL_SUCCESS)
    assert (ended.pages_done, ended.pages_failed) == (4, 1)


async def test_a_job_without_a_good_page_has_failed_and_says_why(store: SqlJobStore) -> None:
    job = await submit(store)
    await work_off(store, pages=3, read=bad)
    ended = await store.get(job.id)
    assert (ended.status, ended.outcome) == (JobStatus.FAILED, ConversionStatus.FAILURE)
    assert ended.error is not None
    assert ended.error.code == "engine_error"
    assert "None of the 3 pages" in ended.error.message


async def test_a_document_without_pages_succeeds_at_once(store: SqlJobStore) -> None:
    job = await submit(store)
    await open_document(store, 0)
    ended = await store.get(job.id)
    assert (ended.status, ended.outcome) == (JobStatus.SUCCEEDED, ConversionStatus.SUCCESS)


async def test_a_document_that_cannot_be_opened_fails_its_job(store: SqlJobStore) -> None:
    job = await submit(store)
    error = PageError("encrypted_document", "it wants a password")
    await store.open_failed(await lease_one(store), error)
    ended = await store.get(job.id)
    assert (ended.status, ended.error, ended.pages_total) == (JobStatus.FAILED, error, None)
    assert [event.data for event in await store.events(job.id, after=2)] == [{"error": "encrypted_document"}]
    assert await store.lease("worker", 10) == []


async def test_a_page_counts_once_however_often_it_is_handed_in(store: SqlJobStore) -> None:
    job = await submit(store)
    await open_document(store, 3)
    task = await lease_one(store)
    await store.finish_page(task, good(0))
    await store.finish_page(task, bad(0))
    await store.finish_page(task, replace(good(0), data=b"another"))
    found = await store.get(job.id)
    assert (found.pages_done, found.pages_failed, found.usage) == (1, 0, Usage(100, 10))
    assert await store.pages(job.id) == [good(0)]
    await store.finish_page(task, good(1))
    await store.finish_page(task, good(2))
    assert (await store.get(job.id)).status is JobStatus.SUCCEEDED
    with pytest.raises(LeaseLostError):
        await store.finish_page(task, good(2))
    assert (await store.get(job.id)).pages_done == 3


async def test_pages_of_other_work_are_refused(store: SqlJobStore) -> None:
    await submit(store)
    await open_document(store, 8)
    first, second = await store.lease("worker", 8)
    with pytest.raises(ValueError, match="none of task"):
        await store.finish_page(first, good(second.pages[0].index))
    with pytest.raises(ValueError, match="another kind"):
        await store.opened(first, "pdf", pages_of(2))


async def test_the_passwords_go_to_those_who_work_and_to_nobody_once_all_is_read(store: SqlJobStore) -> None:
    job = await submit(store, secrets=("first", "second"))
    opening = await open_document(store, 2)
    assert opening.secrets == ("first", "second")
    assert "first" not in repr(opening)
    task = await lease_one(store)
    assert task.secrets == ("first", "second")
    await store.finish_page(task, good(0))
    await store.finish_page(task, bad(1))
    # The failed page may be tried again, which needs them.
    await store.retry_failed(job.id)
    task = await lease_one(store)
    assert task.secrets == ("first", "second")
    await store.finish_page(task, good(1))
    assert await stored_secrets(store) == [None]


async def test_the_passwords_of_a_cancelled_job_are_wiped(store: SqlJobStore) -> None:
    job = await submit(store, secrets=("first",))
    assert await stored_secrets(store) == [["first"]]
    await store.cancel(job.id)
    assert await stored_secrets(store) == [None]


async def stored_secrets(store: SqlJobStore) -> list[object]:
    import sqlalchemy as sa

    from pagemill.jobs.sql.tables import documents

    query = sa.select(documents.c.secrets)
    return await store._database.read(lambda transaction: list(transaction.run(query).scalars()))


async def test_cancelling_ends_a_job_that_waits(store: SqlJobStore) -> None:
    job = await submit(store)
    cancelled = await store.cancel(job.id)
    assert (cancelled.status, cancelled.outcome) == (JobStatus.CANCELLED, ConversionStatus.FAILURE)
    assert await store.lease("worker", 1) == []
    assert (await store.stats()).queued[Priority.INTERACTIVE] == 0
    assert await store.cancel(job.id) == cancelled
    assert [event.kind for event in await store.events(job.id)] == ["queued", "cancelled"]


async def test_cancelling_takes_work_from_those_who_hold_it_and_keeps_what_is_there(store: SqlJobStore) -> None:
    job = await submit(store)
    await open_document(store, 8)
    held = await store.lease("worker", 4)
    await store.finish_page(held[0], good(held[0].pages[0].index))
    await store.cancel(job.id)
    assert await store.heartbeat("worker", [task.token for task in held]) == {task.token for task in held}
    with pytest.raises(LeaseLostError):
        await store.finish_page(held[0], good(held[0].pages[1].index))
    assert await store.lease("worker", 8) == []
    ended = await store.get(job.id)
    assert (ended.status, ended.pages_done, ended.outcome) == (
        JobStatus.CANCELLED,
        1,
        ConversionStatus.PARTIAL_SUCCESS,
    )
    assert len(await store.pages(job.id)) == 1


async def test_a_job_that_has_ended_is_not_cancelled_any_more(store: SqlJobStore) -> None:
    job = await submit(store)
    await work_off(store)
    assert (await store.cancel(job.id)).status is JobStatus.SUCCEEDED
