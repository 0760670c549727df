"""What every store of jobs must keep to: who comes next, places in the queue, lists, figures of the queue."""

from __future__ import annotations

from collections import Counter

import pytest

from pagemill.domain import Job, JobStatus, Priority, TaskKind
from pagemill.domain.errors import RequestError
from pagemill.jobs.sql import SqlJobStore
from pagemill.jobs.store import JobFilter
from stores import (
    OpenStore,
    StandingClock,
    good,
    lease_one,
    new_job,
    open_document,
    pages_of,
    submit,
    work_off,
)


async def read_next(store: SqlJobStore, pages: int = 1) -> tuple[str, TaskKind]:
    """Does the next piece of work; whose it was."""
    task = await lease_one(store)
    if task.kind is TaskKind.OPEN:
        await store.opened(task, "pdf", pages_of(pages))
    for page in task.pages:
        await store.finish_page(task, good(page.index))
    return task.job.id, task.kind


async def test_documents_of_one_key_come_in_the_order_of_their_arrival(store: SqlJobStore) -> None:
    jobs = [await submit(store) for _ in range(5)]
    done = await work_off(store, room=1)
    assert list(dict.fromkeys(job for job, _ in done)) == [job.id for job in jobs]


async def test_a_book_never_blocks_a_receipt(store: SqlJobStore) -> None:
    await submit(store)
    await open_document(store, 2000)
    for _ in range(7):
        await read_next(store)
    receipt = await submit(store)
    order = [(await read_next(store))[0] for _ in range(4)]
    assert order.count(receipt.id) == 2
    assert (await store.get(receipt.id)).status is JobStatus.SUCCEEDED


async def test_many_books_never_block_a_receipt(store: SqlJobStore) -> None:
    for _ in range(20):
        await submit(store)
    opened = 0
    while opened < 20:
        opened += (await read_next(store, 400))[1] is TaskKind.OPEN
    for _ in range(50):
        await read_next(store)
    receipt = await submit(store)
    order = [(await read_next(store))[0] for _ in range(4)]
    assert order.count(receipt.id) == 2


async def test_receipts_that_never_end_do_not_starve_a_book(store: SqlJobStore) -> None:
    book = await submit(store)
    await open_document(store, 40)
    for _ in range(50):
        await submit(store)
        await read_next(store)
        await read_next(store)
        if (await store.get(book.id)).status is JobStatus.SUCCEEDED:
            break
    assert (await store.get(book.id)).pages_done == 40


async def test_books_take_turns(store: SqlJobStore) -> None:
    books = [(await submit(store)).id for _ in range(3)]
    for _ in range(9):
        await read_next(store, 400)
    pieces = [(await read_next(store))[0] for _ in range(18)]
    for start in range(0, 18, 3):
        assert set(pieces[start : start + 3]) == set(books)


async def test_keys_share_evenly_by_pages_whatever_they_bring(store: SqlJobStore) -> None:
    await submit(store, "key_books")
    await open_document(store, 400)
    await store.submit([new_job("key_receipts") for _ in range(100)])
    pages: Counter[str] = Counter()
    for _ in range(100):
        task = await lease_one(store)
        pages[task.job.key_id] += max(1, len(task.pages))
        if task.kind is TaskKind.OPEN:
            await store.opened(task, "pdf", pages_of(1))
        for page in task.pages:
            await store.finish_page(task, good(page.index))
    assert abs(pages["key_books"] - pages["key_receipts"]) <= 8


async def test_a_key_that_was_idle_has_saved_up_nothing(store: SqlJobStore) -> None:
    await submit(store, "key_1")
    await open_document(store, 400)
    for _ in range(50):
        await read_next(store)
    await store.submit([new_job("key_2") for _ in range(50)])
    owners = [(await lease_one(store)).job.key_id for _ in range(20)]
    assert owners.count("key_1") >= 3


async def test_interactive_work_comes_first_and_batch_work_gets_its_share(open_store: OpenStore) -> None:
    store = await open_store(batch_share=8)
    await store.submit([new_job(priority=Priority.BATCH) for _ in range(40)])
    await store.submit([new_job() for _ in range(40)])
    taken = [(await lease_one(store)).job.priority for _ in range(32)]
    assert taken.count(Priority.BATCH) == 4
    assert taken[0] is Priority.INTERACTIVE


async def test_room_is_filled_with_work_of_about_so_many_pages(store: SqlJobStore) -> None:
    await submit(store)
    await open_document(store, 40)
    assert sum(len(task.pages) for task in await store.lease("worker", 10)) == 12
    assert len(await store.lease("worker", 0)) == 1
    await store.submit([new_job() for _ in range(5)])
    await store.submit([new_job("key_2") for _ in range(5)])
    tasks = await store.lease("worker", 6)
    assert {task.job.key_id for task in tasks} == {"key_1", "key_2"}
    assert len({task.token for task in tasks}) == len(tasks)


async def test_the_first_pages_of_a_document_come_before_the_next_documents(store: SqlJobStore) -> None:
    first, second = await submit(store), await submit(store)
    assert await read_next(store) == (first.id, TaskKind.OPEN)
    assert await read_next(store) == (first.id, TaskKind.PAGES)
    assert await read_next(store) == (second.id, TaskKind.OPEN)


async def test_the_place_says_how_many_come_before(open_store: OpenStore) -> None:
    store = await open_store(batch_share=4)
    mine = [await submit(store) for _ in range(10)]
    await store.submit([new_job("key_2") for _ in range(3)])
    batch = await submit(store, priority=Priority.BATCH)
    assert await store.place(mine[0]) == 0
    assert await store.place(mine[2]) == 2 + 2 + 1
    assert await store.place(mine[9]) == 9 + 3 + 1
    assert await store.place(batch) == 3
    await store.cancel(mine[0].id)
    assert await store.place(mine[0]) is None


async def listed(store: SqlJobStore, wanted: JobFilter, limit: int = 2) -> list[str]:
    found: list[Job] = []
    cursor = None
    while True:
        jobs, cursor = await store.search(wanted, limit=limit, cursor=cursor)
        assert len(jobs) <= limit
        found += jobs
        if cursor is None:
            return [job.id for job in found]


async def test_lists_are_filtered_and_paged_from_the_newest(store: SqlJobStore, clock: StandingClock) -> None:
    jobs = []
    for number in range(7):
        key, batch = f"key_{number % 2}", "batch" if number < 4 else None
        jobs.append((await submit(store, key, batch_id=batch)).id)
        # Jobs of the same moment, too.
        clock.now += number % 2
    newest = list(reversed(jobs))
    assert sorted(await listed(store, JobFilter())) == sorted(jobs)
    assert await listed(store, JobFilter(key_id="key_1")) == newest[1::2]
    assert sorted(await listed(store, JobFilter(batch_id="batch"))) == sorted(jobs[:4])
    await store.cancel(jobs[3])
    assert await listed(store, JobFilter(statuses=(JobStatus.CANCELLED, JobStatus.FAILED))) == [jobs[3]]
    made = (await store.get(jobs[3])).created_at
    assert sorted(await listed(store, JobFilter(created_before=made))) == sorted(jobs[:2])
    assert sorted(await listed(store, JobFilter(created_after=made))) == sorted(jobs[4:])
    assert await listed(store, JobFilter(key_id="key_9")) == []


@pytest.mark.parametrize("cursor", ["", "x", "é", "bm9uZQ", "W10", "WzEsMl0x", "WyJ4IiwieCJd", "\0", "W251bGwsbnVsbF0"])
async def test_a_cursor_that_is_none_is_refused(store: SqlJobStore, cursor: str) -> None:
    with pytest.raises(RequestError):
        await store.search(JobFilter(), limit=1, cursor=cursor)


async def test_the_figures_of_the_queue_are_those_of_all_processes(open_store: OpenStore, clock: StandingClock) -> None:
    store, other = await open_store(), await open_store()
    await store.submit([new_job() for _ in range(3)])
    clock.now += 10
    await store.submit([new_job(priority=Priority.BATCH) for _ in range(2)])
    clock.now += 5
    await open_document(store, 9)
    await store.lease("worker", 4)
    stats = await other.stats()
    assert stats.queued == {Priority.INTERACTIVE: 2, Priority.BATCH: 2}
    assert stats.running == {Priority.INTERACTIVE: 1, Priority.BATCH: 0}
    assert stats.tasks_queued == {Priority.INTERACTIVE: 4, Priority.BATCH: 2}
    assert stats.tasks_leased == {Priority.INTERACTIVE: 1, Priority.BATCH: 0}
    assert stats.oldest_s == {Priority.INTERACTIVE: 15.0, Priority.BATCH: 5.0}
    assert stats.finished_last_minute == 0
    await work_off(other)
    assert (await other.stats()).finished_last_minute == 4
    clock.now += 61
    stats = await other.stats()
    assert stats.finished_last_minute == 0
    assert stats.oldest_s == {Priority.INTERACTIVE: 0.0, Priority.BATCH: 0.0}
