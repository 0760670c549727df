"""What is around every request: its id, its line in the log, its count, and an answer even where we failed."""

from __future__ import annotations

import errno
import re
import secrets
import time
from typing import Any

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pagemill.domain.errors import StoppingError, StoreUnavailableError
from pagemill.gateway.errors import error_response, unexpected_response
from pagemill.gateway.runtime import Services
from pagemill.telemetry import TraceContext, get_logger, span

_PLAIN = re.compile(r"[A-Za-z0-9._-]{1,128}")
"""What clients send and logs show: nothing that a terminal or a parser of logs could take for something else."""

_DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_TAKEN_WHILE_STOPPING = frozenset({"GET", "HEAD", "DELETE", "OPTIONS"})
_KNOWN_METHODS = _TAKEN_WHILE_STOPPING | {"POST", "PUT", "PATCH"}

_log = get_logger("pagemill.gateway")


class Frame:
    """ASGI middleware, the outermost.

    Args:
        app: The application.
        services: Metrics and life cycle.
    """

    def __init__(self, app: ASGIApp, services: Services) -> None:
        self._app = app
        self._services = services

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Takes a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = headers.get("x-request-id", "")
        request_id = given if _PLAIN.fullmatch(given) else f"req_{secrets.token_hex(12)}"
        scope.setdefault("state", {})["request_id"] = request_id
        answer = _Answer(send, request_id)
        started = time.monotonic()
        with (
            structlog.contextvars.bound_contextvars(request_id=request_id),
            self._services.lifecycle.request(),
            span("gateway.request", TraceContext.of_headers(headers), method=scope["method"], request_id=request_id),
        ):
            try:
                await self._answer(scope, receive, answer)
            finally:
                self._count(scope, answer.status, time.monotonic() - started)

    async def _answer(self, scope: Scope, receive: Receive, answer: _Answer) -> None:
        if self._services.lifecycle.stopping and scope["method"] not in _TAKEN_WHILE_STOPPING:
            error = StoppingError("The service is stopping and takes nothing new.", "Send the request again.")
            await error_response(error)(scope, receive, answer.send)
            return
        try:
            await self._app(scope, receive, answer.send)
        except ClientDisconnect:
            _log.info("client has gone", method=scope["method"], route=_route(scope))
        except Exception as error:
            if not answer.status and isinstance(error, OSError) and error.errno in _DISK_FULL:
                _log.error("the disk is full", error=str(error))
                full = StoreUnavailableError("The service's disk is full.", "Try later, or make room on it.")
                await error_response(full)(scope, receive, answer.send)
                return
            _log.exception("request failed in an unexpected way", method=scope["method"], route=_route(scope))
            if answer.status:
                # The client must see that the answer is not whole.
                raise
            await unexpected_response(answer.request_id)(scope, receive, answer.send)

    def _count(self, scope: Scope, status: int, seconds: float) -> None:
        route = _route(scope)
        method = scope["method"] if scope["method"] in _KNOWN_METHODS else "other"
        self._services.metrics.request_done(method, route, status, seconds)
        state: dict[str, Any] = scope.get("state", {})
        job_id = str(scope.get("path_params", {}).get("job_id") or state.get("job_id", ""))
        _log.info(
            "request",
            method=method,
            route=route,
            status=status,
            seconds=round(seconds, 4),
            key=state.get("key_id"),
            job=job_id if _PLAIN.fullmatch(job_id) else None,
        )


def _route(scope: Scope) -> str:
    """Template of the path; one name for all that lead nowhere, so that clients cannot make metrics grow."""
    return getattr(scope.get("route"), "path", None) or "unknown"


class _Answer:
    """Adds the request's id to the answer, and remembers its status; 0 while it has none."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send = send
        self.request_id = request_id
        self.status = 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["X-Request-Id"] = self.request_id
            headers.setdefault("X-Content-Type-Options", "nosniff")
            headers.setdefault("Cache-Control", "no-store")
        await self._send(message)
