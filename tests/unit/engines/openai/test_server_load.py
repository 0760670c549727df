from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from fake_openai import Answer, FakeServer
from pagemill.domain import PageImage, SamplingParams
from pagemill.engines.openai import create_engine
from pagemill.engines.openai.engine import OpenAIEngine
from pagemill.engines.openai.server_load import read_load

PAGE = PageImage(0, b"png", "image/png", 280, 280)
METRICS = """\
# HELP vllm:num_requests_waiting Number of requests waiting to be processed.
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="lightonocr"} 3.0
vllm:num_requests_waiting{engine="1",model_name="lightonocr"} 4.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="lightonocr",reason="capacity"} 3.0
vllm:num_preemptions_total{engine="0",model_name="lightonocr"} 2.0
vllm:num_preemptions_created{engine="0",model_name="lightonocr"} 1.7e+09
"""


def test_engines_of_one_server_are_added_up() -> None:
    assert read_load(METRICS) == (7.0, 2.0)


def test_what_is_no_vllm_tells_nothing() -> None:
    assert read_load("llamacpp:requests_deferred 3\nprocess_cpu_seconds_total 1\n") is None


async def settled(condition: Callable[[], bool]) -> None:
    for _ in range(400):
        if condition():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it did not settle")


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pagemill.engines.openai.server_load._INTERVAL_S", 0.02)


async def engine_on(server: FakeServer) -> OpenAIEngine:
    engine = create_engine({"endpoints": [server.url], "window": {"initial": 30}})
    assert isinstance(engine, OpenAIEngine)
    await engine.start()
    return engine


@pytest.mark.parametrize("sign", ["waiting", "preemptions"])
async def test_the_window_shrinks_when_the_server_queues_or_preempts(sign: str) -> None:
    async with FakeServer(lambda _request: Answer(delay_s=30), waiting=0) as server:
        engine = await engine_on(server)
        reading = asyncio.create_task(engine.recognize(PAGE, SamplingParams()))
        await settled(lambda: server.looks >= 3)
        assert engine.capacity == 30
        setattr(server, sign, 10)
        await settled(lambda: engine.capacity == 20)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        await engine.aclose()


async def test_an_idle_server_and_one_without_metrics_are_left_in_peace() -> None:
    async with FakeServer(lambda _request: Answer(delay_s=0.4)) as server:
        engine = await engine_on(server)
        await engine.recognize(PAGE, SamplingParams())
        await engine.recognize(PAGE, SamplingParams())
        assert server.looks == 3
        assert engine.capacity == 30
        await engine.aclose()


async def test_the_server_s_queue_is_told_while_it_works_and_forgotten_after() -> None:
    async with FakeServer(lambda _request: Answer(delay_s=30), waiting=7) as server:
        engine = await engine_on(server)
        reading = asyncio.create_task(engine.recognize(PAGE, SamplingParams()))
        await settled(lambda: engine.endpoints_status()[0].waiting == 7)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        await settled(lambda: engine.endpoints_status()[0].waiting == 0)
        looks = server.looks
        await asyncio.sleep(0.1)
        assert server.looks == looks
        await engine.aclose()


async def test_a_server_that_is_silent_for_a_while_is_looked_at_again() -> None:
    async with FakeServer(lambda _request: Answer(delay_s=30), waiting=0) as server:
        server.metrics_break = True
        engine = await engine_on(server)
        reading = asyncio.create_task(engine.recognize(PAGE, SamplingParams()))
        await settled(lambda: server.looks >= 5)
        server.metrics_break, server.waiting = False, 9
        await settled(lambda: engine.endpoints_status()[0].waiting == 9)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        await engine.aclose()
