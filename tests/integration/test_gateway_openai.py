"""The gateway as clients of the OpenAI API see it: the official client against a real port, servers that are fake."""

from __future__ import annotations

import asyncio
import base64
import io

import aiohttp
import openai
import pytest
from aiohttp import web
from PIL import Image

from fake_openai import Answer, FakeServer
from fakes import FakeEngine
from gateway_service import engine_of, serving, until
from pagemill.gateway.fetch import FetchOptions

TEXT = "# Page\n\nHello, this is a text of some tokens.\n"


def picture(width=1089, height=1540):
    buffer = io.BytesIO()
    Image.new("L", (width, height), 255).save(buffer, "PNG")
    return buffer.getvalue()


def data_url(data=None):
    return f"data:image/png;base64,{base64.b64encode(data or picture()).decode()}"


def messages(url=None):
    return [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url or data_url()}}]}]


def client_of(service, key="none", **options):
    return openai.AsyncOpenAI(base_url=f"{service.url}/v1", api_key=key, max_retries=0, **options)


@pytest.fixture
async def upstream():
    async with FakeServer(lambda _request: Answer(TEXT)) as server:
        yield server


@pytest.fixture
async def service(upstream, tmp_path):
    async with serving(tmp_path, engine_of(upstream.url), work=False) as service:
        yield service


@pytest.fixture
async def client(service):
    async with client_of(service) as client:
        yield client


async def test_an_answer_comes_back_whole(client, upstream):
    answer = await client.chat.completions.create(model="lightonocr", messages=messages(), max_tokens=4096)
    assert answer.choices[0].message.content == TEXT
    assert answer.choices[0].finish_reason == "stop"


async def test_fields_that_the_gateway_does_not_know_reach_the_server(client, upstream):
    extra = {"repetition_detection": {"min_count": 8}, "vllm_xargs": {"a": 1.5}, "top_k": 0}
    sent = messages()
    sent[0]["content"][0]["uuid"] = "x"
    await client.chat.completions.create(
        model="lightonocr", messages=sent, temperature=0.2, top_p=0.9, extra_body=extra, seed=7
    )
    (request,) = upstream.requests
    assert request.body == {
        "model": "lightonocr",
        "messages": sent,
        "temperature": 0.2,
        "top_p": 0.9,
        "seed": 7,
        **extra,
    }
    assert request.image == picture()


async def test_keys_of_clients_do_not_reach_the_server(upstream, tmp_path):
    async with (
        serving(tmp_path, engine_of(upstream.url, api_key="for the server"), work=False) as service,
        client_of(service, "of the client") as client,
    ):
        await client.chat.completions.create(model="lightonocr", messages=messages())
    assert upstream.requests[0].headers["Authorization"] == "Bearer for the server"


@pytest.mark.parametrize("model", ["default", "pagemill", ""])
async def test_the_model_may_be_left_to_the_service(client, upstream, model):
    await client.chat.completions.create(model=model, messages=messages(), extra_body={"top_k": 0})
    assert upstream.requests[0].body == {"model": "lightonocr", "messages": messages(), "top_k": 0}


async def test_a_stream_comes_back_in_pieces(client):
    stream = await client.chat.completions.create(model="lightonocr", messages=messages(), stream=True)
    pieces = [chunk.choices[0].delta.content async for chunk in stream if chunk.choices]
    assert "".join(piece for piece in pieces if piece) == TEXT
    assert len(pieces) > 2


async def test_pieces_come_before_the_answer_has_ended_and_the_server_learns_that_the_client_has_gone(
    client, upstream, service
):
    upstream.script = lambda _request: Answer(TEXT, hang=True)
    stream = await client.chat.completions.create(model="lightonocr", messages=messages(), stream=True)
    async for chunk in stream:
        assert chunk.choices[0].delta.content == TEXT[:8]
        break
    assert service.services.gate.tokens_in_flight > 2145
    await stream.close()
    await until(lambda: upstream.given_up == 1)
    await until(lambda: service.services.gate.tokens_in_flight == 0)


async def test_a_client_that_goes_before_its_answer_frees_the_server(client, upstream, service):
    upstream.script = lambda _request: Answer(TEXT, delay_s=3600)
    asking = asyncio.create_task(client.chat.completions.create(model="lightonocr", messages=messages()))
    await until(lambda: upstream.in_flight)
    asking.cancel()
    await until(lambda: upstream.given_up == 1)
    await until(lambda: service.services.gate.in_flight == 0)


async def test_a_client_that_goes_while_it_waits_its_turn_leaves_the_queue(upstream, tmp_path):
    upstream.script = lambda _request: Answer(TEXT, delay_s=3600)
    engine = engine_of(upstream.url, window={"initial": 1, "most": 1})
    async with serving(tmp_path, engine, work=False) as service, client_of(service) as client:
        gate = service.services.gate
        asking = [
            asyncio.create_task(client.chat.completions.create(model="lightonocr", messages=messages()))
            for _ in range(2)
        ]
        await until(lambda: upstream.in_flight and gate.waiting == 1)
        for task in asking:
            task.cancel()
        await until(lambda: gate.waiting == 0 and gate.in_flight == 0)
    assert len(upstream.requests) == 1


# Errors


async def test_a_refusal_of_the_server_keeps_its_status_and_its_words(client, upstream):
    upstream.script = lambda _request: Answer(status=400)
    with pytest.raises(openai.BadRequestError, match="as the test wants it") as caught:
        await client.chat.completions.create(model="lightonocr", messages=messages())
    assert caught.value.code == "request_rejected"
    assert caught.value.type == "invalid_request_error"
    assert caught.value.request_id
    assert len(upstream.requests) == 1


async def test_an_unknown_model_is_not_found(client, upstream):
    upstream.script = lambda _request: Answer(status=404)
    with pytest.raises(openai.NotFoundError):
        await client.chat.completions.create(model="other", messages=messages())


async def test_a_wrong_key_of_ours_is_no_fault_of_the_client(client, upstream):
    upstream.script = lambda _request: Answer(status=401)
    with pytest.raises(openai.InternalServerError) as caught:
        await client.chat.completions.create(model="lightonocr", messages=messages())
    assert caught.value.status_code == 502


async def test_keys_are_asked_for(upstream, tmp_path):
    async with serving(tmp_path, engine_of(upstream.url), work=False, auth="required") as service:
        _, key = await service.services.keys.create("alice")
        async with client_of(service, "wrong") as client:
            with pytest.raises(openai.AuthenticationError) as caught:
                await client.chat.completions.create(model="lightonocr", messages=messages())
            assert caught.value.code == "invalid_api_key"
            with pytest.raises(openai.AuthenticationError):
                await client.models.list()
        async with client_of(service, key) as client:
            await client.chat.completions.create(model="lightonocr", messages=messages())
    assert len(upstream.requests) == 1


async def test_the_rate_of_a_key_is_smoothed_and_then_limited(upstream, tmp_path):
    rate = {"per_key": 0.01, "per_key_burst": 1, "max_delay_s": 0.5}
    async with (
        serving(tmp_path, engine_of(upstream.url), work=False, rate=rate) as service,
        client_of(service) as client,
    ):
        await client.chat.completions.create(model="lightonocr", messages=messages())
        with pytest.raises(openai.RateLimitError) as caught:
            await client.models.list()
    assert caught.value.code == "rate_limited"
    assert 90 <= int(caught.value.response.headers["Retry-After"]) <= 100


async def test_a_full_queue_says_how_long_it_is(upstream, tmp_path):
    upstream.script = lambda _request: Answer(TEXT, delay_s=3600)
    engine = engine_of(upstream.url, window={"initial": 1, "most": 1})
    async with serving(tmp_path, engine, work=False, max_waiting=1) as service, client_of(service) as client:
        asking = [
            asyncio.create_task(client.chat.completions.create(model="lightonocr", messages=messages()))
            for _ in range(2)
        ]
        await until(lambda: service.services.gate.waiting == 1)
        with pytest.raises(openai.RateLimitError) as caught:
            await client.chat.completions.create(model="lightonocr", messages=messages())
        assert caught.value.code == "queue_full"
        assert caught.value.response.headers["X-Queue-Length"] == "1"
        assert int(caught.value.response.headers["Retry-After"]) >= 1
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)


async def test_requests_that_wait_are_bounded_in_bytes(upstream, tmp_path):
    upstream.script = lambda _request: Answer(TEXT, delay_s=3600)
    sent = messages(data_url(picture() + bytes(600_000)))
    options = {"work": False, "waiting_bytes": 2**20}
    async with serving(tmp_path, engine_of(upstream.url), **options) as service, client_of(service) as client:
        asking = asyncio.create_task(client.chat.completions.create(model="lightonocr", messages=sent))
        await until(lambda: upstream.in_flight)
        with pytest.raises(openai.RateLimitError, match="too large together"):
            await client.chat.completions.create(model="lightonocr", messages=sent)
        asking.cancel()
        await until(lambda: upstream.given_up == 1)
        upstream.script = lambda _request: Answer(TEXT)
        await client.chat.completions.create(model="lightonocr", messages=sent)


@pytest.mark.parametrize(
    ("url", "error", "code"),
    [
        ("http://127.0.0.1:1/a.png", openai.PermissionDeniedError, "forbidden_url"),
        ("HTTPS://example.com/a.png", openai.PermissionDeniedError, "forbidden_url"),
        ("file:///etc/passwd", openai.PermissionDeniedError, "forbidden_url"),
        (" http://example.com/a.png", openai.PermissionDeniedError, "forbidden_url"),
        ("/etc/passwd", openai.PermissionDeniedError, "forbidden_url"),
        ("data:image/png,abc", openai.UnprocessableEntityError, "invalid_request"),
        ("data:image/png;base64,", openai.APIStatusError, "unsupported_format"),
        ("data:image/png;base64,JVBERi0xLjc=", openai.APIStatusError, "unsupported_format"),
    ],
)
async def test_urls_that_the_server_would_fetch_or_cannot_read_do_not_reach_it(client, upstream, url, error, code):
    with pytest.raises(error) as caught:
        await client.chat.completions.create(model="lightonocr", messages=messages(url))
    assert caught.value.code == code
    assert upstream.requests == []


@pytest.mark.parametrize("kind", ["video_url", "audio_url", "file_url", "image_url"])
async def test_no_kind_of_part_and_no_form_of_it_brings_a_url_to_the_server(client, upstream, kind):
    for part in ({kind: "http://127.0.0.1:1/"}, {"type": kind, kind: {"url": "file:///etc/passwd"}}):
        with pytest.raises(openai.PermissionDeniedError):
            await client.chat.completions.create(
                model="lightonocr", messages=[{"role": "user", "content": [*messages()[0]["content"], part]}]
            )
    assert upstream.requests == []


async def test_pictures_are_fetched_where_the_service_allows_it(upstream, tmp_path):
    async def serve(_request):
        return web.Response(body=picture(), content_type="image/png")

    app = web.Application()
    app.router.add_get("/a.png", serve)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    fetch = FetchOptions(enabled=True, allowed_hosts=(f"127.0.0.1:{port}",), allow_private=True)
    try:
        async with (
            serving(tmp_path, engine_of(upstream.url), work=False, fetch=fetch) as service,
            client_of(service) as client,
        ):
            await client.chat.completions.create(
                model="lightonocr", messages=messages(f"http://127.0.0.1:{port}/a.png"), extra_body={"top_k": 0}
            )
    finally:
        await runner.cleanup()
    assert upstream.requests[0].body == {"model": "lightonocr", "messages": messages(), "top_k": 0}


# Servers that fail


def failing_first(times, **failure):
    """Fails so many times, then answers."""
    return lambda request: Answer(TEXT, **failure) if request.number < times else Answer(TEXT)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "failure",
    [
        {"status": 500},
        {"status": 503, "retry_after": "0"},
        {"status": 429, "retry_after": "0"},
        {"disconnect_after": 0},
    ],
    ids=["died", "full", "limited", "broken off"],
)
async def test_a_request_is_sent_again_while_nothing_has_gone_out(client, upstream, failure, stream):
    upstream.script = failing_first(1, **failure)
    answer = await client.chat.completions.create(model="lightonocr", messages=messages(), stream=stream)
    if stream:
        pieces = [chunk.choices[0].delta.content or "" async for chunk in answer if chunk.choices]
        assert "".join(pieces) == TEXT
    else:
        assert answer.choices[0].message.content == TEXT


async def test_another_server_takes_over_from_one_that_is_gone(upstream, tmp_path):
    other = await FakeServer(lambda _request: Answer(TEXT)).__aenter__()
    async with (
        serving(tmp_path, engine_of(other.url, upstream.url), work=False) as service,
        client_of(service) as client,
    ):
        await other.__aexit__()
        for _ in range(6):
            answer = await client.chat.completions.create(model="lightonocr", messages=messages())
            assert answer.choices[0].message.content == TEXT
    assert len(upstream.requests) == 6


async def test_a_server_that_drains_is_no_server_that_died(client, upstream):
    # Its /health stays 200, and what is new is answered 500.
    upstream.script = failing_first(3, status=500)
    answer = await client.chat.completions.create(model="lightonocr", messages=messages())
    assert answer.choices[0].message.content == TEXT


async def test_a_server_that_takes_no_key_of_ours_draws_no_requests(upstream, tmp_path):
    async with (
        FakeServer(lambda _request: Answer(status=401)) as other,
        serving(tmp_path, engine_of(other.url, upstream.url), work=False) as service,
        client_of(service) as client,
    ):
        for _ in range(6):
            answer = await client.chat.completions.create(model="lightonocr", messages=messages())
            assert answer.choices[0].message.content == TEXT
        assert len(other.requests) <= 1


async def test_a_request_that_servers_die_of_is_not_sent_a_third_time(client, upstream):
    upstream.script = lambda _request: Answer(kill=True)
    with pytest.raises(openai.InternalServerError) as caught:
        await client.chat.completions.create(model="lightonocr", messages=messages())
    assert caught.value.code == "page_quarantined"
    assert len(upstream.requests) == 2


async def test_servers_that_stay_full_are_told_with_a_time(client, upstream):
    upstream.script = lambda _request: Answer(status=503, retry_after="0")
    with pytest.raises(openai.InternalServerError) as caught:
        await client.chat.completions.create(model="lightonocr", messages=messages())
    assert (caught.value.status_code, caught.value.code) == (503, "engine_overloaded")
    assert int(caught.value.response.headers["Retry-After"]) >= 1


async def test_a_stream_that_breaks_off_ends_with_an_error_and_never_as_if_it_were_whole(client, upstream):
    upstream.script = lambda _request: Answer(TEXT, disconnect_after=2)
    stream = await client.chat.completions.create(model="lightonocr", messages=messages(), stream=True)
    read = [(await anext(stream)).choices[0].delta.content for _ in range(2)]
    with pytest.raises(openai.APIError, match="broke"):
        await anext(stream)
    assert "".join(read) == TEXT[:16]
    assert len(upstream.requests) == 1


@pytest.mark.parametrize("stream", [False, True])
async def test_what_a_server_gives_up_as_it_stops_is_no_answer(client, upstream, stream):
    upstream.script = failing_first(1, finish_reason="abort", token_delay_s=0.02 * stream)
    if stream:
        answer = await client.chat.completions.create(model="lightonocr", messages=messages(), stream=True)
        with pytest.raises(openai.APIError, match="shutting down"):
            _ = [chunk async for chunk in answer]
    else:
        answer = await client.chat.completions.create(model="lightonocr", messages=messages())
        assert answer.choices[0].finish_reason == "stop"
        assert len(upstream.requests) == 2


async def test_an_error_inside_a_stream_that_has_not_begun_is_an_error_of_its_own(upstream, tmp_path):
    async def answer(request):
        event = b'data: {"error": {"message": "context too long", "type": "BadRequestError", "code": 400}}\n\n'
        return web.Response(body=event, content_type="text/event-stream")

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    app.router.add_get("/v1/models", upstream._models)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    try:
        async with serving(tmp_path, engine_of(url), work=False) as service, client_of(service) as client:
            with pytest.raises(openai.UnprocessableEntityError, match="context too long"):
                await client.chat.completions.create(model="lightonocr", messages=messages(), stream=True)
    finally:
        await runner.cleanup()


# The rest


async def test_models_are_listed_and_found(client):
    (model,) = (await client.models.list()).data
    assert (model.id, model.object) == ("lightonocr", "model")
    assert isinstance(model.created, int)
    assert model.max_model_len == 16384
    assert (await client.models.retrieve("lightonocr")).id == "lightonocr"
    with pytest.raises(openai.NotFoundError):
        await client.models.retrieve("lightonai/other")


async def test_an_engine_without_servers_has_a_model_and_says_what_it_cannot(tmp_path):
    async with serving(tmp_path, FakeEngine(), work=False) as service, client_of(service) as client:
        assert [model.id for model in (await client.models.list()).data] == ["pagemill-fake"]
        with pytest.raises(openai.InternalServerError, match="/v1/ocr") as caught:
            await client.chat.completions.create(model="pagemill-fake", messages=messages())
    assert (caught.value.status_code, caught.value.code) == (501, "not_supported")


async def test_before_the_servers_have_started_the_service_says_so(tmp_path):
    async with FakeServer() as upstream:
        url = upstream.url
    async with serving(tmp_path, engine_of(url), work=False) as service, client_of(service) as client:
        for call in (client.models.list, lambda: client.chat.completions.create(model="x", messages=messages())):
            with pytest.raises(openai.InternalServerError) as caught:
                await call()
            assert (caught.value.status_code, caught.value.code) == (503, "engine_unavailable")


async def test_a_server_that_starts_after_the_service_is_used(tmp_path):
    async with FakeServer(lambda _request: Answer(TEXT)) as upstream:
        port = upstream.port
    async with (
        serving(tmp_path, engine_of(upstream.url), work=False) as service,
        FakeServer(lambda _request: Answer(TEXT), port=port),
        client_of(service) as client,
    ):
        await until(lambda: service.services.engine.model)
        answer = await client.chat.completions.create(model="default", messages=messages())
        assert answer.choices[0].message.content == TEXT


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"messages": "x"}',
        b'{"messages": []}',
        b'{"messages": [1]}',
        b'{"model": 1, "messages": [{}]}',
        b'{"messages": ' + b"[" * 100_000,
        b'{"messages": [' + b"1," * 300_000 + b"1]}",
        b"\xff",
    ],
    ids=lambda body: str(body[:20]),
)
async def test_bodies_that_are_no_chat_request_are_refused(service, upstream, body):
    async with aiohttp.ClientSession() as session:
        headers = {"Content-Type": "application/json"}
        async with session.post(f"{service.url}/v1/chat/completions", data=body, headers=headers) as answer:
            assert answer.status == 422
            assert (await answer.json())["error"]["code"] == "invalid_request"
    assert upstream.requests == []


async def test_tokens_are_counted(client, service):
    stream = await client.chat.completions.create(model="lightonocr", messages=messages(), stream=True)
    _ = [chunk async for chunk in stream]
    metrics = service.services.metrics.render().decode()
    assert 'pagemill_chat_tokens_total{kind="prompt"} 100.0' in metrics
    assert 'pagemill_chat_tokens_total{kind="completion"} 6.0' in metrics


async def test_a_synchronous_client_works_as_well(service):
    def ask():
        with openai.OpenAI(base_url=f"{service.url}/v1", api_key="none", max_retries=0) as client:
            return client.chat.completions.create(model="lightonocr", messages=messages())

    answer = await asyncio.to_thread(ask)
    assert answer.choices[0].message.content == TEXT
