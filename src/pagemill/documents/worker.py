"""The render process: reads requests from standard input, answers on standard output, until either is closed.

It is started by `pagemill.documents.process`, limits itself before it touches a file, and holds the last few
documents open so that a long PDF is parsed once.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import os
import signal
import sys
import warnings
from collections import OrderedDict
from collections.abc import Callable
from io import FileIO
from pathlib import Path
from typing import Any, BinaryIO

from pagemill.documents import wire
from pagemill.documents.encode import encode
from pagemill.documents.options import RenderOptions
from pagemill.documents.reader import Reader, open_reader
from pagemill.domain import DocumentInfo
from pagemill.domain.errors import InputError, LimitExceededError, SourceNotFoundError

_OPEN_DOCUMENTS = 4
_HASH_CHUNK = 1024**2
_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38


def run() -> None:
    """Serves and exits, without the interpreter's slow farewell."""
    main()
    os._exit(0)


def main() -> None:
    """Serves until standard input ends."""
    requests = sys.stdin.buffer
    # Native libraries that print must not garble the answers: those get a descriptor of their own.
    answers = FileIO(os.dup(1), "wb")
    os.dup2(2, 1)
    start = _receive(requests)
    if start is None:
        return
    options = RenderOptions(**start["options"])
    _confine(options, start["parent"])
    warnings.simplefilter("ignore")
    worker = _Worker(options)
    _send(answers, {"ready": os.getpid()})
    # Most documents are PDFs: what reads them is loaded while the parent prepares its first request.
    importlib.import_module("pagemill.documents.pdf")
    while (request := _receive(requests)) is not None:
        message, data = worker.answer(request)
        message["rss"] = _resident_bytes()
        _send(answers, message, data)


class _Worker:
    def __init__(self, options: RenderOptions) -> None:
        self._options = options
        self._open: OrderedDict[tuple[Any, ...], Reader] = OrderedDict()

    def answer(self, request: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        name = str(request["name"])
        try:
            operation: Callable[[dict[str, Any]], tuple[dict[str, Any], bytes]] = (
                self._inspect if request["do"] == "inspect" else self._render
            )
            return operation(request)
        except InputError as error:
            return wire.error_to_json(error), b""
        except MemoryError:
            self._close_all()
            limit = self._options.memory_limit_bytes // 1024**2
            return wire.error_to_json(
                LimitExceededError(
                    f"{name} needs more memory than a render process may have ({limit} MiB).",
                    "Raise memory_limit_bytes or scale the source down.",
                )
            ), b""

    def _inspect(self, request: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        reader = self._reader(request)
        pages = reader.pages()
        sha256 = _sha256(Path(request["path"]), str(request["name"]))
        return wire.info_to_json(DocumentInfo(sha256, reader.format, pages, reader.warnings)), b""

    def _render(self, request: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        raster = self._reader(request).render(int(request["index"]), text_layer=bool(request["text_layer"]))
        return wire.page_to_json(raster, self._options.media_type), encode(raster.image, self._options)

    def _reader(self, request: dict[str, Any]) -> Reader:
        path, name = Path(request["path"]), str(request["name"])
        passwords = tuple(request["passwords"])
        try:
            status = path.stat()
        except OSError as error:
            raise SourceNotFoundError(f"{name} cannot be read: {error.strerror}.", "Check its path.") from error
        key = (path, status.st_mtime_ns, status.st_size, status.st_ino, passwords)
        reader = self._open.get(key)
        if reader is None:
            while len(self._open) >= _OPEN_DOCUMENTS:
                self._open.popitem(last=False)[1].close()
            reader = open_reader(path, name, passwords, self._options)
            self._open[key] = reader
        self._open.move_to_end(key)
        return reader

    def _close_all(self) -> None:
        while self._open:
            self._open.popitem()[1].close()


def _receive(requests: BinaryIO) -> dict[str, Any] | None:
    head = requests.read(wire.HEAD.size)
    if len(head) < wire.HEAD.size:
        return None
    json_length, _ = wire.unpack_head(head)
    return wire.unpack_json(requests.read(json_length))


def _send(answers: FileIO, message: dict[str, Any], data: bytes = b"") -> None:
    view = memoryview(wire.pack(message, data))
    while view:
        view = view[answers.write(view) :]


def _sha256(path: Path, name: str) -> str:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(_HASH_CHUNK):
                digest.update(chunk)
    except OSError as error:
        raise SourceNotFoundError(f"{name} cannot be read: {error.strerror}.", "Check its path.") from error
    return digest.hexdigest()


def _resident_bytes() -> int:
    try:
        with Path("/proc/self/statm").open("rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _confine(options: RenderOptions, parent: int) -> None:
    """Bounds what this process can take and do; each bound where the system has it."""
    if sys.platform.startswith("linux"):
        import ctypes  # noqa: PLC0415

        libc = ctypes.CDLL(None)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if os.getppid() != parent:  # it died before the request above was made
            os._exit(1)
    try:
        import resource  # noqa: PLC0415
    except ImportError:  # Windows
        return
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = {"RLIMIT_CORE": 0, "RLIMIT_FSIZE": 0, "RLIMIT_AS": options.memory_limit_bytes or None}
    for name, limit in limits.items():
        if limit is not None and hasattr(resource, name):
            with contextlib.suppress(OSError, ValueError):
                resource.setrlimit(getattr(resource, name), (limit, limit))
