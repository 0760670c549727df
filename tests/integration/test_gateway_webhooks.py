"""Webhooks of a service of two processes, as a receiver sees them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from gateway_process import running_gateway

pytestmark = pytest.mark.slow

KEY = bytes(range(32))
JOBS = 12


class Receiver(ThreadingHTTPServer):
    """Checks signatures; answers 500 to the first call for each job whose name asks for it."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.calls: list[tuple[str, str, str]] = []
        self.forged = 0


class Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        call_id, timestamp = self.headers["webhook-id"], self.headers["webhook-timestamp"]
        digest = hmac.new(KEY, f"{call_id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
        if self.headers["webhook-signature"] != "v1," + base64.b64encode(digest).decode():
            self.server.forged += 1
        message = json.loads(body)
        job = message["data"]["job"]
        first = job["id"] not in {known for _, known, _ in self.server.calls}
        self.server.calls.append((call_id, job["id"], message["type"]))
        self.send_response(500 if first and job["name"] == "again.pdf" else 204)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def test_two_processes_tell_of_each_job_once_and_again_where_it_was_not_taken(pdf: bytes, tmp_path: Path) -> None:
    receiver = Receiver()
    thread = threading.Thread(target=receiver.serve_forever, args=(0.05,))
    thread.start()
    port = receiver.server_address[1]
    settings = {
        "GATEWAY__WEBHOOK__SECRET": "whsec_" + base64.b64encode(KEY).decode(),
        "GATEWAY__WEBHOOK__ALLOWED_HOSTS": json.dumps([f"127.0.0.1:{port}"]),
        "GATEWAY__WEBHOOK__ALLOW_PRIVATE": "true",
    }
    try:
        with running_gateway(tmp_path, "--processes", "2", **settings) as gateway:
            hook = {"webhook": f"http://127.0.0.1:{port}/hook"}
            names = ["again.pdf", *[f"{number}.pdf" for number in range(JOBS - 1)]]
            jobs = [gateway.upload(pdf, name, fields=hook).json["id"] for name in names]
            broken = gateway.upload(b"%PDF-1.7 broken", "broken.pdf", fields=hook).json["id"]
            for _ in range(1200):
                if len(receiver.calls) >= JOBS + 2:
                    break
                time.sleep(0.05)
    finally:
        receiver.shutdown()
        thread.join()
        receiver.server_close()
    assert receiver.forged == 0
    assert Counter(job for _, job, _ in receiver.calls) == {job: 1 + (job == jobs[0]) for job in [*jobs, broken]}
    assert len({call_id for call_id, _, _ in receiver.calls}) == JOBS + 1
    assert {kind for _, job, kind in receiver.calls if job != broken} == {"job.succeeded"}
    assert [kind for _, job, kind in receiver.calls if job == broken] == ["job.failed"]
