from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Message, Receive, Scope, Send

from pagemill.gateway.limits import BodyLimits
from pagemill.gateway.options import LimitOptions

LIMITS = LimitOptions(body_bytes=2000, json_bytes=3000, body_idle_s=30, body_total_s=30)


async def count(scope: Scope, receive: Receive, send: Send) -> None:
    body = await Request(scope, receive).body()
    await JSONResponse({"bytes": len(body)})(scope, receive, send)


async def hide(scope: Scope, receive: Receive, send: Send) -> None:
    """Does as frameworks do that answer 400 whatever is wrong with a body."""
    try:
        await Request(scope, receive).body()
    except Exception:  # noqa: BLE001
        await JSONResponse({"detail": "bad"}, status_code=400)(scope, receive, send)


async def ask(
    chunks: Iterable[bytes],
    headers: dict[str, str] | None = None,
    limits: LimitOptions = LIMITS,
    app: Callable[..., Any] = count,
    *,
    ends: bool = True,
) -> tuple[int, Any]:
    """Status and JSON of the answer to a body in these chunks, which `ends` or hangs."""
    messages: list[Message] = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]
    if ends:
        messages.append({"type": "http.request", "body": b"", "more_body": False})
    waiting = iter(messages)
    sent: list[Message] = []

    async def receive() -> Message:
        for message in waiting:
            return message
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/",
        "headers": [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()],
    }
    await BodyLimits(app, limits)(scope, receive, send)
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    return sent[0]["status"], json.loads(sent[1]["body"])


async def test_bodies_within_the_limits_pass() -> None:
    assert await ask([b"x" * 1000, b"x" * 1000]) == (200, {"bytes": 2000})


async def test_json_may_be_larger_as_base64_is() -> None:
    assert (await ask([b"x" * 3000], {"Content-Type": "application/json; charset=utf-8"}))[0] == 200
    assert (await ask([b"x" * 3000], {"Content-Type": "application/pdf"}))[0] == 413


@pytest.mark.parametrize("length", ["2001", "9" * 30])
async def test_a_length_over_the_limit_is_refused_before_any_byte(length: str) -> None:
    status, answer = await ask([], {"Content-Length": length}, ends=False)
    assert (status, answer["error"]["code"]) == (413, "body_too_large")
    assert "gateway.limits.body_bytes" in answer["error"]["remedy"]


@pytest.mark.parametrize("length", ["-1", "1e3", "²", ""])
async def test_a_length_that_is_none_is_refused(length: str) -> None:
    scope_headers = {"Content-Length": length.encode("utf-8").decode("latin-1")}
    status, answer = await ask([], scope_headers, ends=False)
    assert (status, answer["error"]["code"]) == (422, "invalid_request")


@pytest.mark.parametrize("app", [count, hide])
async def test_bytes_are_counted_as_they_come(app: Callable[..., Any]) -> None:
    status, answer = await ask([b"x" * 1000] * 3, {"Content-Length": "10"}, app=app, ends=False)
    assert (status, answer["error"]["code"]) == (413, "body_too_large")


@pytest.mark.parametrize("app", [count, hide])
@pytest.mark.parametrize("limits", [{"body_idle_s": 0.05}, {"body_total_s": 0.05}])
async def test_a_body_that_does_not_come_is_given_up(app: Callable[..., Any], limits: dict[str, float]) -> None:
    status, answer = await ask([b"x"], app=app, limits=LIMITS.model_copy(update=limits), ends=False)
    assert (status, answer["error"]["code"]) == (408, "body_too_slow")


async def test_waiting_for_the_client_to_go_has_no_limit_once_the_body_is_there() -> None:
    gone = asyncio.Event()

    async def wait(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await asyncio.wait_for(receive(), 0.2)
        except asyncio.TimeoutError:
            gone.set()
        await JSONResponse({})(scope, receive, send)

    limits = LIMITS.model_copy(update={"body_idle_s": 0.01, "body_total_s": 0.01})
    status, _ = await ask([], app=wait, limits=limits)
    assert status == 200
    assert gone.is_set()
