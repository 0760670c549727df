"""What goes wrong at a server, and how the engine gets over it."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from PIL import Image

from fake_openai import Answer, FakeServer, Request
from pagemill.domain import (
    BoundingBox,
    FinishReason,
    PageImage,
    SamplingParams,
    TextLayer,
    TextSpan,
    TextVerdict,
)
from pagemill.domain.errors import (
    EngineTimeoutError,
    EngineUnavailableError,
    PagemillError,
    PageQuarantinedError,
    RequestRejectedError,
)
from pagemill.engines.openai import create_engine
from pagemill.engines.openai.engine import OpenAIEngine
from pagemill.engines.openai.exchange import transport_errors

PARAMS = SamplingParams()


def page(index: int = 0, side: int = 280) -> PageImage:
    buffer = io.BytesIO()
    Image.new("L", (side, side), index % 256).save(buffer, "PNG")
    return PageImage(index, buffer.getvalue(), "image/png", side, side)


def in_chinese(index: int) -> PageImage:
    spans = (
        TextSpan("市议会批准了河流治理项目的第二阶段，工程师将拆除两座废弃的堰坝。", BoundingBox(0, 0, 100, 10), 10.0),
    )
    return replace(page(index), text_layer=TextLayer(TextVerdict.SANE, spans))


def made(*urls: str, **options: Any) -> OpenAIEngine:
    engine = create_engine({"endpoints": urls, **options})
    assert isinstance(engine, OpenAIEngine)
    return engine


@asynccontextmanager
async def engine_on(*servers: FakeServer, **options: Any) -> AsyncIterator[OpenAIEngine]:
    engine = made(*(server.url for server in servers), **options)
    await engine.start()
    try:
        yield engine
    finally:
        await engine.aclose()


async def settled(condition: Callable[[], bool]) -> None:
    for _ in range(500):
        if condition():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it did not settle")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pagemill.engines.openai.endpoints._FIRST_PAUSE_S", 0.02)


async def test_an_engine_that_is_not_running_says_so() -> None:
    engine = made("http://127.0.0.1:9/v1")
    with pytest.raises(EngineUnavailableError, match="not running"):
        await engine.recognize(page(), PARAMS)
    with pytest.raises(EngineUnavailableError, match="not running"):
        async with engine.reserve(1):
            pass


async def test_pages_that_wait_when_the_engine_closes_fail_at_once_and_leave_nothing_behind() -> None:
    before = asyncio.all_tasks()
    async with FakeServer(lambda _request: Answer(hang=True)) as server:
        engine = made(server.url, window={"initial": 2, "fixed": True})
        await engine.start()
        reading = [asyncio.create_task(engine.recognize(page(n), PARAMS)) for n in range(5)]
        await settled(lambda: server.in_flight == 2 and engine.dispatcher.waiting == 3)
        await engine.aclose()
        errors = await asyncio.wait_for(asyncio.gather(*reading, return_exceptions=True), 10)
        assert {type(error) for error in errors} == {EngineUnavailableError}
        assert engine.dispatcher.waiting == 0
        assert engine.endpoints_status()[0].in_flight == 0
        await settled(lambda: server.in_flight == 0)
    await settled(lambda: asyncio.all_tasks() <= before)


async def test_an_engine_that_is_started_again_takes_back_servers_that_were_out() -> None:
    async with FakeServer() as steady:
        gone = FakeServer()
        await gone.__aenter__()
        await gone.__aexit__()
        engine = made(steady.url, gone.url)
        await engine.start()
        assert [status.in_use for status in engine.endpoints_status()] == [True, False]
        await engine.aclose()
        async with FakeServer(port=gone.port):
            await engine.start()
            assert [status.in_use for status in engine.endpoints_status()] == [True, True]
            await engine.aclose()


async def test_starting_twice_at_once_opens_one_set_of_connections() -> None:
    async with FakeServer() as server:
        engine = made(server.url)
        await asyncio.gather(engine.start(), engine.start())
        assert server.asked_for_models == 1
        await engine.aclose()


@asynccontextmanager
async def web_page(body: str) -> AsyncIterator[str]:
    """A server that answers everything with the same text: something else listens on the port."""

    async def answer(_request: web.Request) -> web.Response:
        return web.Response(text=body, content_type="text/html")

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/v1"  # type: ignore[union-attr]
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("body", ["<h1>It works!</h1>", "[]", "null", '{"data": 3}', ""])
async def test_what_is_no_model_server_is_named_at_start(body: str) -> None:
    async with web_page(body) as url:
        engine = made(url)
        with pytest.raises(EngineUnavailableError, match=f"{url}.*list of models"):
            await engine.start()


@pytest.mark.usefixtures("quick")
async def test_a_server_is_waited_for_although_something_else_answers_on_its_port() -> None:
    async with FakeServer() as steady:
        async with web_page("<h1>It works!</h1>") as url:
            engine = made(steady.url, url)
            await engine.start()
            port = int(url.split(":")[2].split("/")[0])
        async with FakeServer(port=port):
            await settled(lambda: all(status.in_use for status in engine.endpoints_status()))
            await engine.aclose()


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_a_replica_that_refuses_every_page_does_not_draw_them_all(status: int) -> None:
    async with (
        FakeServer(lambda _request: Answer(delay_s=0.02)) as good,
        FakeServer(lambda _request: Answer(status=status)) as wrong,
        engine_on(good, wrong) as engine,
    ):
        results = await asyncio.gather(*(engine.recognize(page(n), PARAMS) for n in range(30)))
        assert all(result.ok for result in results)
        assert [state.in_use for state in engine.endpoints_status()] == [True, False]


async def test_the_only_server_s_refusal_is_told_at_once() -> None:
    async with FakeServer(lambda _request: Answer(status=401)) as server, engine_on(server) as engine:
        with pytest.raises(RequestRejectedError, match="refuses the key"):
            await engine.recognize(page(), PARAMS)
        assert engine.endpoints_status()[0].in_use


async def test_a_draining_server_is_no_reason_to_quarantine_a_page() -> None:
    async with (
        FakeServer(lambda _request: Answer(status=500)) as server,
        engine_on(server, transport_attempts=2) as engine,
    ):
        with pytest.raises(EngineUnavailableError):
            await engine.recognize(page(), PARAMS)
    assert len(server.requests) == 2


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("status", [502, 504])
async def test_what_a_proxy_says_of_a_server_that_is_out_quarantines_no_page(status: int) -> None:
    def script(request: Request) -> Answer:
        return Answer(status=status) if request.number < 3 else Answer()

    async with FakeServer(script, health=status) as server, engine_on(server) as engine:
        assert (await engine.recognize(page(), PARAMS)).ok


@pytest.mark.usefixtures("quick")
async def test_suspects_do_not_keep_up_those_of_other_servers() -> None:
    hanging = Answer(hang=True)
    half, answers = FakeServer(lambda _request: hanging), iter([Answer(disconnect_after=1), Answer("whole")])
    async with half, FakeServer(lambda _request: next(answers)) as brain:
        routes = [{"languages": ["zh"], "endpoint": half.url}]
        async with engine_on(half, brain, routes=routes, window={"initial": 1, "fixed": True}) as engine:
            chinese = [asyncio.create_task(engine.recognize(in_chinese(n), PARAMS)) for n in range(2)]
            await settled(lambda: half.in_flight == 1)
            await half.__aexit__()
            await settled(lambda: not engine.endpoints_status()[0].in_use)
            result = await asyncio.wait_for(engine.recognize(page(), PARAMS), 20)
            assert result.markdown == "whole"
            for task in chinese:
                task.cancel()
            await asyncio.gather(*chinese, return_exceptions=True)


@pytest.mark.usefixtures("quick")
async def test_a_page_whose_engine_dies_of_it_twice_is_quarantined() -> None:
    def script(_request: Request) -> Answer:
        server.health = 503
        return Answer(status=500)

    server = FakeServer(script)
    async with server, engine_on(server) as engine:
        reading = asyncio.create_task(engine.recognize(page(), PARAMS))
        await settled(lambda: server.health == 503 and not engine.endpoints_status()[0].in_use)
        server.health = 200
        with pytest.raises(PageQuarantinedError):
            await reading
    assert len(server.requests) == 2


@pytest.mark.usefixtures("quick")
async def test_a_page_meets_one_death_of_an_engine_only_once() -> None:
    def script(request: Request) -> Answer:
        server.health = 503 if request.number == 0 else server.health
        return Answer(status=500) if server.health == 503 else Answer()

    server = FakeServer(script)
    async with server, engine_on(server) as engine:
        reading = asyncio.create_task(engine.recognize(page(), PARAMS))
        await settled(lambda: server.asked_for_models > 3)
        assert len(server.requests) == 1
        server.health = 200
        assert (await reading).ok


@pytest.mark.usefixtures("quick")
async def test_a_broken_connection_alone_sets_no_server_aside() -> None:
    answers = iter([Answer(disconnect_after=1), Answer()])
    async with FakeServer(lambda _request: next(answers)) as server, engine_on(server) as engine:
        asked = server.asked_for_models
        assert (await engine.recognize(page(), PARAMS)).ok
        assert server.asked_for_models == asked


async def test_a_full_server_is_waited_for_beyond_the_tries_of_a_failing_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pagemill.engines.openai.tries._FIRST_PAUSE_S", 0.01)

    def script(request: Request) -> Answer:
        return Answer(status=503) if request.number < 6 else Answer()

    async with FakeServer(script) as server, engine_on(server, transport_attempts=2) as engine:
        assert (await engine.recognize(page(), PARAMS)).ok


async def test_a_server_that_asks_for_a_day_s_patience_is_asked_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pagemill.engines.openai.tries._LONGEST_PAUSE_S", 0.01)
    answers = iter([Answer(status=429, retry_after="86400"), Answer()])
    async with FakeServer(lambda _request: next(answers)) as server, engine_on(server) as engine:
        assert (await asyncio.wait_for(engine.recognize(page(), PARAMS), 20)).ok


@pytest.mark.parametrize("event", ["null", "[]", "3", '{"choices": 3}', '{"choices": [null]}', '{"usage": 5}', "{"])
async def test_events_that_are_none_of_the_api_s_break_the_answer_off(event: str) -> None:
    answers = iter([Answer(raw=f"data: {event}\n\n"), Answer("whole")])
    async with FakeServer(lambda _request: next(answers)) as server, engine_on(server) as engine:
        assert (await engine.recognize(page(), PARAMS)).markdown == "whole"


async def test_an_error_within_the_stream_is_the_error_it_names() -> None:
    refused = 'data: {"error": {"message": "image is too small", "code": 400}}\n\n'
    async with FakeServer(lambda _request: Answer(raw=refused)) as server, engine_on(server) as engine:
        with pytest.raises(RequestRejectedError, match="too small"):
            await engine.recognize(page(), PARAMS)


async def test_the_last_event_counts_without_a_line_s_end() -> None:
    raw = 'data: {"choices": [{"delta": {"content": "all"}, "finish_reason": "stop"}]}'
    async with FakeServer(lambda _request: Answer(raw=raw)) as server, engine_on(server) as engine:
        assert (await engine.recognize(page(), PARAMS)).markdown == "all"


@pytest.mark.parametrize("answer", [Answer(hang=True), Answer(delay_s=60)], ids=["stalls", "never begins"])
async def test_a_silent_server_is_a_timeout_that_leaves_nothing_in_flight(answer: Answer) -> None:
    limits = {"first_token_timeout_s": 0.3, "stall_timeout_s": 0.1, "transport_attempts": 1}
    async with FakeServer(lambda _request: answer) as server, engine_on(server, **limits) as engine:
        with pytest.raises(EngineTimeoutError):
            await engine.recognize(page(), PARAMS)
        await settled(lambda: server.in_flight == 0)
        assert engine.endpoints_status()[0].in_flight == 0


async def test_a_slow_stream_is_no_stall() -> None:
    slow = Answer("word " * 20, token_delay_s=0.1)
    async with FakeServer(lambda _request: slow) as server, engine_on(server, stall_timeout_s=0.9) as engine:
        assert (await engine.recognize(page(), PARAMS)).finish_reason is FinishReason.STOP


@pytest.mark.parametrize("delay_s", [0.0, 0.001, 0.005, 0.01, 0.02, 0.04, 0.08, 0.12, 0.2])
async def test_a_page_may_be_cancelled_at_any_moment(delay_s: float) -> None:
    def script(request: Request) -> Answer:
        return Answer("text " * 50, status=503 if request.number % 3 == 1 else 200, token_delay_s=0.002)

    window = {"initial": 2, "fixed": True}
    async with FakeServer(script) as server, engine_on(server, window=window) as engine:
        tasks = [asyncio.create_task(engine.recognize(page(n), PARAMS)) for n in range(6)]
        await asyncio.sleep(delay_s)
        for task in tasks:
            task.cancel()
        outcomes = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 20)
        assert not [outcome for outcome in outcomes if isinstance(outcome, PagemillError)]
        await settled(lambda: server.in_flight == 0)
        (state,) = engine.endpoints_status()
        assert (state.in_flight, state.tokens_in_flight, engine.dispatcher.waiting) == (0, 0, 0)
        assert (await asyncio.wait_for(engine.recognize(page(), PARAMS), 20)).ok


@pytest.mark.usefixtures("quick")
async def test_a_server_that_comes_back_begins_with_a_narrow_window() -> None:
    async with FakeServer() as server, engine_on(server, window={"initial": 4}) as engine:
        for _ in range(4):
            await asyncio.gather(*(engine.recognize(page(n), PARAMS) for n in range(40)))
            if engine.capacity > 4:
                break
        assert engine.capacity > 4
        for _ in range(3):
            async with engine.reserve(1) as slot:
                slot.failed(EngineUnavailableError("died"))
        assert engine.capacity == 0
        await settled(lambda: engine.capacity > 0)
        assert engine.capacity == 4


async def test_suspects_of_a_dead_server_wait_out_an_outage_together() -> None:
    server = FakeServer(lambda _request: Answer(hang=True))
    await server.__aenter__()
    async with engine_on(server, outage_timeout_s=1.0, window={"initial": 12}) as engine:
        tasks = [asyncio.create_task(engine.recognize(page(n), PARAMS)) for n in range(12)]
        await settled(lambda: server.in_flight == 12)
        await server.__aexit__()
        # One after the other it would take twelve outages.
        outcomes = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 8)
    assert {type(outcome) for outcome in outcomes} == {EngineUnavailableError}


async def test_a_connection_that_is_not_made_in_time_is_no_slow_page() -> None:
    with (
        pytest.raises(EngineUnavailableError, match="http://host/v1 cannot be reached"),
        transport_errors("http://host/v1", "Wait longer."),
    ):
        raise aiohttp.ConnectionTimeoutError("Connection timeout to host")


async def test_each_server_is_asked_as_what_it_is() -> None:
    async with FakeServer() as vllm, FakeServer(version=None) as other, engine_on(vllm, other) as engine:
        await asyncio.gather(*(engine.recognize(page(n), PARAMS) for n in range(8)))
        assert all("repetition_detection" in request.body for request in vllm.requests)
        assert not any("repetition_detection" in request.body for request in other.requests)
        assert vllm.requests
        assert other.requests
        assert "vllm 0.30.0" in engine.capabilities.version


async def test_the_answer_fits_the_context_that_the_server_has() -> None:
    async with FakeServer(context=4096) as server, engine_on(server) as engine:
        await engine.recognize(page(side=280), SamplingParams(max_tokens=4096))
    assert server.requests[0].body["max_tokens"] == 4096 - 100 - 64
