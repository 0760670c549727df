from __future__ import annotations

import asyncio

import pytest

from fakes import FakeEngine
from pagemill.domain import PageImage, PageResult, SamplingParams, Usage
from pagemill.domain.errors import EngineError, EngineOverloadedError
from pagemill.engines.openai.tokens import image_tokens
from pagemill.engines.page_clock import within
from pagemill.jobs.gate import Gate
from pagemill.jobs.gated_engine import GatedEngine

PAGE = PageImage(index=0, data=b"image", media_type="image/png", width=560, height=840)
PARAMS = SamplingParams()


class CountingEngine(FakeEngine):
    """Says how many tokens its answers have, and waits until it is told to go on."""

    def __init__(self, completion_tokens: int = 0) -> None:
        super().__init__()
        self.completion_tokens = completion_tokens
        self.go = asyncio.Event()

    async def recognize(self, page: PageImage, params: SamplingParams) -> PageResult:
        await self.go.wait()
        self.behaviour(page)
        return PageResult(page.index, "text", usage=Usage(0, self.completion_tokens))


def gate_of(capacity: int = 1, **arguments: int) -> Gate:
    return Gate(100_000, capacity=lambda: capacity, **arguments)


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_page_holds_its_turn_for_as_long_as_it_is_read() -> None:
    engine, gate = CountingEngine(), gate_of()
    gated = GatedEngine(engine, gate)
    first, second = (asyncio.create_task(gated.recognize(PAGE, PARAMS)) for _ in range(2))
    await settle()
    assert (gate.in_flight, gate.waiting) == (1, 1)
    assert gate.tokens_in_flight == image_tokens(PAGE.width, PAGE.height) + gated.answer_tokens
    engine.go.set()
    await asyncio.gather(first, second)
    assert (gate.in_flight, gate.tokens_in_flight, gate.waiting) == (0, 0, 0)


async def test_a_page_that_fails_gives_its_turn_back() -> None:
    def fail(_page: PageImage) -> None:
        raise EngineError("no")

    engine, gate = CountingEngine(), gate_of()
    engine.behaviour = fail
    engine.go.set()
    with pytest.raises(EngineError, match="no"):
        await GatedEngine(engine, gate).recognize(PAGE, PARAMS)
    assert (gate.in_flight, gate.tokens_in_flight) == (0, 0)


async def test_a_full_queue_is_an_overloaded_engine_to_those_who_know_engines() -> None:
    engine, gate = CountingEngine(), gate_of(max_waiting=0)
    with pytest.raises(EngineOverloadedError, match="wait for the engine") as caught:
        await GatedEngine(engine, gate).recognize(PAGE, PARAMS)
    assert caught.value.retry_after == gate.retry_after


async def test_the_time_before_the_gate_does_not_count_as_the_pages() -> None:
    engine, gate = CountingEngine(), gate_of()
    gated = GatedEngine(engine, gate)
    async with gate.enter(1):
        waits = asyncio.create_task(within(0.02, gated.recognize(PAGE, PARAMS)))
        for _ in range(20):
            await asyncio.sleep(0.01)
        assert not waits.done()
        engine.go.set()
    assert (await waits).markdown == "text"


async def test_the_length_of_answers_is_learnt_and_never_foreseen_beyond_their_bound() -> None:
    engine, gate = CountingEngine(completion_tokens=200), gate_of()
    engine.go.set()
    gated = GatedEngine(engine, gate)
    before = gated.answer_tokens
    for _ in range(200):
        await gated.recognize(PAGE, PARAMS)
    assert before > 2 * gated.answer_tokens
    assert gated.answer_tokens == pytest.approx(200, rel=0.05)
    engine.go.clear()
    reading = asyncio.create_task(gated.recognize(PAGE, SamplingParams(max_tokens=10)))
    await settle()
    assert gate.tokens_in_flight == image_tokens(PAGE.width, PAGE.height) + 10
    engine.go.set()
    await reading
