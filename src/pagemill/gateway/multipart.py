"""Forms with files, read while they stream in, everything bounded."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from fastapi import Request
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from pagemill.domain.errors import RequestError
from pagemill.gateway.uploads import Spool, Upload

_MAX_FIELDS = 64
_MAX_FIELD_BYTES = 64 * 2**10
_MAX_HEAD_BYTES = 8 * 2**10
_MAX_BOUNDARY = 200
_REMEDY = "Send multipart/form-data, as `curl -F file=@report.pdf` does."


@dataclass(frozen=True, slots=True)
class Form:
    """A form.

    Attributes:
        files: Those of the field `file`, in order.
        fields: The other fields, in order.
    """

    files: tuple[Upload, ...]
    fields: tuple[tuple[str, str], ...]


async def read_form(request: Request, folder: Path, *, max_files: int) -> Form:
    """Reads a form; its files are those of the field `file`.

    Args:
        request: The request.
        folder: Where files go.
        max_files: How many there may be.

    Raises:
        RequestError: It is no such form, or has too many or too large parts.
        InputError: A file is no PDF and no image.
    """
    media_type, parameters = parse_options_header(request.headers.get("content-type", ""))
    boundary = parameters.get(b"boundary", b"")
    if media_type != b"multipart/form-data" or not 0 < len(boundary) <= _MAX_BOUNDARY:
        shown = media_type.decode("ascii", "replace")[:100] or "of no type"
        raise RequestError(f"The body is {shown}, no form with a file.", _REMEDY)
    reader = _Reader(boundary, folder, max_files)
    try:
        async for chunk in request.stream():
            await reader.feed(chunk)
        return await reader.finish()
    except FormParserError as error:
        raise RequestError(f"The form cannot be read ({error}).", _REMEDY) from None
    finally:
        reader.close()


@dataclass
class _Part:
    """A part under way: a file where `spool` is there, else a field."""

    head: dict[bytes, bytes] = field(default_factory=dict)
    head_bytes: int = 0
    name: str = ""
    value: bytearray = field(default_factory=bytearray)
    spool: Spool | None = None


class _Reader:
    """What the parser calls; what must be awaited is put off until it has returned."""

    def __init__(self, boundary: bytes, folder: Path, max_files: int) -> None:
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._on_part_begin,
                "on_header_field": self._on_header_field,
                "on_header_value": self._on_header_value,
                "on_header_end": self._on_header_end,
                "on_headers_finished": self._on_headers_finished,
                "on_part_data": self._on_part_data,
                "on_part_end": self._on_part_end,
                "on_end": self._on_end,
            },
        )
        self._folder = folder
        self._max_files = max_files
        self._part = _Part()
        self._header = bytearray()
        self._header_value = bytearray()
        self._spools: list[Spool] = []
        self._ended: list[Spool] = []
        self._files: list[Upload] = []
        self._fields: list[tuple[str, str]] = []
        self._complete = False

    async def feed(self, data: bytes) -> None:
        """Takes a piece of the body."""
        self._parser.write(data)
        await self._work_off()

    async def finish(self) -> Form:
        """The form, once all has come."""
        self._parser.finalize()
        if not self._complete:
            raise RequestError("The form ends before its last boundary.", _REMEDY)
        await self._work_off()
        return Form(tuple(self._files), tuple(self._fields))

    async def _work_off(self) -> None:
        for spool in self._ended:
            self._files.append(await spool.finish())
        self._ended.clear()
        if self._part.spool is not None and self._part.spool.full:
            await self._part.spool.flush()

    def close(self) -> None:
        for spool in self._spools:
            spool.close()

    def _on_part_begin(self) -> None:
        self._part = _Part()

    def _on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._grow_head(end - start)
        self._header += data[start:end]

    def _on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._grow_head(end - start)
        self._header_value += data[start:end]

    def _grow_head(self, size: int) -> None:
        self._part.head_bytes += size
        if self._part.head_bytes > _MAX_HEAD_BYTES:
            raise RequestError(f"The head of a part of the form is longer than {_MAX_HEAD_BYTES} bytes.", _REMEDY)

    def _on_header_end(self) -> None:
        self._part.head[bytes(self._header).lower()] = bytes(self._header_value)
        self._header.clear()
        self._header_value.clear()

    def _on_headers_finished(self) -> None:
        _, parameters = parse_options_header(self._part.head.get(b"content-disposition", b""))
        self._part.name = parameters.get(b"name", b"").decode("utf-8", "replace")
        if self._part.name == "file":
            if len(self._spools) >= self._max_files:
                raise RequestError(
                    f"The form has more than {self._max_files} file{'' if self._max_files == 1 else 's'}.",
                    "Send several documents to /v1/batches, and no more than gateway.limits.files.",
                    param="file",
                )
            name = parameters.get(b"filename", b"").decode("utf-8", "replace")
            self._part.spool = Spool(self._folder / f"file-{len(self._spools)}", name)
            self._spools.append(self._part.spool)
        elif b"filename" in parameters:
            raise RequestError(
                f"The form has a file in the field {self._part.name[:100]!r}.",
                "Send it in the field `file`: curl -F file=@report.pdf.",
                param=self._part.name[:100],
            )
        elif len(self._fields) >= _MAX_FIELDS:
            raise RequestError(f"The form has more than {_MAX_FIELDS} fields.", _REMEDY)

    def _on_part_data(self, data: bytes, start: int, end: int) -> None:
        if self._part.spool is not None:
            self._part.spool.take(data[start:end])
            return
        self._part.value += data[start:end]
        if len(self._part.value) > _MAX_FIELD_BYTES:
            name = self._part.name[:100]
            raise RequestError(f"The field {name!r} is longer than {_MAX_FIELD_BYTES} bytes.", _REMEDY, param=name)

    def _on_part_end(self) -> None:
        if self._part.spool is not None:
            self._ended.append(self._part.spool)
            return
        try:
            value = self._part.value.decode("utf-8")
        except UnicodeDecodeError:
            name = self._part.name[:100]
            raise RequestError(f"The field {name!r} is no UTF-8.", _REMEDY, param=name) from None
        self._fields.append((self._part.name, value))

    def _on_end(self) -> None:
        self._complete = True
