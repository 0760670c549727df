"""What every store of jobs must keep to: who holds work, how it changes hands, retries, housekeeping."""

from __future__ import annotations

import pytest

from pagemill.domain import ConversionStatus, JobStatus, PageError, Priority, TaskKind
from pagemill.domain.errors import JobConflictError, JobGoneError, JobNotFoundError, LeaseLostError, QueueFullError
from pagemill.jobs.sql import SqlJobStore
from pagemill.jobs.store import JobFilter, Sweep
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

LEASE_S = 15.0


async def test_work_is_held_by_one_alone(open_store: OpenStore) -> None:
    store, other = await open_store(), await open_store()
    await submit(store)
    await lease_one(store)
    assert await other.lease("other", 10) == []


async def test_a_sign_of_life_prolongs_a_lease(store: SqlJobStore, clock: StandingClock) -> None:
    await submit(store)
    task = await lease_one(store)
    for _ in range(5):
        clock.now += LEASE_S - 1
        assert await store.heartbeat("worker", [task.token, "unknown"]) == {"unknown"}
        assert (await store.sweep()).released == 0
    assert await store.heartbeat("worker", []) == set()


async def test_a_sign_of_life_of_somebody_else_prolongs_nothing(store: SqlJobStore, clock: StandingClock) -> None:
    await submit(store)
    task = await lease_one(store)
    clock.now += LEASE_S - 1
    assert await store.heartbeat("other", [task.token]) == {task.token}
    clock.now += 2
    assert (await store.sweep()).released == 1


async def test_work_of_a_holder_that_vanished_is_taken_over_without_what_is_done(
    open_store: OpenStore, clock: StandingClock
) -> None:
    store, other = await open_store(), await open_store()
    job = await submit(store)
    await open_document(store, 4)
    lost = await lease_one(store)
    await store.finish_page(lost, good(1))
    assert await other.lease("other", 1) == []
    clock.now += LEASE_S + 1
    assert await other.sweep() == Sweep(released=1)
    assert await other.sweep() == Sweep()
    taken = await lease_one(other, "other")
    assert (taken.id, taken.takeovers) == (lost.id, 1)
    assert taken.token != lost.token
    assert [page.index for page in taken.pages] == [0, 2, 3]
    # The first holder was only asleep.
    assert await store.heartbeat("worker", [lost.token]) == {lost.token}
    with pytest.raises(LeaseLostError):
        await store.finish_page(lost, good(0))
    for index in (0, 2, 3):
        await other.finish_page(taken, good(index))
    ended = await store.get(job.id)
    assert (ended.status, ended.pages_done) == (JobStatus.SUCCEEDED, 4)


async def test_who_opens_a_document_too_late_changes_nothing(store: SqlJobStore, clock: StandingClock) -> None:
    job = await submit(store)
    late = await lease_one(store)
    clock.now += LEASE_S + 1
    await store.sweep()
    for call in (store.opened(late, "pdf", pages_of(9)), store.open_failed(late, PageError("x", "y"))):
        with pytest.raises(LeaseLostError):
            await call
    await open_document(store, 1, "other")
    with pytest.raises(LeaseLostError):
        await store.opened(late, "pdf", pages_of(9))
    assert (await store.get(job.id)).pages_total == 1


async def test_a_lease_that_ran_out_still_counts_until_somebody_takes_the_work(
    store: SqlJobStore, clock: StandingClock
) -> None:
    await submit(store)
    await open_document(store, 2)
    task = await lease_one(store)
    clock.now += LEASE_S + 1
    await store.finish_page(task, good(0))
    assert await store.heartbeat("worker", [task.token]) == set()
    assert (await store.sweep()).released == 0


async def test_work_that_is_handed_back_is_free_at_once_and_no_takeover(open_store: OpenStore) -> None:
    store = await open_store()
    await submit(store)
    task = await lease_one(store)
    await store.hand_back("other", [task.token])
    assert await store.lease("other", 1) == []
    await store.hand_back("worker", [task.token, "unknown"])
    again = await lease_one(store, "other")
    assert (again.id, again.takeovers) == (task.id, 0)
    with pytest.raises(LeaseLostError):
        await store.open_failed(task, PageError("x", "y"))


async def test_pages_that_too_many_holders_vanish_with_are_quarantined(
    open_store: OpenStore, clock: StandingClock
) -> None:
    store = await open_store(max_takeovers=2, chunk_pages=2)
    job = await submit(store)
    await open_document(store, 4)
    doomed, other = sorted(await store.lease("worker", 4), key=lambda task: task.pages[0].index)
    await store.finish_page(doomed, good(0))
    for takeovers in (1, 2, 3):
        clock.now += LEASE_S + 1
        await store.heartbeat("worker", [other.token])
        assert (await store.sweep()).released == 1
        for task in await store.lease("next", 1):
            assert (task.id, task.takeovers) == (doomed.id, takeovers)
    errors = {page.index: page.error for page in await store.pages(job.id)}
    assert errors[0] is None
    assert errors[1] is not None
    assert errors[1].code == "page_quarantined"
    assert (await store.get(job.id)).status is JobStatus.RUNNING
    for page in other.pages:
        await store.finish_page(other, good(page.index))
    ended = await store.get(job.id)
    assert (ended.status, ended.pages_done, ended.pages_failed) == (JobStatus.SUCCEEDED, 3, 1)


async def test_a_document_that_too_many_holders_vanish_with_fails_its_job(
    open_store: OpenStore, clock: StandingClock
) -> None:
    store = await open_store(max_takeovers=1)
    job = await submit(store)
    for _ in range(2):
        await lease_one(store)
        clock.now += LEASE_S + 1
        await store.sweep()
    ended = await store.get(job.id)
    assert ended.status is JobStatus.FAILED
    assert ended.error is not None
    assert ended.error.code == "page_quarantined"
    assert await store.lease("worker", 1) == []


async def test_a_job_whose_time_is_up_ends_and_keeps_what_was_read(store: SqlJobStore, clock: StandingClock) -> None:
    job = await submit(store, deadline=clock.now + 60)
    waiting = await submit(store, deadline=clock.now + 60)
    await open_document(store, 8)
    task = await lease_one(store)
    await store.finish_page(task, good(task.pages[0].index))
    clock.now += 61
    assert set((await store.sweep()).overdue) == {job.id, waiting.id}
    ended = await store.get(job.id)
    assert (ended.status, ended.outcome) == (JobStatus.FAILED, ConversionStatus.PARTIAL_SUCCESS)
    assert ended.error is not None
    assert (ended.error.code, ended.pages_done) == ("limit_exceeded", 1)
    assert "60 s" in ended.error.message
    assert await store.heartbeat("worker", [task.token]) == {task.token}
    assert await store.lease("worker", 8) == []
    assert (await store.stats()).queued[Priority.INTERACTIVE] == 0
    # What was not read can be tried again, in as much time as before.
    retried = await store.retry_failed(job.id)
    assert retried.deadline == clock.now + 60
    await work_off(store)
    assert (await store.get(job.id)).outcome is ConversionStatus.SUCCESS


async def test_a_retry_reads_the_pages_that_failed_and_no_others(store: SqlJobStore) -> None:
    job = await submit(store)
    await work_off(store, pages=9, read=lambda index: bad(index) if index in {1, 7} else good(index))
    retried = await store.retry_failed(job.id)
    assert (retried.status, retried.attempt) == (JobStatus.QUEUED, 2)
    assert (retried.pages_done, retried.pages_failed, retried.expires_at) == (7, 0, None)
    assert [page.index for page in await store.pages(job.id)] == [0, 2, 3, 4, 5, 6, 8]
    assert await work_off(store) == [(job.id, (1, 7))]
    ended = await store.get(job.id)
    assert (ended.status, ended.outcome) == (JobStatus.SUCCEEDED, ConversionStatus.SUCCESS)
    assert ended.pages_done == 9
    assert [event.kind for event in await store.events(job.id)][-5:] == [
        "retried",
        "started",
        "page",
        "page",
        "succeeded",
    ]
    with pytest.raises(JobConflictError):
        await store.retry_failed(job.id)


async def test_a_retry_opens_a_document_again_that_could_not_be_opened(store: SqlJobStore) -> None:
    job = await submit(store)
    await store.open_failed(await lease_one(store), PageError("render_failed", "it hung", retryable=True))
    await store.retry_failed(job.id)
    task = await lease_one(store)
    assert task.kind is TaskKind.OPEN
    await store.hand_back("worker", [task.token])
    await work_off(store)
    found = await store.get(job.id)
    assert (found.status, found.error) == (JobStatus.SUCCEEDED, None)


async def test_what_runs_or_was_cancelled_is_not_retried(open_store: OpenStore) -> None:
    store = await open_store(max_queued=2)
    job = await submit(store)
    with pytest.raises(JobConflictError, match="not ended"):
        await store.retry_failed(job.id)
    await store.open_failed(await lease_one(store), PageError("x", "y"))
    await store.submit([new_job(), new_job()])
    with pytest.raises(QueueFullError):
        await store.retry_failed(job.id)
    other = await store.cancel((await store.search(JobFilter(statuses=(JobStatus.QUEUED,)), limit=1))[0][0].id)
    with pytest.raises(JobConflictError, match="cancelled"):
        await store.retry_failed(other.id)
    await store.retry_failed(job.id)


async def test_results_go_after_their_time_and_their_blobs_with_them(store: SqlJobStore, clock: StandingClock) -> None:
    job = await submit(store, idempotency_key="abc", name="private.pdf")
    await work_off(store, pages=2, read=lambda index: good(index, figures=(f"figures/{job.id}/{index}",)))
    clock.now += 7 * 86_400 - 1
    assert await store.sweep() == Sweep()
    clock.now += 2
    assert (await store.sweep()).expired == (job.id,)
    for call in (store.get, store.cancel, store.retry_failed):
        with pytest.raises(JobGoneError):
            await call(job.id, None)
    with pytest.raises(JobNotFoundError):
        await store.get(job.id, "key_2")
    assert await store.pages(job.id) == []
    assert await store.events(job.id) == []
    assert (await store.search(JobFilter(), limit=10))[0] == []
    blobs = (job.blob, f"figures/{job.id}/0", f"figures/{job.id}/1")
    # Until it is said that they were deleted, they may not have been.
    assert set((await store.sweep()).blobs) == set(blobs)
    assert set((await store.sweep()).blobs) == set(blobs)
    await store.forget_blobs(blobs[:2])
    assert (await store.sweep()).blobs == blobs[2:]
    assert (await submit(store, idempotency_key="abc", fingerprint="other")).id != job.id
    clock.now += 30 * 86_400 + 1
    await store.sweep()
    with pytest.raises(JobNotFoundError):
        await store.get(job.id)


async def test_pictures_of_a_result_that_came_too_late_are_garbage_unless_they_are_used(
    store: SqlJobStore, clock: StandingClock
) -> None:
    job = await submit(store)
    await open_document(store, 2)
    late = await lease_one(store)
    clock.now += LEASE_S + 1
    await store.sweep()
    with pytest.raises(LeaseLostError):
        await store.finish_page(late, good(0, figures=("figures/j/same", "figures/j/late")))
    task = await lease_one(store)
    await store.finish_page(task, good(0, figures=("figures/j/same",)))
    with pytest.raises(LeaseLostError):
        await store.finish_page(late, good(0, figures=("figures/j/same", "figures/j/later")))
    assert (await store.sweep()).blobs == ()
    clock.now += 86_401
    assert set((await store.sweep()).blobs) == {"figures/j/late", "figures/j/later"}
    assert job.id


async def test_pictures_of_failed_pages_go_when_they_are_read_again(store: SqlJobStore) -> None:
    job = await submit(store)
    await work_off(store, pages=2, read=lambda index: (bad, good)[index](index, figures=(f"figures/j/{index}",)))
    await store.retry_failed(job.id)
    assert (await store.sweep()).blobs == ("figures/j/0",)
