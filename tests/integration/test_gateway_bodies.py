"""Requests that are too large, too slow, too deep, or can be read in two ways, against the service as it runs."""

from __future__ import annotations

import json
import re
import socket
import struct
import zlib
from pathlib import Path

import pikepdf
import pytest

from document_builders import content_pdf
from gateway_process import BODY_BYTES, GatewayProcess, until_closed, whole_answer

pytestmark = pytest.mark.slow

# Bombs


def png_bomb() -> bytes:
    """A picture of 60,000 x 60,000 pixels in some kilobytes."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 60_000, 60_000, 1, 0, 0, 0, 0)
    rows = zlib.compress(bytes(7501) * 5000, 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


@pytest.mark.usefixtures("alive")
def test_pictures_and_pages_without_measure_end_as_jobs_and_nothing_else(
    service: GatewayProcess, tmp_path: Path
) -> None:
    submitted = service.upload(png_bomb(), "bomb.png", key="alice")
    job = service.ended(submitted.json["id"], key="alice")
    assert (job["status"], job["error"]["code"]) == ("failed", "limit_exceeded")
    for number, box in enumerate(([0, 0, 10**9, 10**9], [0, 0, 14_400, 0], [0, 0, 10**18, 1], [9, 9, -(10**9), 0])):
        file = content_pdf(tmp_path / f"{number}.pdf", b"0 0 1e9 1e9 re f", MediaBox=pikepdf.Array(box))
        job = service.ended(service.upload(file.read_bytes(), key="alice").json["id"], key="alice")
        assert job["status"] in ("succeeded", "failed")


DEEP = b"[" * 100_000 + b"]" * 100_000
NUMBERS = [b"1" * 10_000, b"1e400", b"-1e400", b"NaN", b"Infinity", b"1" * 400_000]


@pytest.mark.usefixtures("alive")
def test_json_that_is_hard_to_read_is_refused(service: GatewayProcess) -> None:
    document = b'{"type": "file", "name": "a", "data_base64": "YQ=="}'
    bodies = [
        DEEP,
        b'{"a":' * 50_000,
        b'{"document": ' + DEEP + b"}",
        b"\xff\xfe",
        b"",
        b"null",
        b'"\\ud800"',
        b"{" * 10,
    ]
    bodies += [b'{"document": %s, "options": {"max_tokens": %s}}' % (document, number) for number in NUMBERS]
    bodies += [
        b'{"document": %s, "options": {"pages": "%s"}}' % (document, pages)
        for pages in (b"1-" + b"9" * 900, b"9" * 900)
    ]
    bodies.append(b"{" + b",".join(b'"k%d": 1' % number for number in range(50_000)) + b"}")
    for path in ("/v1/documents", "/v1/ocr", "/v1/chat/completions"):
        for body in bodies:
            headers = {"Content-Type": "application/json"}
            answer = service.call("POST", path, body, key="alice", headers=headers)
            assert answer.status in (400, 404, 413, 415, 422, 501, 503), (path, body[:60], answer.body[:300])
            assert answer.json["error"]["code"] != "internal_error"


@pytest.mark.usefixtures("alive")
def test_forms_that_are_hard_to_read_are_refused(service: GatewayProcess, pdf: bytes) -> None:
    part = b'--x\r\nContent-Disposition: form-data; name="pages"\r\n\r\n\r\n'
    file = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
    forms = {
        "very many parts": b"--x\r\n\r\n\r\n" * 90_000 + b"--x--\r\n",
        "many fields": part * 10_000 + b"--x--\r\n",
        "many files": (file + pdf + b"\r\n") * 10 + b"--x--\r\n",
        "a long head": b"--x\r\nX: " + b"a" * 500_000,
        "many lines of a head": b"--x\r\n" + b"X: a\r\n" * 50_000,
        "a long name": b'--x\r\nContent-Disposition: form-data; name="' + b"a" * 500_000,
        "a long value": part + b"a" * 500_000 + b"\r\n--x--\r\n",
        "no end": file + pdf,
        "no boundary": pdf,
        "nothing": b"",
        "nothing but its end": b"--x--\r\n",
        "an encoding": file.replace(b"\r\n", b"\r\nContent-Transfer-Encoding: base64\r\n", 1) + b"JVB\r\n--x--\r\n",
    }
    for name, body in forms.items():
        headers = {"Content-Type": "multipart/form-data; boundary=x"}
        answer = service.call("POST", "/v1/documents", body, key="alice", headers=headers)
        assert answer.status in (400, 413, 415, 422), (name, answer.body[:300])
        assert answer.json["error"]["code"] != "internal_error"
    for boundary in ("", "x" * 5000, '"', "é"):
        headers = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
        answer = service.call("POST", "/v1/documents", b"--x--", key="alice", headers=headers)
        assert answer.status in (400, 422), boundary


def test_a_packed_body_is_not_unpacked(service: GatewayProcess) -> None:
    packed = zlib.compressobj(9, wbits=31)
    body = packed.compress(bytes(50 * 2**20)) + packed.flush()
    for media_type in ("application/json", "multipart/form-data; boundary=x"):
        headers = {"Content-Type": media_type, "Content-Encoding": "gzip"}
        answer = service.call("POST", "/v1/documents", body, key="alice", headers=headers)
        assert answer.status in (400, 415, 422)


# Too much, too slowly


def post(service: GatewayProcess, *headers: str, path: str = "/v1/documents") -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: a", f"Authorization: Bearer {service.keys['alice']}", *headers]
    return "\r\n".join([*lines, "", ""]).encode()


MEDIA_TYPES = ["application/json", "multipart/form-data; boundary=x", "application/octet-stream"]


@pytest.mark.parametrize("media_type", MEDIA_TYPES)
def test_a_body_whose_announced_length_is_too_large_is_not_waited_for(service: GatewayProcess, media_type: str) -> None:
    for length in (BODY_BYTES + 1, 10**17):
        with service.connect() as connection:
            connection.sendall(post(service, f"Content-Type: {media_type}", f"Content-Length: {length}"))
            answer = whole_answer(connection)
        assert answer.startswith(b"HTTP/1.1 413"), answer
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "body_too_large"


@pytest.mark.parametrize("media_type", MEDIA_TYPES[:2])
@pytest.mark.usefixtures("alive")
def test_a_body_without_end_is_refused_at_the_limit(service: GatewayProcess, media_type: str) -> None:
    file = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.pdf"\r\n\r\n%PDF-1.7'
    start = file if "form-data" in media_type else b'{"document": {"type": "file", "name": "'
    sent = 0
    with service.connect() as connection:
        connection.sendall(post(service, f"Content-Type: {media_type}", "Transfer-Encoding: chunked"))
        connection.sendall(b"%x\r\n%s\r\n" % (len(start), start))
        piece = b"8000\r\n" + b"a" * 0x8000 + b"\r\n"
        try:
            while sent < 200 * BODY_BYTES:
                connection.sendall(piece)
                sent += 0x8000
                connection.settimeout(0.001)
                try:
                    if answer := connection.recv(2**16):
                        break
                except TimeoutError:
                    connection.settimeout(60)
        except ConnectionError:
            answer = b"HTTP/1.1 413 (the connection was closed)"
    assert answer.startswith(b"HTTP/1.1 413"), answer
    assert sent < 200 * BODY_BYTES


@pytest.mark.parametrize("media_type", MEDIA_TYPES[:2])
def test_a_body_that_pauses_too_long_is_given_up(service: GatewayProcess, media_type: str) -> None:
    with service.connect() as connection:
        connection.sendall(post(service, f"Content-Type: {media_type}", "Content-Length: 1000"))
        connection.sendall(b"--x\r\n")
        answer = until_closed(connection)
    assert answer.startswith(b"HTTP/1.1 408"), answer
    assert b'"body_too_slow"' in answer


def test_a_body_that_drips_is_given_up(service: GatewayProcess) -> None:
    with service.connect() as connection:
        connection.sendall(post(service, "Content-Type: application/json", "Content-Length: 100000"))
        answer = drip(connection, b" ")
    assert answer.startswith(b"HTTP/1.1 408"), answer


def drip(connection: socket.socket, data: bytes) -> bytes:
    """Sends a little now and then until an answer comes, or the end of the connection."""
    connection.settimeout(0.2)
    for _ in range(300):
        try:
            connection.sendall(data)
            return connection.recv(2**16)
        except TimeoutError:
            continue
        except ConnectionError:
            return b""
    pytest.fail("the service waits for ever")


@pytest.mark.parametrize("start", [b"", b"GET /", b"GET /health/live HTTP/1.1\r\nHost: a\r\nX: "])
def test_a_head_that_does_not_come_ends_the_connection(service: GatewayProcess, start: bytes) -> None:
    with service.connect() as connection:
        connection.sendall(start)
        assert (drip(connection, b"a") if start else until_closed(connection)) == b""


@pytest.mark.usefixtures("alive")
def test_many_slow_clients_do_not_keep_others_out(service: GatewayProcess) -> None:
    slow = [service.connect() for _ in range(300)]
    try:
        for number, connection in enumerate(slow):
            head = b"POST /v1/documents HTTP/1.1\r\nHost: a\r\nX: " if number % 2 else b""
            connection.sendall(head or post(service, "Content-Type: application/json", "Content-Length: 1000"))
        assert service.call("GET", "/health/live").status == 200
    finally:
        for connection in slow:
            connection.close()


# Heads that can be read in two ways


@pytest.mark.parametrize(
    "lines",
    [
        ["Content-Length: 4", "Transfer-Encoding: chunked"],
        ["Transfer-Encoding: chunked", "Content-Length: 100"],
        ["Content-Length: 4", "Content-Length: 5"],
        ["Transfer-Encoding: xchunked"],
        ["Transfer-Encoding:\r\n chunked"],
        ["X: a\nContent-Length: 4"],
        ["Content-Length: 0x4"],
    ],
)
def test_nothing_is_smuggled_past_a_proxy(service: GatewayProcess, lines: list[str]) -> None:
    smuggled = b"GET /version HTTP/1.1\r\nHost: a\r\n\r\n"
    answer = service.raw(post(service, *lines) + b"0\r\n\r\n" + smuggled)
    assert answer.startswith(b"HTTP/1.1 400")
    assert answer.count(b"HTTP/1.1 ") == 1


def test_a_request_in_the_body_of_another_is_not_read(service: GatewayProcess) -> None:
    inner = b"GET /version HTTP/1.1\r\nHost: a\r\n\r\n"
    first = post(service, "Content-Type: application/json", f"Content-Length: {len(inner)}") + inner
    last = b"GET /health/live HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    answers = service.raw(first + last)
    assert answers.count(b"HTTP/1.1 ") == 2
    assert b'"status":"ok"' in answers.replace(b" ", b"")
    assert b"engine_version" not in answers


@pytest.mark.parametrize(
    "given", ["a b", "a\tb", "é", "x" * 200, "a;b", "<script>", "a%0d%0ab", '"', "${jndi:ldap://a}", "req\x1b[31m"]
)
def test_an_id_of_a_request_is_taken_only_where_it_is_plain(service: GatewayProcess, given: str) -> None:
    head = f"GET /health/live HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-Request-Id: {given}\r\n\r\n"
    answer = service.raw(head.encode("utf-8"))
    if answer.startswith(b"HTTP/1.1 200"):
        assert re.search(rb"(?im)^x-request-id: req_[0-9a-f]+\r$", answer)
    else:
        assert answer.startswith(b"HTTP/1.1 400")
    good = service.call("GET", "/health/live", headers={"X-Request-Id": "mine-1.2_3"})
    assert good.headers["X-Request-Id"] == "mine-1.2_3"
