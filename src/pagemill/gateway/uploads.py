"""Documents as they arrive: spooled to a scratch folder, hashed, and looked at."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError

from pagemill.documents.sniff import HEAD_BYTES, detect_format
from pagemill.domain.errors import BodyTooLargeError, RequestError
from pagemill.gateway.errors import validation_problem
from pagemill.gateway.fetch import decode_data_url, fetch_document
from pagemill.gateway.names import document_name
from pagemill.gateway.options import GatewayOptions
from pagemill.gateway.schemas import FileDocument, UrlDocument

_Model = TypeVar("_Model", bound=BaseModel)

_PREFIX = "request-"
_CHUNK = 2**20
_DOCUMENT = "document"
_ABANDONED_AFTER_S = 3600.0


@dataclass(frozen=True, slots=True)
class Upload:
    """A document that has arrived.

    Attributes:
        path: The file; it goes with its folder.
        name: Its name, fit for display.
        size: Its bytes.
        sha256: Hash of them, in hex.
    """

    path: Path
    name: str
    size: int
    sha256: str


@contextlib.contextmanager
def scratch_folder(scratch: Path) -> Iterator[Path]:
    """A folder for what one request brings; it is gone after the block, whatever happens in it."""
    scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=_PREFIX, dir=scratch, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def remove_abandoned_uploads(scratch: Path) -> None:
    """Removes what killed processes have left; what is younger than an hour may be in use."""
    with contextlib.suppress(OSError):
        for folder in scratch.glob(f"{_PREFIX}*"):
            with contextlib.suppress(OSError):
                if time.time() - folder.stat().st_mtime > _ABANDONED_AFTER_S:
                    shutil.rmtree(folder, ignore_errors=True)


class Spool:
    """Takes the bytes of a document as they come, and writes them to a file in a thread.

    Args:
        path: The file.
        name: The document's name as the client sent it.
    """

    def __init__(self, path: Path, name: str | None) -> None:
        self._path = path
        self._name = document_name(name)
        self._stream = path.open("wb")
        self._buffer = bytearray()
        self._head = b""
        self._hash = hashlib.sha256()
        self._size = 0

    @property
    def full(self) -> bool:
        """Whether `flush` is due."""
        return len(self._buffer) >= _CHUNK

    def take(self, data: bytes) -> None:
        """Takes what has arrived."""
        self._buffer += data

    async def flush(self) -> None:
        """Writes what was taken."""
        data = bytes(self._buffer)
        self._buffer.clear()
        self._head = (self._head + data[:HEAD_BYTES])[:HEAD_BYTES]
        self._size += len(data)
        await asyncio.to_thread(self._write, data)

    def _write(self, data: bytes) -> None:
        self._hash.update(data)
        self._stream.write(data)

    async def finish(self) -> Upload:
        """The document.

        Raises:
            InputError: It is no PDF and no image.
        """
        await self.flush()
        self._stream.close()
        detect_format(self._head, self._name)
        return Upload(self._path, self._name, self._size, self._hash.hexdigest())

    def close(self) -> None:
        """Closes the file; safe to call twice."""
        self._stream.close()


async def spool_body(request: Request, folder: Path) -> Path:
    """Writes the body of a request to a file, so that slow clients hold no memory."""
    path = folder / "body"
    with contextlib.closing(path.open("wb")) as stream:
        buffer = bytearray()
        async for chunk in request.stream():
            buffer += chunk
            if len(buffer) >= _CHUNK:
                await asyncio.to_thread(stream.write, bytes(buffer))
                buffer.clear()
        await asyncio.to_thread(stream.write, bytes(buffer))
    return path


async def parse_body(model: type[_Model], path: Path) -> _Model:
    """What a request says in JSON.

    Args:
        model: Its form.
        path: Its body, see `spool_body`.

    Raises:
        RequestError: It has another form.
    """
    try:
        return await asyncio.to_thread(lambda: model.model_validate_json(path.read_bytes()))
    except ValidationError as error:
        raise validation_problem(error) from None


async def take_inline(document: UrlDocument | FileDocument, folder: Path, options: GatewayOptions) -> Upload | None:
    """The document that a JSON request carries; None where it names one by an http(s) URL, see `take_remote`.

    Raises:
        RequestError: It is in no proper form, or too large.
        InputError: It is no PDF and no image.
    """
    most = options.limits.body_bytes
    path = folder / _DOCUMENT
    if isinstance(document, FileDocument):
        return await _keep(path, document.name, await asyncio.to_thread(_decode, document.data_base64, most))
    url = document.document_url
    if url[:5].lower() != "data:":
        return None
    data, _media_type = await asyncio.to_thread(lambda: decode_data_url(url, max_bytes=most))
    return await _keep(path, document.name, data)


async def take_remote(url: str, name: str | None, folder: Path, options: GatewayOptions) -> Upload:
    """The document that an http(s) URL leads to.

    Raises:
        RequestError: It is not fetched, cannot be fetched, or is too large.
        InputError: It is no PDF and no image.
    """
    path = folder / _DOCUMENT
    fetched = await fetch_document(url, options.fetch, max_bytes=options.limits.body_bytes, to=path)
    return await asyncio.to_thread(_look_at, path, name or fetched.name)


def _decode(text: str, most: int) -> bytes:
    if len(text) // 4 * 3 - text[-2:].count("=") > most:
        raise BodyTooLargeError(f"The document is larger than {most} bytes.", "Send a smaller one, or parts of it.")
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise RequestError(
            "`document.data_base64` is no valid base64.",
            "Encode the whole document, with padding, without line breaks.",
            param="document.data_base64",
        ) from None


async def _keep(path: Path, name: str | None, data: bytes) -> Upload:
    spool = Spool(path, name)
    try:
        spool.take(data)
        return await spool.finish()
    finally:
        spool.close()


def _look_at(path: Path, name: str) -> Upload:
    shown = document_name(name)
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        head = stream.read(HEAD_BYTES)
        detect_format(head, shown)
        digest.update(head)
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return Upload(path, shown, path.stat().st_size, digest.hexdigest())
