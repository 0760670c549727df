"""A fake OpenAI-compatible server, for tests and benches only: it reads nothing, but answers, fails, loops and counts.

async with FakeServer(script=lambda request: Answer("text")) as server:
    ... server.url ...
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from typing_extensions import Self


@dataclass
class Answer:
    """How one request is answered.

    Attributes:
        text: What is streamed.
        finish_reason: Its last event's reason; None ends the stream without one.
        status: HTTP status; others than 200 answer with an error.
        delay_s: Seconds before the first token.
        token_delay_s: Seconds between tokens.
        hang: Whether nothing more comes after the first token.
        disconnect_after: Cut the connection after so many tokens.
        retry_after: Header of a refusal.
        kill: Whether the server dies of it: all connections in flight break.
        raw: The body of the stream as it is, in place of `text`.
    """

    text: str = "# Page\n\nHello.\n"
    finish_reason: str | None = "stop"
    status: int = 200
    delay_s: float = 0.0
    token_delay_s: float = 0.0
    hang: bool = False
    disconnect_after: int | None = None
    retry_after: str | None = None
    kill: bool = False
    raw: str | None = None


@dataclass
class Request:
    """A request as the server got it."""

    number: int
    body: dict[str, Any]
    image: bytes
    headers: dict[str, str]


Script = Callable[[Request], Answer]


@dataclass
class FakeServer:
    """Serves on a free port of the loopback interface.

    Attributes:
        script: Gives the answer to each request.
        model: Name of the served model.
        capacity: Most requests at once; more are refused with 503, as vLLM's full queue does.
        version: What /version says; None for a server that has no such path.
        waiting: What /metrics says of its queue; None for a server that has no such path.
        preemptions: What /metrics says of preemptions.
        metrics_break: Whether /metrics breaks the connection.
        health: HTTP status of /health.
        context: Tokens of prompt and answer together, as /v1/models says.
    """

    script: Script = field(default=lambda _request: Answer())
    model: str = "lightonocr"
    capacity: int | None = None
    version: str | None = "0.30.0"
    waiting: int | None = None
    preemptions: int = 0
    metrics_break: bool = False
    health: int = 200
    context: int = 16_384
    looks: int = 0
    asked_for_models: int = 0
    requests: list[Request] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0
    given_up: int = 0
    port: int = 0
    _open: list[web.Request] = field(default_factory=list)

    async def __aenter__(self) -> Self:
        application = web.Application(client_max_size=2**30)
        application.router.add_post("/v1/chat/completions", self._complete)
        application.router.add_get("/v1/models", self._models)
        application.router.add_get("/version", self._version)
        application.router.add_get("/health", self._health)
        application.router.add_get("/metrics", self._metrics)
        self._runner = web.AppRunner(application, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        self.port = site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def _models(self, _request: web.Request) -> web.Response:
        self.asked_for_models += 1
        return web.json_response({"object": "list", "data": [{"id": self.model, "max_model_len": self.context}]})

    async def _version(self, _request: web.Request) -> web.Response:
        return web.Response(status=404) if self.version is None else web.json_response({"version": self.version})

    async def _health(self, _request: web.Request) -> web.Response:
        return web.Response(status=self.health)

    async def _metrics(self, request: web.Request) -> web.Response:
        self.looks += 1
        if self.metrics_break and request.transport is not None:
            request.transport.abort()
        if self.waiting is None:
            return web.Response(status=404)
        labels = 'engine="0",model_name="lightonocr"'
        lines = (
            "# TYPE vllm:num_requests_waiting gauge",
            f"vllm:num_requests_waiting{{{labels}}} {self.waiting:.1f}",
            f'vllm:num_requests_waiting_by_reason{{{labels},reason="capacity"}} {self.waiting:.1f}',
            "# TYPE vllm:num_preemptions_total counter",
            f"vllm:num_preemptions_total{{{labels}}} {self.preemptions:.1f}",
        )
        return web.Response(text="\n".join(lines) + "\n")

    async def _complete(self, http: web.Request) -> web.StreamResponse:
        if self.capacity is not None and self.in_flight >= self.capacity:
            return _error(503, "The queue is full")
        self.in_flight += 1
        self._open.append(http)
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            body = await http.json()
            url = body["messages"][0]["content"][0]["image_url"]["url"]
            image = base64.b64decode(url.split(",", 1)[1])
            request = Request(len(self.requests), body, image, dict(http.headers))
            self.requests.append(request)
            return await self._answer(http, self.script(request))
        except asyncio.CancelledError:
            self.given_up += 1
            raise
        finally:
            self.in_flight -= 1
            self._open = [other for other in self._open if other is not http]

    async def _answer(self, http: web.Request, answer: Answer) -> web.StreamResponse:
        body_wants_stream = (await http.json()).get("stream", False)
        await asyncio.sleep(answer.delay_s)
        if answer.kill:
            for other in list(self._open):
                if other.transport is not None:
                    other.transport.abort()
        if answer.status != 200:
            return _error(answer.status, "as the test wants it", answer.retry_after)
        if not body_wants_stream:
            message = {"role": "assistant", "content": answer.text}
            choice = {"index": 0, "message": message, "finish_reason": answer.finish_reason}
            return web.json_response({"object": "chat.completion", "choices": [choice]})
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(http)
        if answer.raw is not None:
            await response.write(answer.raw.encode())
            return response
        tokens = [answer.text[i : i + 8] for i in range(0, len(answer.text), 8)]
        for number, token in enumerate(tokens):
            if number == answer.disconnect_after:
                assert http.transport is not None
                http.transport.abort()
                return response
            await response.write(_event({"choices": [{"index": 0, "delta": {"content": token}}]}))
            if answer.hang:
                await asyncio.sleep(3600)
            if answer.token_delay_s:
                await asyncio.sleep(answer.token_delay_s)
        if answer.finish_reason is not None:
            last = {"choices": [{"index": 0, "delta": {}, "finish_reason": answer.finish_reason}]}
            usage = {"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": len(tokens)}}
            await response.write(_event(last) + _event(usage) + b"data: [DONE]\n\n")
        await response.write_eof()
        return response


def _event(data: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(data).encode() + b"\n\n"


def _error(status: int, message: str, retry_after: str | None = None) -> web.Response:
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    body = {"error": {"message": message, "type": "error", "param": None, "code": status}}
    return web.json_response(body, status=status, headers=headers)
