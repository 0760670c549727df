"""What every store of API keys, token buckets and webhooks must keep to."""

from __future__ import annotations

import asyncio
import re
import time

import pytest
import sqlalchemy as sa

from pagemill.domain import JobStatus
from pagemill.domain.errors import JobConflictError, JobNotFoundError
from pagemill.jobs.sql import Database, SqlJobStore, SqlKeyStore, SqlRateStore, SqlWebhookStore, open_database
from pagemill.jobs.sql.tables import api_keys
from pagemill.jobs.store import StoreOptions
from stores import StandingClock, submit, work_off


async def test_a_key_is_found_by_itself_alone_and_stored_nowhere(database: Database, clock: StandingClock) -> None:
    keys = SqlKeyStore(database)
    made, key = await keys.create("team", admin=True)
    assert re.fullmatch(r"pm_[A-Za-z0-9_-]{43}", key)
    found = await keys.find(key)
    assert found is not None
    assert (found.id, found.name, found.admin, found.created_at) == (made.id, "team", True, clock.now)
    for wrong in ("", "pm_", key[:-1], key + "x", key.lower(), "\0", "\ud800", "x" * 100_000, made.id):
        assert await keys.find(wrong) is None
    stored = await database.read(lambda transaction: transaction.rows(sa.select(api_keys)))
    assert key[3:] not in repr(stored)


async def test_two_valid_keys_never_have_one_name(database: Database) -> None:
    keys = SqlKeyStore(database)
    answers = await asyncio.gather(*(keys.create("team") for _ in range(5)), return_exceptions=True)
    assert sum(isinstance(answer, JobConflictError) for answer in answers) == 4
    await keys.revoke("team")
    await keys.create("team")
    assert [(key.name, key.revoked_at is None) for key in await keys.all_keys()].count(("team", True)) == 1


async def test_a_withdrawn_key_is_valid_no_more(database: Database, clock: StandingClock) -> None:
    keys = SqlKeyStore(database)
    first, first_key = await keys.create("first")
    second, second_key = await keys.create("second")
    assert (await keys.revoke("first")).revoked_at == clock.now
    assert await keys.find(first_key) is None
    assert await keys.find(second_key) is not None
    assert (await keys.revoke(second.id)).id == second.id
    for unknown in ("first", first.id, "never"):
        with pytest.raises(JobNotFoundError):
            await keys.revoke(unknown)
    assert {key.id for key in await keys.all_keys()} == {first.id, second.id}


async def test_the_use_of_a_key_is_noted_now_and_then(database: Database, clock: StandingClock) -> None:
    keys = SqlKeyStore(database)
    made, key = await keys.create("team")
    assert made.last_used_at is None
    first = clock.now
    assert (await keys.all_keys())[0].last_used_at is None
    for seconds, noted in ((0, first), (200, first), (101, first + 301)):
        clock.now += seconds
        await keys.find(key)
        assert (await keys.all_keys())[0].last_used_at == noted


async def test_a_bucket_gives_what_it_holds_and_then_what_flows_in(database: Database, clock: StandingClock) -> None:
    rates = SqlRateStore(database)

    async def take() -> float:
        return await rates.take("a", rate=2.0, burst=3.0)

    assert [await take() for _ in range(3)] == [0, 0, 0]
    assert await take() == pytest.approx(0.5)
    assert await take() == pytest.approx(0.5), "what is refused takes nothing"
    assert await rates.take("b", rate=2.0, burst=3.0) == 0
    clock.now += 0.5
    assert await take() == 0
    assert await take() == pytest.approx(0.5)
    clock.now += 1000
    assert [await take() for _ in range(3)] == [0, 0, 0]
    assert await take() > 0


async def test_who_has_patience_takes_a_token_that_is_still_to_come(database: Database, clock: StandingClock) -> None:
    rates = SqlRateStore(database)
    waits = [await rates.take("a", rate=1.0, burst=1.0, patience=2.0) for _ in range(5)]
    assert waits == [pytest.approx(wait) for wait in (0, 1, 2, 3, 3)]
    clock.now += 1.5
    assert await rates.take("a", rate=1.0, burst=1.0, patience=2.0) == pytest.approx(1.5)


async def test_buckets_are_shared_by_all_who_ask_at_once(
    store_url: str, database: Database, clock: StandingClock
) -> None:
    other = open_database(store_url, StoreOptions(), process_id="other", clock=clock)
    await other.start()
    stores = [SqlRateStore(database), SqlRateStore(other)]
    waits = await asyncio.gather(*(stores[index % 2].take("a", rate=1.0, burst=10.0) for index in range(40)))
    await other.aclose()
    assert waits.count(0) == 10


async def test_buckets_that_are_full_again_are_forgotten(database: Database, clock: StandingClock) -> None:
    from pagemill.jobs.sql.tables import rates as table

    rates, store = SqlRateStore(database), SqlJobStore(database)
    await rates.take("old", rate=1.0, burst=1.0)
    clock.now += 3602
    await rates.take("new", rate=1.0, burst=1.0)
    await store.sweep()
    assert await database.read(lambda transaction: transaction.run(sa.select(table.c.bucket)).scalars().all()) == [
        "new"
    ]


async def test_the_end_of_a_job_makes_one_webhook(database: Database) -> None:
    store, webhooks = SqlJobStore(database), SqlWebhookStore(database)
    job = await submit(store, webhook="https://example.com/hook")
    await submit(store)
    assert await webhooks.due("sender") == []
    await work_off(store)
    (delivery,) = await webhooks.due("sender")
    assert (delivery.url, delivery.attempt) == ("https://example.com/hook", 1)
    assert delivery.job == await store.get(job.id)
    await webhooks.delivered(delivery)
    assert await webhooks.due("sender") == []


@pytest.mark.parametrize("way", ["cancelled", "overdue", "unreadable"])
async def test_every_end_makes_a_webhook(database: Database, clock: StandingClock, way: str) -> None:
    from pagemill.domain import PageError
    from stores import lease_one

    store, webhooks = SqlJobStore(database), SqlWebhookStore(database)
    job = await submit(store, webhook="https://example.com/hook", deadline=clock.now + 1)
    if way == "cancelled":
        await store.cancel(job.id)
        await store.cancel(job.id)
    elif way == "overdue":
        clock.now += 2
        await store.sweep()
    else:
        await store.open_failed(await lease_one(store), PageError("x", "y"))
    (delivery,) = await webhooks.due("sender")
    assert delivery.job.status is (JobStatus.CANCELLED if way == "cancelled" else JobStatus.FAILED)


async def test_a_webhook_tells_how_the_job_ended_also_when_it_runs_again(database: Database) -> None:
    from pagemill.domain import PageError
    from stores import lease_one

    store, webhooks = SqlJobStore(database), SqlWebhookStore(database)
    job = await submit(store, webhook="https://example.com/hook")
    await store.open_failed(await lease_one(store), PageError("x", "y"))
    await store.retry_failed(job.id)
    (delivery,) = await webhooks.due("sender")
    assert delivery.job.status is JobStatus.FAILED
    await work_off(store)
    (second,) = await webhooks.due("sender")
    assert second.job.status is JobStatus.SUCCEEDED
    assert second.id != delivery.id


async def test_a_webhook_goes_to_one_sender_and_to_another_when_that_vanishes(
    database: Database, clock: StandingClock
) -> None:
    store, webhooks = SqlJobStore(database), SqlWebhookStore(database)
    for _ in range(10):
        await store.cancel((await submit(store, webhook="https://example.com/hook")).id)
    taken = await asyncio.gather(*(webhooks.due(f"sender-{number}", limit=4) for number in range(5)))
    ids = [delivery.id for batch in taken for delivery in batch]
    assert len(ids) == len(set(ids)) == 10
    clock.now += 61
    again = await webhooks.due("sender")
    assert {delivery.id for delivery in again} == set(ids)
    assert {delivery.attempt for delivery in again} == {2}


async def test_a_webhook_that_failed_comes_again_when_it_was_said_or_never(
    database: Database, clock: StandingClock
) -> None:
    store, webhooks = SqlJobStore(database), SqlWebhookStore(database)
    await store.cancel((await submit(store, webhook="https://example.com/hook")).id)
    (first,) = await webhooks.due("sender")
    await webhooks.failed(first, "status 500 \0", retry_in_s=300)
    clock.now += 299
    assert await webhooks.due("sender") == []
    clock.now += 2
    (second,) = await webhooks.due("sender")
    assert (second.id, second.attempt) == (first.id, 2)
    await webhooks.failed(first, "late news of the first try", retry_in_s=0)
    assert await webhooks.due("sender") == []
    await webhooks.failed(second, "status 410", retry_in_s=None)
    clock.now += 10_000
    assert await webhooks.due("sender") == []


async def test_without_a_clock_of_its_own_the_store_has_the_right_time(store_url: str) -> None:
    database = open_database(store_url, StoreOptions(), process_id="test")
    await database.start()
    job = await submit(SqlJobStore(database))
    await database.aclose()
    assert abs(job.created_at - time.time()) < 60
