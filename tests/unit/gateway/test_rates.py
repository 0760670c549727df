from types import SimpleNamespace

import pytest

from pagemill.domain.errors import RateLimitedError
from pagemill.gateway.auth import Caller
from pagemill.gateway.options import RateOptions
from pagemill.gateway.rates import limit_rate
from pagemill.jobs.sql import SqlRateStore, open_database
from pagemill.jobs.store import StoreOptions


class Time:
    """Passes only while somebody sleeps."""

    def __init__(self):
        self.now = 1_800_000_000.0
        self.slept = []

    def __call__(self):
        return self.now

    async def sleep(self, seconds):
        self.slept.append(round(seconds, 6))


@pytest.fixture
def time(monkeypatch):
    time = Time()
    monkeypatch.setattr("pagemill.gateway.rates.asyncio.sleep", time.sleep)
    return time


@pytest.fixture
async def rates(tmp_path, time):
    database = open_database(f"sqlite:///{tmp_path / 'jobs.db'}", StoreOptions(), process_id="test", clock=time)
    await database.start()
    yield SqlRateStore(database)
    await database.aclose()


def limiter(rates, **options):
    services = SimpleNamespace(rates=rates, options=SimpleNamespace(rate=RateOptions(**options)))

    async def request(key="a"):
        await limit_rate(Caller(key, admin=False), services)

    return request


async def test_without_a_rate_nothing_is_asked_of_the_store():
    await limiter(None)()


async def test_requests_over_the_burst_are_held_back_one_after_the_other(rates, time):
    request = limiter(rates, per_key=2, per_key_burst=2, max_delay_s=1.5)
    for _ in range(5):
        await request()
    assert time.slept == [0.5, 1.0, 1.5]


async def test_a_request_that_would_wait_too_long_is_refused_and_takes_nothing(rates, time):
    request = limiter(rates, per_key=2, per_key_burst=1, max_delay_s=0.5)
    await request()
    await request()
    for _ in range(3):
        with pytest.raises(RateLimitedError, match="2 requests a second for this key") as caught:
            await request()
        assert caught.value.retry_after == pytest.approx(0.5)
    time.now += 0.5
    await request()
    assert time.slept == [0.5, 0.5]


async def test_after_the_time_that_was_told_a_request_is_not_refused(rates, time):
    request = limiter(rates, per_key=0.2, per_key_burst=1, max_delay_s=0)
    await request()
    with pytest.raises(RateLimitedError) as caught:
        await request()
    time.now += caught.value.retry_after
    await request()


async def test_each_key_has_its_own_rate(rates, time):
    request = limiter(rates, per_key=1, per_key_burst=1, max_delay_s=0)
    await request("a")
    await request("b")
    with pytest.raises(RateLimitedError):
        await request("a")


async def test_the_total_counts_all_keys(rates, time):
    request = limiter(rates, total=1, total_burst=2, max_delay_s=0)
    await request("a")
    await request("b")
    with pytest.raises(RateLimitedError, match="for the service"):
        await request("c")


async def test_a_key_over_its_own_rate_does_not_use_up_the_total(rates, time):
    request = limiter(rates, per_key=1, per_key_burst=1, total=1, total_burst=2, max_delay_s=0)
    await request("a")
    for _ in range(5):
        with pytest.raises(RateLimitedError, match="for this key"):
            await request("a")
    await request("b")


async def test_a_key_may_have_any_name_without_touching_the_total(rates, time):
    request = limiter(rates, per_key=1, per_key_burst=1, total=1, total_burst=3, max_delay_s=0)
    for key in ("total", "key:total", "anonymous"):
        await request(key)
