"""Documents that requests name by URL: data: URLs, and http(s) URLs where the service allows them."""

from __future__ import annotations

import asyncio
import base64
import email.message
import re
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote, urljoin

import aiohttp
from yarl import URL

from pagemill._version import __version__
from pagemill.domain.errors import BodyTooLargeError, ConfigurationError, FetchError, ForbiddenUrlError, RequestError
from pagemill.gateway.addresses import GuardedResolver, HostRules, Lookup, look_up
from pagemill.gateway.names import document_name
from pagemill.gateway.options import FetchOptions

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_HEADERS = {
    "User-Agent": f"pagemill/{__version__}",
    "Accept": "application/pdf, image/*;q=0.9, */*;q=0.5",
    # A body that is packed could grow without bound when it is unpacked; none is asked for, none is accepted.
    "Accept-Encoding": "identity",
}
_CHUNK = 2**20
_MEDIA_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]{1,64}/[a-z0-9!#$&^_.+-]{1,64}")
_UNKNOWN_TYPE = "application/octet-stream"
_LONGEST_DATA_HEAD = 256


@dataclass(frozen=True, slots=True)
class Fetched:
    """A document that was fetched.

    Attributes:
        size: Its bytes.
        media_type: What the server calls it; never to be trusted.
        name: Its name, for display.
        data: The document; empty where it went to a file.
    """

    size: int
    media_type: str
    name: str
    data: bytes = b""


def check_fetch_options(options: FetchOptions) -> None:
    """Refuses lists of hosts that cannot be read, before the first document is asked for.

    Raises:
        ConfigurationError: An entry is no host.
    """
    try:
        HostRules(options.allowed_hosts)
    except ValueError as error:
        raise ConfigurationError(f"gateway.fetch.allowed_hosts: {error}.") from error


async def fetch_document(
    url: str, options: FetchOptions, *, max_bytes: int, to: Path | None = None, lookup: Lookup = look_up
) -> Fetched:
    """Fetches a document from an http(s) URL.

    The URL, every redirect, and every address that is connected to are checked, see `HostRules`. No cookies, no
    proxies, no packed bodies.

    Args:
        url: Where it is.
        options: What is allowed.
        max_bytes: Most bytes of the document.
        to: File to write it to; in memory where there is none. Nothing is left there after an error.
        lookup: Gives the addresses of a name.

    Raises:
        ForbiddenUrlError: URLs are not fetched, or not this one.
        FetchError: It could not be fetched in time.
        BodyTooLargeError: It is larger than `max_bytes`.
    """
    if not options.enabled:
        raise ForbiddenUrlError(
            "Documents are not fetched from http(s) URLs.",
            "Send the document itself or a data: URL, or have fetching switched on by who runs the service.",
        )
    rules = HostRules(options.allowed_hosts, allow_private=options.allow_private)
    target = rules.check_url(url)
    sink = _Sink(to, max_bytes)
    complete = False
    try:
        fetched = await asyncio.wait_for(
            _fetch(target, rules, GuardedResolver(rules, lookup), options.max_redirects, sink), options.timeout_s
        )
        complete = True
    except asyncio.TimeoutError:
        raise FetchError(f"{target.host} sent no whole document in {options.timeout_s:g} s.", "Try later.") from None
    except aiohttp.ClientError:
        # Not chained and without detail: it may tell about hosts and ports that only this machine can see.
        raise FetchError(f"The document could not be fetched from {target.host}.", "Check the URL.") from None
    finally:
        sink.close(keep=complete)
    return fetched


async def _fetch(target: URL, rules: HostRules, resolver: GuardedResolver, redirects: int, sink: _Sink) -> Fetched:
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(resolver=resolver, use_dns_cache=False, force_close=True),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers=_HEADERS,
        timeout=aiohttp.ClientTimeout(total=None),
        trust_env=False,
        auto_decompress=False,
    ) as session:
        for _ in range(redirects + 1):
            async with session.get(target, allow_redirects=False) as response:
                if response.status not in _REDIRECTS:
                    return await _receive(response, sink)
                target = _redirected(target, response.headers.get("Location", ""), rules)
    raise FetchError(f"More than {redirects} redirects, the last to {target.host}.", "Give the URL that they lead to.")


def _redirected(source: URL, location: str, rules: HostRules) -> URL:
    try:
        joined = urljoin(str(source), location)
    except ValueError:
        joined = location
    target = rules.check_url(joined)
    if source.scheme == "https" and target.scheme == "http":
        raise ForbiddenUrlError(f"A redirect leads from https to http on {target.host}.", "Give an https URL.")
    return target


async def _receive(response: aiohttp.ClientResponse, sink: _Sink) -> Fetched:
    host = response.url.host
    if response.status != 200:
        raise FetchError(f"{host} answered with status {response.status}.", "Check the URL.")
    if response.headers.get("Content-Encoding", "identity").strip().lower() not in ("", "identity"):
        raise FetchError(f"{host} sent a packed body although none was asked for.", "Serve the document as it is.")
    sink.expect(response.content_length or 0)
    async for chunk in response.content.iter_any():
        await sink.take(chunk)
    return Fetched(sink.size, _media_type(response), _name(response), await sink.finish())


class _Sink:
    """Takes the bytes of a document, to a file or to memory, and no more than allowed."""

    def __init__(self, file: Path | None, max_bytes: int) -> None:
        self._file = file
        self._max_bytes = max_bytes
        self._stream = None if file is None else file.open("wb")
        self._buffer = bytearray()
        self.size = 0

    def expect(self, size: int) -> None:
        """Refuses a size that is announced."""
        if size > self._max_bytes:
            raise _too_large(self._max_bytes)

    async def take(self, chunk: bytes) -> None:
        """Takes what has arrived."""
        self.size += len(chunk)
        self.expect(self.size)
        self._buffer += chunk
        if self._stream is not None and len(self._buffer) >= _CHUNK:
            await self._flush(self._stream)

    async def finish(self) -> bytes:
        """Everything, where it is in memory."""
        if self._stream is not None:
            await self._flush(self._stream)
        return bytes(self._buffer)

    async def _flush(self, stream: BinaryIO) -> None:
        data = bytes(self._buffer)
        self._buffer.clear()
        await asyncio.to_thread(stream.write, data)

    def close(self, *, keep: bool) -> None:
        """Closes the file, and deletes it unless it is to be kept."""
        if self._stream is not None and self._file is not None:
            self._stream.close()
            if not keep:
                self._file.unlink(missing_ok=True)


def _too_large(max_bytes: int) -> BodyTooLargeError:
    return BodyTooLargeError(f"The document is larger than {max_bytes} bytes.", "Send a smaller one, or parts of it.")


def _media_type(response: aiohttp.ClientResponse) -> str:
    named = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    return named if _MEDIA_TYPE.fullmatch(named) else _UNKNOWN_TYPE


def _name(response: aiohttp.ClientResponse) -> str:
    header = email.message.Message()
    header["Content-Disposition"] = response.headers.get("Content-Disposition", "")
    return document_name(header.get_filename() or unquote(response.url.raw_path))


def decode_data_url(url: str, *, max_bytes: int) -> tuple[bytes, str]:
    """The content of a data: URL (RFC 2397) in base64.

    Args:
        url: `data:<media type>;base64,<data>`, with padding and without white space.
        max_bytes: Most bytes of the content; more is refused before anything is decoded.

    Returns:
        The content, and the media type that the URL names (`application/octet-stream` where it names none).

    Raises:
        RequestError: It is no such URL.
        BodyTooLargeError: It is larger than `max_bytes`.
    """
    head, comma, payload = url[:_LONGEST_DATA_HEAD].partition(",")
    scheme, _, described = head.partition(":")
    media_type, *parameters = (part.strip().lower() for part in described.split(";"))
    if not comma or scheme.lower() != "data" or parameters[-1:] != ["base64"]:
        raise RequestError("The data: URL has no base64 in it.", "Write it as data:application/pdf;base64,JVBERi0...")
    if media_type and not _MEDIA_TYPE.fullmatch(media_type):
        raise RequestError("The data: URL names no media type.", "Write it as data:application/pdf;base64,JVBERi0...")
    payload = url[len(head) + 1 :]
    if len(payload) // 4 * 3 - payload[-2:].count("=") > max_bytes:
        raise _too_large(max_bytes)
    try:
        return base64.b64decode(payload, validate=True), media_type or _UNKNOWN_TYPE
    except ValueError:
        raise RequestError(
            "The data: URL holds no valid base64.", "Encode the whole document, with padding, without line breaks."
        ) from None
