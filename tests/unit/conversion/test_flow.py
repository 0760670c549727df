from __future__ import annotations

import asyncio

import pytest

from pagemill.conversion.flow import ByteBudget


async def test_holders_wait_until_their_bytes_fit_and_keep_their_order() -> None:
    budget = ByteBudget(100)
    order: list[str] = []

    async def hold(name: str, size: int, gate: asyncio.Event) -> None:
        async with budget.hold(size):
            order.append(name)
            await gate.wait()

    gate_a, gate_b = asyncio.Event(), asyncio.Event()
    a = asyncio.create_task(hold("a", 80, gate_a))
    await asyncio.sleep(0)
    b = asyncio.create_task(hold("b", 50, gate_b))
    await asyncio.sleep(0)
    c = asyncio.create_task(hold("c", 10, gate_b))
    await asyncio.sleep(0)
    # c would fit beside a, but b came first.
    assert order == ["a"]
    gate_a.set()
    await a
    await asyncio.sleep(0)
    assert order == ["a", "b", "c"]
    assert budget.used == 60
    gate_b.set()
    await asyncio.gather(b, c)
    assert budget.used == 0


async def test_what_is_larger_than_the_budget_goes_alone() -> None:
    budget = ByteBudget(10)
    async with budget.hold(1000):
        assert budget.used == 1000
        waiting = asyncio.create_task(_enter(budget, 1))
        await asyncio.sleep(0)
        assert not waiting.done()
    await waiting
    assert budget.used == 0


async def test_a_cancelled_wait_frees_the_way_for_the_next() -> None:
    budget = ByteBudget(10)
    async with budget.hold(6):
        big = asyncio.create_task(_enter(budget, 9))
        await asyncio.sleep(0)
        small = asyncio.create_task(_enter(budget, 2))
        await asyncio.sleep(0)
        assert not small.done()
        big.cancel()
        with pytest.raises(asyncio.CancelledError):
            await big
        await small
    assert budget.used == 0


async def _enter(budget: ByteBudget, size: int) -> None:
    async with budget.hold(size):
        pass
