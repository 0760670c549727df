from __future__ import annotations

import errno
import io
import json
from collections.abc import Iterator
from typing import Any, cast

import pytest
import structlog

from pagemill.gateway.frame import Frame
from pagemill.gateway.lifecycle import Lifecycle
from pagemill.gateway.runtime import Services
from pagemill.telemetry import configure_logging


class Parts:
    """The parts of the service that the frame needs."""

    def __init__(self) -> None:
        self.lifecycle = Lifecycle()
        self.metrics = self
        self.counted: list[tuple[str, str, int]] = []

    def request_done(self, method: str, route: str, status: int, _seconds: float) -> None:
        self.counted.append((method, route, status))


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    configure_logging("info", "console", stream)
    yield stream
    structlog.reset_defaults()


async def answer_of(error: Exception, **scope: Any) -> tuple[int, Any]:
    """Status and body of the answer where the application fails with this error."""
    sent: list[Any] = []

    async def application(*_: object) -> None:
        raise error

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    frame = Frame(application, cast("Services", Parts()))
    await frame({"type": "http", "method": "POST", "headers": [], "path": "/", **scope}, receive, send)
    return sent[0]["status"], json.loads(sent[1]["body"])


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
async def test_a_full_disk_is_told_as_what_it_is(number: int, log: io.StringIO) -> None:
    status, body = await answer_of(OSError(number, "No space left", "/data/scratch/request-1"))
    assert (status, body["error"]["code"]) == (503, "store_unavailable")
    assert "/data" not in str(body)
    assert "the disk is full" in log.getvalue()


async def test_a_fault_tells_the_client_nothing_of_the_inside(log: io.StringIO) -> None:
    status, body = await answer_of(RuntimeError("postgresql://user:hunter2@inner/"))
    assert (status, body["error"]["code"]) == (500, "internal_error")
    assert "hunter2" not in str(body)
    assert "RuntimeError" in log.getvalue()


@pytest.mark.parametrize("job_id", ["\x1b[31mred", "a\nrequest status=200", "x" * 5000, "\u202e", "a b"])
async def test_what_clients_put_into_a_path_cannot_write_lines_of_the_log(job_id: str, log: io.StringIO) -> None:
    await answer_of(OSError(errno.ENOSPC, "full"), path_params={"job_id": job_id})
    assert job_id not in log.getvalue()
    assert "\x1b" not in log.getvalue()
