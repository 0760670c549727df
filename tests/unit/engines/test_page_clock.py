from __future__ import annotations

import asyncio

import pytest

from pagemill.engines.page_clock import waiting, within


async def test_work_beyond_its_time_is_cancelled() -> None:
    cancelled = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            cancelled.set()

    with pytest.raises(asyncio.TimeoutError):
        await within(0.1, work())
    assert cancelled.is_set()


async def test_time_spent_waiting_does_not_count() -> None:
    async def work() -> str:
        with waiting(), waiting():
            await asyncio.sleep(0.5)
        return "done"

    assert await within(0.2, work()) == "done"


async def test_work_counts_again_after_the_wait() -> None:
    async def work() -> None:
        with waiting():
            await asyncio.sleep(0.3)
        await asyncio.sleep(60)

    with pytest.raises(asyncio.TimeoutError):
        await within(0.2, work())


async def test_errors_and_cancellation_pass_through() -> None:
    async def fail() -> None:
        raise ValueError("its own")

    with pytest.raises(ValueError, match="its own"):
        await within(1, fail())
    outer = asyncio.ensure_future(within(60, asyncio.sleep(60)))
    await asyncio.sleep(0.01)
    outer.cancel()
    with pytest.raises(asyncio.CancelledError):
        await outer


async def test_without_a_limit_waiting_does_nothing() -> None:
    with waiting():
        await asyncio.sleep(0)
