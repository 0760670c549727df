from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagemill.domain import Priority
from pagemill.domain.errors import QueueFullError
from pagemill.jobs.gate import CLAIMANT, Claimant, Gate


class Visit:
    """A request that stays at the gate's other side until it is let go."""

    def __init__(self, gate: Gate, tokens: int, key: str = "a", priority: Priority = Priority.INTERACTIVE) -> None:
        self.inside = asyncio.Event()
        self.go = asyncio.Event()
        self.key = key
        self.priority = priority

        async def run() -> None:
            CLAIMANT.set(Claimant(key, priority))
            async with gate.enter(tokens):
                self.inside.set()
                await self.go.wait()

        self.task = asyncio.create_task(run())

    async def end(self) -> None:
        self.go.set()
        await asyncio.gather(self.task, return_exceptions=True)


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def gate_of(tokens: int = 10_000, capacity: int = 1000, **arguments: int) -> Gate:
    return Gate(tokens, capacity=lambda: capacity, **arguments)


async def order_of(gate: Gate, visits: list[Visit]) -> list[Visit]:
    """The order in which visits come in while one is inside at a time."""
    order: list[Visit] = []
    while len(order) < len(visits):
        await settle()
        now = [v for v in visits if v.inside.is_set() and v not in order]
        assert len(now) == 1
        order += now
        await now[0].end()
    return order


async def test_tokens_in_flight_stay_within_the_window() -> None:
    gate = gate_of(tokens=100)
    visits = [Visit(gate, 40) for _ in range(4)]
    await settle()
    assert [v.inside.is_set() for v in visits] == [True, True, False, False]
    assert (gate.tokens_in_flight, gate.waiting) == (80, 2)
    await visits[0].end()
    await settle()
    assert visits[2].inside.is_set()
    await asyncio.gather(*(v.end() for v in visits))
    assert (gate.tokens_in_flight, gate.in_flight, gate.waiting) == (0, 0, 0)


async def test_what_is_larger_than_the_window_passes_alone() -> None:
    gate = gate_of(tokens=100)
    small, large = Visit(gate, 10), Visit(gate, 500)
    await settle()
    assert not large.inside.is_set()
    await small.end()
    await settle()
    assert large.inside.is_set()
    await large.end()


async def test_keys_get_equal_tokens_however_many_requests_they_send() -> None:
    gate = gate_of(capacity=1)
    visits = [Visit(gate, 10, "greedy") for _ in range(12)] + [Visit(gate, 30, "modest") for _ in range(3)]
    order = await order_of(gate, visits)
    tokens = Counter[str]()
    for visit in order[:12]:
        tokens[visit.key] += 10 if visit.key == "greedy" else 30
        assert abs(tokens["greedy"] - tokens["modest"]) <= 40
    assert {v.key for v in order[:8]} == {"greedy", "modest"}


async def test_a_key_that_was_away_gets_no_credit_for_it() -> None:
    gate = gate_of(capacity=1)
    first = [Visit(gate, 10, "old") for _ in range(10)]
    await order_of(gate, first)
    visits = [Visit(gate, 10, "old") for _ in range(4)] + [Visit(gate, 10, "new") for _ in range(4)]
    order = await order_of(gate, visits)
    assert Counter(v.key for v in order[:4]) == {"old": 2, "new": 2}


async def test_interactive_work_goes_first_and_batch_work_is_not_starved() -> None:
    gate = gate_of(capacity=1, batch_share=4)
    visits = [Visit(gate, 1, "i")]
    await settle()
    visits += [Visit(gate, 1, "b", Priority.BATCH) for _ in range(4)] + [Visit(gate, 1, "i") for _ in range(11)]
    order = [v.priority for v in await order_of(gate, visits)]
    assert order == ([Priority.INTERACTIVE] * 3 + [Priority.BATCH]) * 4


async def test_growing_capacity_is_noticed_while_nobody_leaves() -> None:
    capacity = 1
    gate = Gate(1000, capacity=lambda: capacity)
    visits = [Visit(gate, 1) for _ in range(3)]
    await settle()
    assert [v.inside.is_set() for v in visits] == [True, False, False]
    capacity = 3
    await asyncio.wait_for(visits[2].inside.wait(), 5)
    await asyncio.gather(*(v.end() for v in visits))


async def test_a_full_queue_refuses_and_says_how_long() -> None:
    gate = gate_of(capacity=1, max_waiting=2)
    visits = [Visit(gate, 1) for _ in range(3)]
    await settle()
    with pytest.raises(QueueFullError, match="2 requests wait") as caught:
        async with gate.enter(1):
            pass
    assert caught.value.queued == 2
    assert caught.value.retry_after >= 1
    await asyncio.gather(*(v.end() for v in visits))


async def test_an_error_inside_gives_the_turn_back() -> None:
    gate = gate_of(capacity=1)
    with pytest.raises(ValueError, match="inside"):
        async with gate.enter(5):
            raise ValueError("inside")
    assert (gate.tokens_in_flight, gate.in_flight) == (0, 0)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["enter", "leave", "cancel", "cancel_at_once"]),
            st.integers(1, 60),
            st.sampled_from("abc"),
            st.sampled_from(list(Priority)),
        ),
        max_size=60,
    )
)
def test_whatever_happens_the_counts_are_right_and_nobody_is_forgotten(
    steps: list[tuple[str, int, str, Priority]],
) -> None:
    async def run() -> None:
        gate = gate_of(tokens=100, capacity=4)
        visits: list[tuple[int, Visit]] = []
        for step, number, key, priority in steps:
            if step == "enter":
                visits.append((number, Visit(gate, number, key, priority)))
            elif visits:
                tokens, visit = visits.pop(number % len(visits))
                if step == "leave" and visit.inside.is_set():
                    await visit.end()
                elif step == "leave":
                    visits.append((tokens, visit))
                else:
                    # Cancelled at once, it may have been let in without knowing.
                    visit.task.cancel()
            if step != "cancel_at_once":
                await settle()
                inside = [tokens for tokens, v in visits if v.inside.is_set()]
                assert gate.tokens_in_flight == sum(inside)
                assert gate.in_flight == len(inside)
                assert gate.waiting == len(visits) - len(inside)
                assert inside or not visits
        for _, visit in visits:
            visit.go.set()
        await asyncio.wait_for(asyncio.gather(*(v.task for _, v in visits), return_exceptions=True), 20)
        assert (gate.tokens_in_flight, gate.in_flight, gate.waiting) == (0, 0, 0)

    asyncio.run(run())
