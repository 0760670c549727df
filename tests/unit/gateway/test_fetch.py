from __future__ import annotations

import asyncio
import base64
import gzip
import ssl
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from pagemill.domain.errors import (
    BodyTooLargeError,
    ConfigurationError,
    FetchError,
    ForbiddenUrlError,
    RequestError,
)
from pagemill.gateway.fetch import Fetched, check_fetch_options, decode_data_url, fetch_document
from pagemill.gateway.options import FetchOptions
from raw_server import Server, serving

PDF = b"%PDF-1.7 something"


def ok(body: bytes = PDF, *headers: str, length: bool = True) -> bytes:
    lines = ["HTTP/1.1 200 OK", *headers, *([f"Content-Length: {len(body)}"] if length else []), "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


def moved(location: str, status: int = 302) -> bytes:
    return f"HTTP/1.1 {status} Moved\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n".encode("latin-1")


def options(*hosts: str, **changes: Any) -> FetchOptions:
    return FetchOptions(enabled=True, allowed_hosts=hosts, allow_private=True, **changes)


async def fetch(server: Server, path: str = "/a.pdf", **arguments: Any) -> Fetched:
    host = f"127.0.0.1:{server.port}"
    arguments.setdefault("max_bytes", 1000)
    return await fetch_document(f"http://{host}{path}", arguments.pop("options", options(host)), **arguments)


async def test_nothing_is_fetched_unless_that_is_switched_on() -> None:
    async with serving(ok()) as server:
        with pytest.raises(ForbiddenUrlError, match="data: URL"):
            await fetch(server, options=FetchOptions(allowed_hosts=("127.0.0.1",), allow_private=True))
        assert server.requests == []


def test_a_list_of_hosts_that_cannot_be_read_is_told_at_the_start() -> None:
    check_fetch_options(options("*.example.com", "example.com:8443"))
    with pytest.raises(ConfigurationError, match=r"gateway\.fetch\.allowed_hosts: 'https://a/' is no host"):
        check_fetch_options(options("https://a/"))


async def test_a_document_is_fetched_with_its_type_and_name() -> None:
    async with serving(ok(PDF, "Content-Type: Application/PDF; a=b", "Set-Cookie: a=b")) as server:
        fetched = await fetch(server, "/r%C3%A9sum%C3%A9%2F..%2Fx.pdf?token=1%2F2#p")
    assert fetched == Fetched(len(PDF), "application/pdf", "x.pdf", PDF)
    head = server.requests[0].decode()
    assert head.startswith("GET /r%C3%A9sum%C3%A9%2F..%2Fx.pdf?token=1%2F2 HTTP/1.1\r\n")
    assert f"Host: 127.0.0.1:{server.port}\r\n" in head
    assert "Accept-Encoding: identity\r\n" in head
    assert "Cookie" not in head


async def test_the_name_may_come_from_the_answer_and_is_made_harmless() -> None:
    header = "Content-Disposition: attachment; filename*=UTF-8''..%2F..%2Fr%C3%A9sum%C3%A9.pdf"
    async with serving(ok(PDF, header)) as server:
        assert (await fetch(server)).name == "résumé.pdf"


@pytest.mark.parametrize("header", ["Content-Type: <script>", "Content-Type: a/b/c", "X-None: 1"])
async def test_a_type_that_is_none_is_not_believed(header: str) -> None:
    async with serving(ok(PDF, header)) as server:
        assert (await fetch(server)).media_type == "application/octet-stream"


async def test_a_document_goes_to_a_file(tmp_path: Path) -> None:
    body = bytes(range(256)) * 12_000
    async with serving(ok(body)) as server:
        fetched = await fetch(server, to=tmp_path / "document", max_bytes=len(body))
    assert (tmp_path / "document").read_bytes() == body
    assert (fetched.size, fetched.data) == (len(body), b"")


async def test_proxies_of_the_environment_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(ok(b"proxy")) as proxy, serving(ok()) as server:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        assert (await fetch(server)).data == PDF
        assert proxy.requests == []


async def test_a_name_is_looked_up_once_and_its_checked_address_is_called() -> None:
    lookups: list[str] = []

    async def rebinding(name: str) -> list[str]:
        lookups.append(name)
        return ["127.0.0.1"] if len(lookups) == 1 else ["127.0.0.99"]

    async with serving(ok()) as server:
        host = f"documents.example:{server.port}"
        fetched = await fetch_document(f"http://{host}/a", options(host), max_bytes=100, lookup=rebinding)
    assert fetched.data == PDF
    assert lookups == ["documents.example"]
    assert f"Host: {host}\r\n".encode() in server.requests[0]


@pytest.mark.parametrize(
    "addresses",
    [["127.0.0.1"], ["8.8.8.8", "127.0.0.1"], ["::ffff:127.0.0.1"], ["0.0.0.0"], ["169.254.169.254"], ["::1"]],
)
async def test_a_name_that_leads_inside_is_not_called(addresses: list[str]) -> None:
    async def lookup(_name: str) -> list[str]:
        return addresses

    async with serving(ok()) as server:
        host = f"documents.example:{server.port}"
        with pytest.raises(ForbiddenUrlError, match="not public"):
            await fetch_document(
                f"http://{host}/", FetchOptions(enabled=True, allowed_hosts=(host,)), max_bytes=100, lookup=lookup
            )
        assert server.requests == []


def self_signed(folder: Path, name: str) -> ssl.SSLContext:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(timezone.utc)
    builder = x509.CertificateBuilder(subject, subject, key.public_key(), 1, now, now + timedelta(days=1))
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "key.pem").write_bytes(secret)
    (folder / "certificate.pem").write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(pem))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    return context


async def test_a_server_must_prove_its_name_and_is_told_which_one_is_meant(tmp_path: Path) -> None:
    async def lookup(_name: str) -> list[str]:
        return ["127.0.0.1"]

    meant: list[str | None] = []
    context = self_signed(tmp_path, "documents.example")
    context.sni_callback = lambda _socket, name, _context: meant.append(name)
    async with serving(ok(), context) as server:
        host = f"documents.example:{server.port}"
        with pytest.raises(FetchError, match="could not be fetched"):
            await fetch_document(f"https://{host}/", options(host), max_bytes=100, lookup=lookup)
        assert server.requests == []
    assert set(meant) == {"documents.example"}


async def test_a_name_that_turns_inside_between_redirects_is_not_called_again() -> None:
    answers = iter([["127.0.0.1"], ["169.254.169.254"]])

    async def lookup(_name: str) -> list[str]:
        return next(answers)

    async with serving(moved("/b")) as server:
        host = f"documents.example:{server.port}"
        with pytest.raises(ForbiddenUrlError, match="not public"):
            await fetch_document(f"http://{host}/", options(host), max_bytes=100, lookup=lookup)
        assert len(server.requests) == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_followed_as_they_are_written(status: int) -> None:
    async def answer(head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(ok() if b"GET /b/c?x=%2F" in head else moved("../b/c?x=%2F#y", status))

    async with serving(answer) as server:
        assert (await fetch(server, "/a/start")).data == PDF


@pytest.mark.parametrize(
    "location",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://127.0.0.1/",
        "http://[::1]/",
        "http://[::ffff:169.254.169.254]/",
        "http://0.0.0.0/",
        "http://2130706433/",
        "//10.0.0.1/",
        "file:///etc/passwd",
        "gopher://127.0.0.1:6379/_INFO",
        "http://user:password@127.0.0.1/",
        "http://[::1",
        "http://evil.example/",
        "",
    ],
)
async def test_a_redirect_to_where_the_first_url_may_not_lead_is_refused(location: str) -> None:
    async with serving(moved(location)) as server:
        with pytest.raises((ForbiddenUrlError, FetchError)) as caught:
            await fetch(server)
        assert isinstance(caught.value, ForbiddenUrlError) or location == ""
        assert len(server.requests) <= 4


async def test_redirects_are_followed_so_often_and_no_more() -> None:
    async with serving(moved("/again")) as server:
        host = f"127.0.0.1:{server.port}"
        with pytest.raises(FetchError, match="More than 2 redirects"):
            await fetch(server, options=options(host, max_redirects=2))
        assert len(server.requests) == 3


async def test_a_document_whose_announced_size_is_too_large_is_not_read(tmp_path: Path) -> None:
    async with serving(b"HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n") as server:
        with pytest.raises(BodyTooLargeError):
            await fetch(server, to=tmp_path / "document")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_without_end_is_given_up_at_the_limit(chunked: bool, tmp_path: Path) -> None:
    sent = 0

    async def answer(_head: bytes, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\n" + (b"Transfer-Encoding: chunked\r\n" if chunked else b"") + b"\r\n")
        while True:
            writer.write(b"1000\r\n" + bytes(0x1000) + b"\r\n" if chunked else bytes(0x1000))
            await writer.drain()
            sent += 0x1000

    async with serving(answer) as server:
        with pytest.raises(BodyTooLargeError):
            await fetch(server, to=tmp_path / "document", max_bytes=100_000)
    assert list(tmp_path.iterdir()) == []
    assert sent < 64 * 2**20


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "gzip, gzip", "unknown"])
async def test_a_packed_body_is_refused(encoding: str) -> None:
    async with serving(ok(gzip.compress(bytes(10**6)), f"Content-Encoding: {encoding}")) as server:
        with pytest.raises(FetchError, match="packed"):
            await fetch(server, max_bytes=10**7)


@pytest.mark.parametrize(
    "start", [b"HTTP/1.1 200 ", b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"]
)
async def test_a_server_that_trickles_is_given_up_in_time(start: bytes, tmp_path: Path) -> None:
    async def answer(_head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(start)
        for _ in range(1000 if b"\r\n\r\n" not in start else 3):
            writer.write(b"a")
            await writer.drain()
            await asyncio.sleep(0.05)
        await asyncio.sleep(60)

    async with serving(answer) as server:
        host = f"127.0.0.1:{server.port}"
        with pytest.raises(FetchError, match=r"no whole document in 0\.3 s"):
            await fetch(server, to=tmp_path / "document", options=options(host, timeout_s=0.3))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\x00\xff nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 206 Partial\r\nContent-Length: 1\r\n\r\na",
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 6\r\n\r\nsecret",
        b"HTTP/1.1 500 Oops\r\nContent-Length: 6\r\n\r\nsecret",
    ],
)
async def test_an_answer_that_is_no_document_fails_without_telling_what_it_was(answer: bytes, tmp_path: Path) -> None:
    async with serving(answer) as server:
        with pytest.raises(FetchError) as caught:
            await fetch(server, to=tmp_path / "document")
    assert "secret" not in str(caught.value)
    assert str(server.port) not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


async def test_a_port_that_is_closed_is_told_like_any_other_failure() -> None:
    async with serving(ok()) as server:
        port = server.port
    host = f"127.0.0.1:{port}"
    with pytest.raises(FetchError, match="could not be fetched") as caught:
        await fetch_document(f"http://{host}/", options(host), max_bytes=10)
    assert "refused" not in str(caught.value)
    assert caught.value.__cause__ is None


async def test_a_fetch_that_is_given_up_leaves_no_file(tmp_path: Path) -> None:
    async def answer(_head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")
        await writer.drain()
        await asyncio.sleep(60)

    async with serving(answer) as server:
        task = asyncio.ensure_future(fetch(server, to=tmp_path / "document"))
        while not server.requests:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert list(tmp_path.iterdir()) == []


@given(st.binary(max_size=200), st.sampled_from(["application/pdf", "image/svg+xml", ""]))
def test_a_data_url_gives_back_what_was_put_in(content: bytes, media_type: str) -> None:
    url = f"data:{media_type};base64,{base64.b64encode(content).decode()}"
    assert decode_data_url(url, max_bytes=200) == (content, media_type or "application/octet-stream")
    if content:
        with pytest.raises(BodyTooLargeError):
            decode_data_url(url, max_bytes=len(content) - 1)


def test_a_data_url_may_have_parameters_and_capitals() -> None:
    assert decode_data_url("DATA:Image/PNG;name=a;charset=utf-8;BASE64,YWJj", max_bytes=9) == (b"abc", "image/png")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "data:",
        "data:,abc",
        "data:text/plain,abc",
        "data:text/plain;base64",
        "data:application/pdf;base64;x=1,YWJj",
        "data:<script>;base64,YWJj",
        "data:a/b/c;base64,YWJj",
        "data:text/plain;base64,YWJ",
        "data:text/plain;base64,YWJj\n",
        "data:text/plain;base64,YW Jj",
        "data:text/plain;base64,YW-_",
        "data:text/plain;base64,%59%57%4A%6A",
        "data:text/plain;base64,äöü=",
        "data:text/plain;base64,====",
        "http://example.com/;base64,YWJj",
        "data:" + "a" * 300 + ";base64,YWJj",
    ],
)
def test_what_is_no_base64_data_url_is_refused(url: str) -> None:
    with pytest.raises(RequestError):
        decode_data_url(url, max_bytes=100)


def test_a_large_data_url_is_refused_before_it_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base64, "b64decode", lambda *_: pytest.fail("decoded"))
    with pytest.raises(BodyTooLargeError):
        decode_data_url("data:application/pdf;base64," + "A" * 10_000, max_bytes=1000)
