from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from pagemill.gateway.options import LimitOptions
from pagemill.gateway.protocol import guarded_protocol

SHORT = 0.2
LONG = 60.0
ASK = b"GET /%s HTTP/1.1\r\nHost: a\r\n\r\n"


async def application(scope: Any, receive: Any, send: Any) -> None:
    kind = scope["path"].strip("/")
    headers = [(b"content-length", b"2")]
    if kind == "slow":
        await asyncio.sleep(4 * SHORT)
    if kind == "body":
        while (await receive())["more_body"]:
            pass
    if kind == "endless":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while not scope["gone"].is_set():
            await send({"type": "http.response.body", "body": bytes(2**16), "more_body": True})
            await asyncio.sleep(0)
    await send({"type": "http.response.start", "status": 413 if kind == "refused" else 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"ok"})


class Served:
    def __init__(self, port: int, state: ServerState) -> None:
        self.port = port
        self.state = state

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)


@contextlib.asynccontextmanager
async def serving(**limits: Any) -> AsyncIterator[Served]:
    gone = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await application({**scope, "gone": gone}, receive, send)

    protocol = guarded_protocol(LimitOptions(**{"head_s": LONG, "answer_idle_s": LONG, **limits}))
    config = uvicorn.Config(app, http=protocol, ws="none", lifespan="off", log_config=None, timeout_keep_alive=30)
    config.load()
    state = ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: protocol(config, state, {}), "127.0.0.1", 0)
    try:
        yield Served(server.sockets[0].getsockname()[1], state)
    finally:
        gone.set()
        server.close()
        for connection in list(state.connections):
            connection.transport.abort()
        await asyncio.gather(*state.tasks)


async def ended(reader: asyncio.StreamReader) -> bytes:
    """Everything up to the end of the connection, however it ends."""
    received = b""
    with contextlib.suppress(ConnectionError):
        while chunk := await asyncio.wait_for(reader.read(2**16), 30):
            received += chunk
    return received


async def drip(writer: asyncio.StreamWriter, data: bytes) -> None:
    with contextlib.suppress(ConnectionError):
        while True:
            writer.write(data)
            await writer.drain()
            await asyncio.sleep(SHORT / 20)


@pytest.mark.parametrize("first", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: a\r\nX-Slow: "])
async def test_a_head_that_does_not_arrive_ends_the_connection(first: bytes) -> None:
    async with serving(head_s=SHORT) as served:
        reader, writer = await served.connect()
        writer.write(first)
        dripping = asyncio.ensure_future(drip(writer, b"a")) if first else None
        assert await ended(reader) == b""
        if dripping is not None:
            await dripping
        writer.close()


async def test_the_head_of_a_later_request_has_no_more_time() -> None:
    async with serving(head_s=SHORT) as served:
        reader, writer = await served.connect()
        writer.write(ASK % b"" + b"GET / HTTP/1.1\r\nX-Slow: ")
        dripping = asyncio.ensure_future(drip(writer, b"a"))
        assert (await ended(reader)).endswith(b"\r\n\r\nok")
        await dripping
        writer.close()


async def test_a_connection_in_use_lives_longer_than_a_head_may_take() -> None:
    async with serving(head_s=1.0) as served:
        reader, writer = await served.connect()
        loop = asyncio.get_running_loop()
        started = loop.time()
        answers = 0
        while loop.time() - started < 2.5:
            writer.write(ASK % b"")
            await reader.readuntil(b"\r\n\r\nok")
            answers += 1
            await asyncio.sleep(SHORT / 20)
        assert answers > 1
        writer.close()


async def test_a_client_that_waits_for_our_answer_is_left_alone() -> None:
    async with serving(head_s=SHORT, answer_idle_s=SHORT) as served:
        reader, writer = await served.connect()
        writer.write(ASK % b"slow")
        assert (await reader.readuntil(b"\r\n\r\nok")).startswith(b"HTTP/1.1 200")
        writer.close()


async def test_a_body_may_take_longer_than_a_head() -> None:
    async with serving(head_s=SHORT) as served:
        reader, writer = await served.connect()
        writer.write(b"POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 60\r\n\r\n")
        for _ in range(60):
            writer.write(b"a")
            await writer.drain()
            await asyncio.sleep(SHORT / 20)
        assert (await reader.readuntil(b"\r\n\r\nok")).startswith(b"HTTP/1.1 200")
        writer.close()


async def test_the_rest_of_a_refused_body_is_not_read_without_end() -> None:
    async with serving(head_s=SHORT) as served:
        reader, writer = await served.connect()
        writer.write(b"POST /refused HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n")
        dripping = asyncio.ensure_future(drip(writer, b"a" * 100))
        assert (await ended(reader)).startswith(b"HTTP/1.1 413")
        await dripping
        writer.close()


async def test_a_client_that_does_not_read_its_answer_is_dropped() -> None:
    async with serving(answer_idle_s=SHORT) as served:
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(client, ("127.0.0.1", served.port))
        await loop.sock_sendall(client, ASK % b"endless")
        while not served.state.tasks:
            await asyncio.sleep(0.01)
        while served.state.connections:
            await asyncio.sleep(0.01)
        client.close()


async def test_too_many_connections_are_closed_and_the_others_served() -> None:
    async with serving(connections=3) as served:
        streams = [await served.connect() for _ in range(3)]
        for reader, writer in streams:
            writer.write(ASK % b"")
            await reader.readuntil(b"\r\n\r\nok")
        reader, more = await served.connect()
        assert await ended(reader) == b""
        streams[0][1].write(ASK % b"")
        assert await streams[0][0].readuntil(b"\r\n\r\nok")
        for _, writer in [*streams, (reader, more)]:
            writer.close()


HOST = b"Host: a\r\n"
CHUNKED = b"POST /body HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"


def post(*headers: bytes, body: bytes = b"") -> bytes:
    return b"POST /body HTTP/1.1\r\n" + HOST + b"".join(line + b"\r\n" for line in headers) + b"\r\n" + body


@pytest.mark.parametrize(
    "request_bytes",
    [
        post(b"Content-Length: 4", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n" + SMUGGLED),
        post(b"Transfer-Encoding: chunked", b"Content-Length: 40", body=b"0\r\n\r\n" + SMUGGLED),
        post(b"transfer-encoding: Chunked", b"CONTENT-LENGTH: 0", body=b"0\r\n\r\n" + SMUGGLED),
        post(b"Content-Length: 4", b"Content-Length: 5", body=b"abcde"),
        post(b"Content-Length: 4, 5", body=b"abcde"),
        post(b"Content-Length: +4", body=b"abcd"),
        post(b"Content-Length: -4", body=b"abcd"),
        post(b"Content-Length: 0x4", body=b"abcd"),
        post(b"Content-Length: 1_0", body=b"a" * 10),
        post(b"Content-Length: " + b"9" * 30, body=b"abcd"),
        post(b"Content-Length:", body=b"abcd"),
        post(b"Transfer-Encoding: identity", body=b"0\r\n\r\n"),
        post(b"Transfer-Encoding: xchunked", body=b"0\r\n\r\n"),
        post(b"Transfer-Encoding: gzip, chunked", body=b"0\r\n\r\n"),
        post(b"Transfer-Encoding: chunked", b"Transfer-Encoding: identity", body=b"0\r\n\r\n"),
        post(b"Transfer-Encoding: \x0bchunked", body=b"0\r\n\r\n"),
        post(b"Transfer-Encoding : chunked", body=b"0\r\n\r\n"),
        post(b"Transfer-Encoding:\r\n chunked", body=b"0\r\n\r\n" + SMUGGLED),
        post(b"X-Folded: a\r\n b", b"Content-Length: 0"),
        post(b"X-Folded: a\r\n\tContent-Length: 9", b"Content-Length: 0"),
        post(b"X-Feed: a\nContent-Length: 9", body=b"abcdefghi"),
        post(b"X-Return: a\rContent-Length: 9", body=b"abcdefghi"),
        post(b"X-Nothing: a\x00b", b"Content-Length: 0"),
        post(b"X-Long: " + b"a" * 40_000, b"Content-Length: 0"),
        post(*[b"X-Many: a"] * 4000, b"Content-Length: 0"),
        b"POST /body HTTP/1.1\nHost: a\nContent-Length: 0\n\n",
        b"POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 0\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET / smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET\t/\tHTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\n Host: a\r\n\r\n",
        CHUNKED + b"0x4\r\nabcd\r\n0\r\n\r\n",
        CHUNKED + b"-4\r\nabcd\r\n0\r\n\r\n",
        CHUNKED + b"4;\nxx\r\nabcd\r\n0\r\n\r\n",
        CHUNKED + b"f" * 30 + b"\r\nabcd\r\n0\r\n\r\n",
        CHUNKED + b"4\r\nabcdXX0\r\n\r\n",
        CHUNKED + b"\r\n4\r\nabcd\r\n0\r\n\r\n",
    ],
)
async def test_a_request_that_can_be_read_in_two_ways_is_refused_and_nothing_after_it_is_read(
    request_bytes: bytes,
) -> None:
    async with serving() as served:
        reader, writer = await served.connect()
        writer.write(request_bytes + SMUGGLED)
        answers = await ended(reader)
        assert answers.startswith(b"HTTP/1.1 400")
        assert answers.count(b"HTTP/1.1 ") == 1
        assert json.loads(answers.partition(b"\r\n\r\n")[2])["error"]["code"] == "invalid_request"
        writer.close()


@pytest.mark.parametrize(
    "request_bytes",
    [
        post(b"Content-Length: 4", body=b"abcd"),
        post(b"Content-Length: 4", b"Content-Length: 4", body=b"abcd"),
        post(b"Content-Length: 29", body=b"GET /x HTTP/1.1\r\nHost: a\r\n\r\nx"),
        CHUNKED + b"4\r\nabcd\r\n0\r\n\r\n",
        CHUNKED + b"4;extension=1\r\nabcd\r\n0\r\n\r\n",
        CHUNKED + b"4\r\nabcd\r\n0\r\nContent-Length: 9\r\n\r\n",
        CHUNKED + b"1D\r\nGET /x HTTP/1.1\r\nHost: a\r\n\r\nx\r\n0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nGET",
    ],
)
@pytest.mark.parametrize("pieces", [1, 10**6])
async def test_the_request_after_another_is_read_as_it_was_sent(request_bytes: bytes, pieces: int) -> None:
    sent = request_bytes + b"GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    async with serving() as served:
        reader, writer = await served.connect()
        for start in range(0, len(sent), max(1, len(sent) // pieces)):
            writer.write(sent[start : start + max(1, len(sent) // pieces)])
            await writer.drain()
        answers = await ended(reader)
        assert answers.count(b"HTTP/1.1 200 OK") == 2
        assert answers.count(b"HTTP/1.1 ") == 2
        writer.close()
