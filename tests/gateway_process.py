"""The gateway as a process of its own, and clients that say what no well-behaved client says."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BODY_BYTES = 2**20
"""Limit of bodies of the gateway that tests attack."""

PLUGINS = Path(__file__).resolve().parent / "plugins"


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The stable code of an error."""
        return str(self.json["error"]["code"])


class GatewayProcess:
    """A running gateway.

    Args:
        folder: For its data and its log.
        environment: Of its process.
        port: Where it listens.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str], port: int) -> None:
        self.folder = folder
        self.environment = environment
        self.port = port
        self.log = folder / "log"
        self.keys: dict[str, str] = {}

    def cli(self, *arguments: str) -> str:
        """Runs a command against the same store; gives what it prints."""
        done = subprocess.run(
            [sys.executable, "-m", "pagemill", *arguments],
            capture_output=True,
            env=dict(self.environment),
            timeout=120,
            check=True,
        )
        return done.stdout.decode()

    def make_key(self, name: str, *more: str) -> str:
        """Makes an API key."""
        printed = self.cli("keys", "create", name, *more)
        self.keys[name] = next(word for word in printed.split() if word.startswith("pm_"))
        return self.keys[name]

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Sends a request; `body` is bytes, or something that becomes JSON."""
        sent = dict(headers or {})
        if key is not None:
            sent["Authorization"] = f"Bearer {self.keys.get(key, key)}"
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            connection.request(method, path, body, sent)
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read())

    def upload(
        self,
        data: bytes,
        name: str | bytes = "a.pdf",
        *,
        key: str | None = None,
        fields: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Hands in a document as a form; the name goes into it as it is."""
        body, media_type = form([("file", name, data)], fields or {})
        return self.call(
            "POST", "/v1/documents", body, key=key, headers={"Content-Type": media_type, **(headers or {})}
        )

    def ended(self, job_id: str, *, key: str | None = None) -> Any:
        """The job, once it has ended."""
        while True:
            job = self.call("GET", f"/v1/jobs/{job_id}", key=key).json
            if job["status"] in ("succeeded", "failed", "cancelled"):
                return job
            time.sleep(0.05)

    def connect(self) -> socket.socket:
        """A bare connection."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)

    def raw(self, data: bytes) -> bytes:
        """Everything that comes back for these bytes, until the service closes the connection."""
        with self.connect() as connection:
            with contextlib.suppress(ConnectionError):
                connection.sendall(data)
            return until_closed(connection)


def whole_answer(connection: socket.socket) -> bytes:
    """Reads one answer that says how long it is."""
    received = b""
    while True:
        head, end, body = received.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
        if end and length is not None and len(body) >= int(length.group(1)):
            return received
        chunk = connection.recv(2**16)
        if not chunk:
            return received
        received += chunk


def until_closed(connection: socket.socket) -> bytes:
    """Reads until the other side ends the connection, one way or the other."""
    received = b""
    with contextlib.suppress(ConnectionError):
        while chunk := connection.recv(2**16):
            received += chunk
    return received


def form(files: list[tuple[str, str | bytes, bytes]], fields: Mapping[str, str]) -> tuple[bytes, str]:
    """A multipart form and its media type."""
    boundary = secrets.token_hex(16).encode()
    parts = [
        b'Content-Disposition: form-data; name="%s"\r\n\r\n%s' % (name.encode(), value.encode())
        for name, value in fields.items()
    ]
    for field, name, data in files:
        raw = name if isinstance(name, bytes) else name.encode()
        head = b'Content-Disposition: form-data; name="%s"; filename="%s"' % (field.encode(), raw)
        parts.append(head + b"\r\nContent-Type: application/pdf\r\n\r\n" + data)
    body = b"".join(b"--" + boundary + b"\r\n" + part + b"\r\n" for part in parts) + b"--" + boundary + b"--\r\n"
    return body, f"multipart/form-data; boundary={boundary.decode()}"


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def running_gateway(folder: Path, *arguments: str, **settings: str) -> Iterator[GatewayProcess]:
    """Starts the gateway, with an engine that reads nothing, and stops it.

    Args:
        folder: For its data and its log.
        arguments: More of the command line.
        settings: Environment variables, without `PAGEMILL_`.
    """
    port = free_port()
    environment = {
        **os.environ,
        "PYTHONPATH": str(PLUGINS),
        "PAGEMILL_ENGINE__NAME": "fake",
        "PAGEMILL_LOG__LEVEL": "debug",
        "PAGEMILL_LOG__FORMAT": "json",
        "PAGEMILL_GATEWAY__DATA": str(folder / "data"),
        "PAGEMILL_GATEWAY__PORT": str(port),
        **{f"PAGEMILL_{name}": value for name, value in settings.items()},
    }
    gateway = GatewayProcess(folder, environment, port)
    with (
        gateway.log.open("wb") as log,
        subprocess.Popen(
            [sys.executable, "-m", "pagemill", "gateway", *arguments], stdout=log, stderr=log, env=environment
        ) as process,
    ):
        try:
            _wait_until_ready(gateway, process)
            yield gateway
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()


def _wait_until_ready(gateway: GatewayProcess, process: subprocess.Popen[bytes]) -> None:
    for _ in range(1200):
        if process.poll() is not None:
            raise AssertionError(f"the gateway ended:\n{gateway.log.read_text(errors='replace')}")
        with contextlib.suppress(OSError, http.client.HTTPException):
            if gateway.call("GET", "/health/ready").status == 200:
                return
        time.sleep(0.05)
    raise AssertionError(f"the gateway was not ready in time:\n{gateway.log.read_text(errors='replace')}")
