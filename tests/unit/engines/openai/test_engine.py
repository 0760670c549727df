from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from PIL import Image

from fake_openai import Answer, FakeServer, Request
from pagemill.api import choose_engine
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
    ConfigurationError,
    EngineOverloadedError,
    EngineTimeoutError,
    EngineUnavailableError,
    PageQuarantinedError,
    RequestRejectedError,
)
from pagemill.engines.openai import create_engine
from pagemill.engines.openai.engine import OpenAIEngine
from pagemill.engines.page_clock import within

PARAMS = SamplingParams()


def page(index: int = 0, width: int = 280, height: int = 280) -> PageImage:
    buffer = io.BytesIO()
    Image.new("L", (width, height), index % 256).save(buffer, "PNG")
    return PageImage(index, buffer.getvalue(), "image/png", width, height)


@asynccontextmanager
async def engine_on(*servers: FakeServer, **options: Any) -> AsyncIterator[OpenAIEngine]:
    engine = create_engine({"endpoints": [server.url for server in servers], **options})
    assert isinstance(engine, OpenAIEngine)
    await engine.start()
    try:
        yield engine
    finally:
        await engine.aclose()


async def settled(condition: Callable[[], bool]) -> None:
    for _ in range(200):
        if condition():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it did not settle")


async def test_the_request_is_the_image_alone_with_the_card_s_sampling() -> None:
    async with FakeServer() as server, engine_on(server) as engine:
        image = page()
        result = await engine.recognize(image, PARAMS)
    (request,) = server.requests
    assert result.ok
    assert result.markdown == "# Page\n\nHello.\n"
    assert result.usage.completion_tokens == 2
    assert request.image == image.data
    assert [part["type"] for part in request.body["messages"][0]["content"]] == ["image_url"]
    assert len(request.body["messages"]) == 1
    assert (request.body["temperature"], request.body["top_p"], request.body["max_tokens"]) == (0.2, 0.9, 4096)
    assert "repetition_detection" in request.body
    assert "repetition_penalty" not in request.body


async def test_servers_that_are_not_vllm_get_no_fields_of_vllm() -> None:
    async with FakeServer(version=None) as server, engine_on(server) as engine:
        await engine.recognize(page(), PARAMS)
    assert "repetition_detection" not in server.requests[0].body


async def test_the_key_is_sent_and_shows_nowhere() -> None:
    async with FakeServer() as server, engine_on(server, api_key="sk-very-secret") as engine:
        await engine.recognize(page(), PARAMS)
        assert server.requests[0].headers["Authorization"] == "Bearer sk-very-secret"
        assert "very-secret" not in repr(engine._options)


@pytest.mark.parametrize("reason", ["length", "repetition"])
async def test_only_stop_is_success(reason: str) -> None:
    async with FakeServer(lambda _: Answer("half a page", reason)) as server, engine_on(server) as engine:
        result = await engine.recognize(page(), PARAMS)
    assert not result.ok
    assert result.finish_reason is FinishReason(reason)
    assert result.markdown == "half a page"


async def test_a_loop_is_left_early_and_the_text_before_it_kept() -> None:
    text = "# Report\n\nA first paragraph of the page.\n\n" + "And so it goes on and on. " * 2000
    answer = Answer(text, token_delay_s=0.0005)
    async with FakeServer(lambda _: answer) as server, engine_on(server) as engine:
        result = await engine.recognize(page(), PARAMS)
        await settled(lambda: server.in_flight == 0)
    assert result.finish_reason is FinishReason.REPETITION
    assert result.markdown.startswith("# Report\n\nA first paragraph of the page.\n\nAnd so it goes on and on. ")
    assert len(result.markdown) < 200
    assert server.given_up == 1


async def test_a_full_server_is_asked_again_when_it_says() -> None:
    answers = iter([Answer(status=503, retry_after="0"), Answer(status=429, retry_after="0"), Answer()])
    async with FakeServer(lambda _: next(answers)) as server, engine_on(server) as engine:
        assert (await engine.recognize(page(), PARAMS)).ok
    assert len(server.requests) == 3


async def test_a_server_that_stays_full_is_an_error_with_its_words() -> None:
    full = Answer(status=503, retry_after="0")
    async with FakeServer(lambda _: full) as server, engine_on(server, outage_timeout_s=0.3) as engine:
        with pytest.raises(EngineOverloadedError, match="503: as the test wants it"):
            await engine.recognize(page(), PARAMS)
    assert len(server.requests) > 1


@pytest.mark.parametrize(
    "first",
    [
        Answer(status=500),
        Answer("half", finish_reason="abort"),
        Answer("cut before its end", finish_reason=None),
        Answer("a longer text that is cut", disconnect_after=2),
    ],
    ids=["500", "abort", "no end", "disconnect"],
)
async def test_what_the_server_breaks_off_is_asked_again_and_never_returned(first: Answer) -> None:
    answers = iter([first, Answer("whole")])
    async with FakeServer(lambda _: next(answers)) as server, engine_on(server) as engine:
        assert (await engine.recognize(page(), PARAMS)).markdown == "whole"


@pytest.mark.parametrize("status", [400, 401, 404, 413, 501])
async def test_a_refused_page_is_not_sent_again(status: int) -> None:
    async with FakeServer(lambda _: Answer(status=status)) as server, engine_on(server) as engine:
        with pytest.raises(RequestRejectedError):
            await engine.recognize(page(), PARAMS)
    assert len(server.requests) == 1


async def test_a_server_that_stalls_is_a_timeout() -> None:
    options = {"stall_timeout_s": 0.1, "transport_attempts": 2}
    async with FakeServer(lambda _: Answer(hang=True)) as server, engine_on(server, **options) as engine:
        with pytest.raises(EngineTimeoutError):
            await engine.recognize(page(), PARAMS)
        await settled(lambda: server.in_flight == 0)


async def test_a_cancelled_page_leaves_the_server() -> None:
    async with FakeServer(lambda _: Answer(hang=True)) as server, engine_on(server) as engine:
        task = asyncio.create_task(engine.recognize(page(), PARAMS))
        await settled(lambda: server.in_flight == 1)
        task.cancel()
        await settled(lambda: server.in_flight == 0)
        assert engine.dispatcher.endpoints[0].busy == 0


async def test_the_window_keeps_within_what_a_server_takes() -> None:
    def script(_request: Request) -> Answer:
        return Answer(delay_s=0.02)

    async with FakeServer(script, capacity=6) as server, engine_on(server, transport_attempts=50) as engine:
        results = await asyncio.gather(*(engine.recognize(page(i), PARAMS) for i in range(60)))
    assert all(result.ok for result in results)
    assert server.most_in_flight <= 6


async def test_two_servers_share_the_work_and_one_that_dies_is_left_alone() -> None:
    async with FakeServer(lambda _: Answer(delay_s=0.01)) as good:
        dying = FakeServer(lambda _: Answer(delay_s=0.01))
        await dying.__aenter__()
        async with engine_on(good, dying) as engine:
            first = await asyncio.gather(*(engine.recognize(page(i), PARAMS) for i in range(40)))
            assert len(dying.requests) >= 10
            await dying.__aexit__()
            second = await asyncio.gather(*(engine.recognize(page(i), PARAMS) for i in range(40)))
            assert all(result.ok for result in first + second)
            states = {endpoint.url: endpoint.set_aside for endpoint in engine.dispatcher.endpoints}
            assert states == {good.url: False, dying.url: True}
            # It comes back on the same port and is used again.
            again = FakeServer(lambda _: Answer(delay_s=0.01), port=dying.port)
            async with again:
                await settled(lambda: not engine.dispatcher.endpoints[1].set_aside)
                await asyncio.gather(*(engine.recognize(page(i), PARAMS) for i in range(40)))
                assert again.requests


async def test_a_page_that_kills_the_server_twice_is_quarantined_and_the_rest_goes_on() -> None:
    poison = page(7)

    def script(request: Request) -> Answer:
        return Answer(kill=True, delay_s=0.05) if request.image == poison.data else Answer(delay_s=0.1)

    async with FakeServer(script) as server, engine_on(server) as engine:
        pages = [page(number) for number in range(12)]
        results = await asyncio.gather(*(engine.recognize(item, PARAMS) for item in pages), return_exceptions=True)
    failed = {number: error for number, error in enumerate(results) if isinstance(error, BaseException)}
    assert list(failed) == [7]
    assert isinstance(failed[7], PageQuarantinedError)
    assert sum(request.image == poison.data for request in server.requests) == 2


async def test_an_outage_makes_pages_wait_and_then_fail() -> None:
    server = FakeServer()
    await server.__aenter__()
    options = {"outage_timeout_s": 0.3, "transport_attempts": 10}
    async with engine_on(server, **options) as engine:
        await server.__aexit__()
        with pytest.raises(EngineUnavailableError, match="No server has answered"):
            await engine.recognize(page(), PARAMS)


async def test_pages_of_a_language_go_to_their_server() -> None:
    async with FakeServer() as half, FakeServer() as brain:
        routes = [{"languages": ["zh", "ja"], "endpoint": half.url}]
        async with engine_on(half, brain, routes=routes, languages=["zh"]) as engine:
            await engine.recognize(page(), PARAMS)
        async with engine_on(half, brain, routes=routes) as engine:
            await engine.recognize(page(), PARAMS)
    assert (len(half.requests), len(brain.requests)) == (1, 1)


def with_text(text: str) -> PageImage:
    spans = (TextSpan(text, BoundingBox(0, 0, 100, 10), 10.0),)
    return replace(page(), text_layer=TextLayer(TextVerdict.SANE, spans))


CHINESE = "市议会批准了河流治理项目的第二阶段，工程师将拆除两座废弃的堰坝。"
ENGLISH = "The council approved the second phase of the project, and the weirs of the river are removed."


async def test_the_text_layer_tells_the_language() -> None:
    async with FakeServer() as half, FakeServer() as brain:
        routes = [{"languages": ["zh", "ja"], "endpoint": half.url}]
        async with engine_on(half, brain, routes=routes) as engine:
            assert engine.capabilities.wants_text_layer
            await engine.recognize(with_text(CHINESE), PARAMS)
            await engine.recognize(with_text(ENGLISH), PARAMS)
    assert (len(half.requests), len(brain.requests)) == (1, 1)


async def test_a_first_reading_tells_the_language_where_nothing_else_does() -> None:
    async with FakeServer(lambda _: Answer("better")) as half, FakeServer(lambda _: Answer(CHINESE)) as brain:
        routes = [{"languages": ["zh", "ja"], "endpoint": half.url}]
        async with engine_on(half, brain, routes=routes) as engine:
            result = await engine.recognize(page(), PARAMS)
    assert result.markdown == "better"
    assert result.usage.prompt_tokens == 200


async def test_small_pages_do_not_stand_behind_large_ones() -> None:
    order: list[int] = []

    def script(request: Request) -> Answer:
        order.append(len(request.image))
        return Answer(delay_s=0.02)

    window = {"initial": 4, "fixed": True}
    async with FakeServer(script) as server, engine_on(server, window=window) as engine:
        large = [asyncio.create_task(engine.recognize(page(i, 2800, 2800), PARAMS)) for i in range(20)]
        await asyncio.sleep(0.01)
        small = [asyncio.create_task(engine.recognize(page(i, 56, 56), PARAMS)) for i in range(8)]
        await asyncio.gather(*small)
        assert sum(task.done() for task in large) <= 12
        await asyncio.gather(*large)


async def test_the_answer_is_bounded_by_the_context() -> None:
    async with FakeServer() as server, engine_on(server) as engine:
        await engine.recognize(page(0, 1540, 1540), SamplingParams(max_tokens=16_384))
    assert server.requests[0].body["max_tokens"] == 16_384 - 3025 - 64


async def test_a_request_of_others_shares_the_window_and_the_balancing() -> None:
    async with (
        FakeServer() as one,
        FakeServer() as two,
        engine_on(one, two, window={"initial": 1, "fixed": True}, api_key="hunter2") as engine,
    ):
        async with engine.reserve(100) as first, engine.reserve(100, 2000) as second:
            assert {first.url, second.url} == {one.url, two.url}
            assert [(s.in_use, s.in_flight, s.window) for s in engine.endpoints_status()] == [(True, 1, 1)] * 2
            third = asyncio.create_task(engine.recognize(page(), PARAMS))
            await settled(lambda: engine.dispatcher.waiting == 1)
            async with first.session.get(f"{first.url}/models") as response:
                assert response.status == 200
            first.succeeded(10)
        assert (await third).ok
        assert [s.in_flight for s in engine.endpoints_status()] == [0, 0]
        assert sum(s.completed for s in engine.endpoints_status()) == 2


async def test_a_reservation_is_given_back_whatever_happens() -> None:
    async with FakeServer() as server, engine_on(server, window={"initial": 1, "fixed": True}) as engine:
        with pytest.raises(ValueError, match="inside"):
            async with engine.reserve(100):
                raise ValueError("inside")
        async with engine.reserve(100):
            waiting = asyncio.create_task(engine.reserve(100).__aenter__())
            await settled(lambda: engine.dispatcher.waiting == 1)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            assert engine.dispatcher.waiting == 0
        assert engine.endpoints_status()[0].in_flight == 0


async def test_a_server_that_fails_others_is_set_aside() -> None:
    async with FakeServer() as server, engine_on(server) as engine:
        for _ in range(3):
            async with engine.reserve(100) as slot:
                slot.failed(EngineUnavailableError("gone"))
        assert not engine.endpoints_status()[0].in_use
        assert engine.capacity == 0


async def test_user_and_password_of_a_url_are_sent_and_shown_nowhere() -> None:
    async with FakeServer() as server:
        url = server.url.replace("://", "://anna:hunter%402@")
        engine = create_engine({"endpoints": [url]})
        assert isinstance(engine, OpenAIEngine)
        await engine.start()
        await engine.recognize(page(), PARAMS)
        await engine.aclose()
        assert server.requests[0].headers["Authorization"] == "Basic YW5uYTpodW50ZXJAMg=="
        assert engine.endpoints_status()[0].url == server.url
    with pytest.raises(EngineUnavailableError) as caught:
        await engine.start()
    assert "hunter" not in str(caught.value)
    assert "hunter" not in choose_engine("auto", [url]).reason


async def test_a_server_that_comes_back_with_another_model_gets_no_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pagemill.engines.openai.endpoints._FIRST_PAUSE_S", 0.01)
    async with FakeServer() as good:
        gone = FakeServer()
        async with gone:
            pass
        async with engine_on(good, gone) as engine:
            assert [state.in_use for state in engine.endpoints_status()] == [True, False]
            async with FakeServer(model="another", port=gone.port) as other:
                await settled(lambda: other.asked_for_models >= 2)
                assert [state.in_use for state in engine.endpoints_status()] == [True, False]
                other.model = good.model
                await settled(lambda: engine.endpoints_status()[1].in_use)


@pytest.mark.parametrize("status", [408, 425])
async def test_a_server_that_asks_for_patience_is_asked_again(status: int) -> None:
    answers = iter([Answer(status=status, retry_after="0"), Answer()])
    async with FakeServer(lambda _request: next(answers)) as server, engine_on(server) as engine:
        assert (await engine.recognize(page(), PARAMS)).ok
    assert len(server.requests) == 2


async def test_an_upgraded_server_does_not_make_pages_anew() -> None:
    async with FakeServer(version="0.30.0") as old, engine_on(old) as before:
        fingerprint = before.capabilities.fingerprint
    async with FakeServer(version="0.33.0") as new, engine_on(new) as after:
        assert after.capabilities.fingerprint == fingerprint
        assert "0.33.0" in after.capabilities.version


async def test_a_page_that_waits_its_turn_is_not_late() -> None:
    async with (
        FakeServer(lambda _request: Answer(delay_s=0.2)) as server,
        engine_on(server, window={"initial": 1, "fixed": True}) as engine,
    ):
        results = await asyncio.gather(*(within(0.6, engine.recognize(page(n), PARAMS)) for n in range(8)))
    assert all(result.ok for result in results)


async def test_start_tells_what_is_wrong() -> None:
    async with FakeServer(model="other") as server:
        with pytest.raises(ConfigurationError, match="does not serve 'lightonocr' but other"):
            async with engine_on(server, model="lightonocr"):
                pass
        url = server.url
    engine = create_engine({"endpoints": [url]})
    with pytest.raises(EngineUnavailableError, match="No server answers"):
        await engine.start()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "endpoints"),
        ({"endpoints": ["ftp://x"]}, "no http"),
        ({"endpoints": ["x:1"], "windw": 3}, "windw"),
        ({"endpoints": ["x:1"], "routes": [{"languages": ["zh"], "endpoint": "y:2"}]}, "no endpoint"),
        ({"endpoints": ["x:1"], "classes": [{"name": "a", "share": 0.7}, {"name": "b", "share": 0.7}]}, "more than 1"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        create_engine(options)
