"""A collector of traces, over HTTP."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from pagemill.telemetry import shutdown_tracing

_MESSAGES = "opentelemetry.proto.collector.trace.v1.trace_service_pb2"


class Collector:
    """A collector over HTTP that keeps what it gets."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                outer.bodies.append(body)
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_args: object) -> None:
                return None

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever)

    def spans(self) -> list[Any]:
        messages = pytest.importorskip(_MESSAGES)
        found = []
        for body in self.bodies:
            request = messages.ExportTraceServiceRequest.FromString(body)
            found += [s for r in request.resource_spans for scope in r.scope_spans for s in scope.spans]
        return found


@pytest.fixture
def collector() -> Iterator[Collector]:
    pytest.importorskip(_MESSAGES)
    collector = Collector()
    collector.thread.start()
    yield collector
    shutdown_tracing()
    collector.server.shutdown()
    collector.server.server_close()
    collector.thread.join()
