"""Results as files: assembled page by page by the conversion's own functions, so that they are its files."""

from __future__ import annotations

import asyncio
import io
import zipfile
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from enum import Enum
from pathlib import PurePath

from typing_extensions import Buffer

from pagemill.conversion import ConversionOptions, OutputFormat
from pagemill.conversion.assemble import document_piece
from pagemill.conversion.export import (
    JSON_CLOSING,
    JSON_SEPARATOR,
    DocumentRecord,
    json_opening,
    json_page,
    text_of_markdown,
)
from pagemill.conversion.headings import HeadingLevels
from pagemill.documents import PageSelection
from pagemill.domain import Job, PageResult
from pagemill.domain.errors import StoreUnavailableError
from pagemill.gateway.runtime import Services
from pagemill.jobs.options import conversion_options
from pagemill.jobs.page_codec import DecodedPage, decode_page

FIGURES = "figures"
"""Folder of the pictures as seen from a job's result."""

_AT_ONCE = 20


class ResultFormat(str, Enum):
    """Forms of a result."""

    MARKDOWN = "md"
    JSON = "json"
    HTML = "html"
    TEXT = "txt"
    ZIP = "zip"

    @property
    def media_type(self) -> str:
        """As in Content-Type."""
        return _MEDIA_TYPES[self]


_MEDIA_TYPES = {
    ResultFormat.MARKDOWN: "text/markdown; charset=utf-8",
    ResultFormat.JSON: "application/json",
    ResultFormat.HTML: "text/html; charset=utf-8",
    ResultFormat.TEXT: "text/plain; charset=utf-8",
    ResultFormat.ZIP: "application/zip",
}


@dataclass(frozen=True, slots=True)
class JobPages:
    """Pages of a job as they are in the store."""

    services: Services
    job: Job
    selection: PageSelection

    async def decoded(self) -> AsyncIterator[DecodedPage]:
        """All pages that are there, in order."""
        first = 0
        while stored := await self.services.jobs.pages(self.job.id, first=first, limit=_AT_ONCE):
            for page in await asyncio.to_thread(lambda stored=stored: [decode_page(item) for item in stored]):  # type: ignore[misc]
                yield page
            first = stored[-1].index + 1

    async def chosen(self) -> AsyncIterator[DecodedPage]:
        """Those that were asked for, with heading levels as they were on their pages."""
        async for page in self.decoded():
            if self.selection.includes(page.result.index + 1):
                yield page

    async def levelled(self) -> AsyncIterator[DecodedPage]:
        """Those that were asked for, with heading levels that hold over the document."""
        levels = HeadingLevels()
        async for page in self.decoded():
            levels.add(page.result)
        async for page in self.chosen():
            yield replace(page, result=levels.apply(page.result))

    async def results(self) -> AsyncIterator[PageResult]:
        """What was read on those pages."""
        async for page in self.levelled():
            yield page.result


def stream_result(
    services: Services, job: Job, result_format: ResultFormat, selection: PageSelection
) -> AsyncIterator[bytes]:
    """The result of a job as far as it is there, piece by piece.

    HTML and plain text need the whole Markdown in memory for a moment, all else one page.

    Args:
        services: Stores and settings.
        job: The job.
        result_format: Form of the result.
        selection: Pages that are wanted.
    """
    source = JobPages(services, job, selection)
    if result_format is ResultFormat.ZIP:
        return _zip(source)
    options = conversion_options(services.conversion, job.options)
    record = _record(services, job, FIGURES)
    if result_format is ResultFormat.JSON:
        return _encoded(_json(source, record, options))
    if result_format is ResultFormat.MARKDOWN:
        return _encoded(_markdown(source, record, options))
    return _encoded(_whole(source, record, options, OutputFormat(result_format.value)))


def _record(services: Services, job: Job, figure_folder: str) -> DocumentRecord:
    return DocumentRecord(
        name=job.name,
        sha256=job.sha256,
        format=job.format,
        pages=job.pages_total or 0,
        warnings=(),
        status=job.outcome or job.status,
        engine=services.engine.name,
        engine_version=services.engine.capabilities.version,
        figure_folder=figure_folder,
    )


async def _encoded(pieces: AsyncIterator[str]) -> AsyncIterator[bytes]:
    async for piece in pieces:
        yield piece.encode("utf-8", "replace")


async def _markdown(source: JobPages, record: DocumentRecord, options: ConversionOptions) -> AsyncIterator[str]:
    first = True
    async for page in source.results():
        piece = document_piece(
            page, options.furniture, record.figure_folder, page_markers=options.page_markers, first=first
        )
        if piece:
            yield piece
            first = False


async def _json(source: JobPages, record: DocumentRecord, options: ConversionOptions) -> AsyncIterator[str]:
    yield json_opening(record)
    first = True
    async for page in source.results():
        yield ("" if first else JSON_SEPARATOR) + json_page(page, record, options)
        first = False
    yield JSON_CLOSING


async def _whole(
    source: JobPages, record: DocumentRecord, options: ConversionOptions, output_format: OutputFormat
) -> AsyncIterator[str]:
    async with source.services.heavy:
        markdown = "".join([piece async for piece in _markdown(source, record, options)])
        yield await asyncio.to_thread(text_of_markdown, output_format, record, markdown)


async def _zip(source: JobPages) -> AsyncIterator[bytes]:
    """Pictures first, so that whoever reads a part of it finds no links to what is not there."""
    job = source.job
    stem = PurePath(job.name).stem
    folder = f"{stem}.assets"
    options = conversion_options(source.services.conversion, job.options)
    record = _record(source.services, job, folder)
    writer = _ZipWriter(job.finished_at or job.created_at)
    async for page in source.chosen():
        for name, blob in page.blobs.items():
            data = await source.services.blobs.get_bytes(blob)
            if data is None:
                raise StoreUnavailableError(f"The picture {name} of {job.id} is gone.", "Retry the job.")
            yield writer.picture(f"{folder}/{name}", data)
    for path, pieces in (
        (f"{stem}.md", _markdown(source, record, options)),
        (f"{stem}.json", _json(source, record, options)),
    ):
        writer.open(path)
        async for piece in pieces:
            yield await asyncio.to_thread(writer.text, piece)
        yield writer.close_file()
    yield writer.close()


class _Drain(io.RawIOBase):
    """Takes what a ZIP file writes; without a position, so that nothing that was written is changed later."""

    def __init__(self) -> None:
        self._written: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Buffer) -> int:
        piece = bytes(data)
        self._written.append(piece)
        return len(piece)

    def take(self) -> bytes:
        pieces, self._written = self._written, []
        return b"".join(pieces)


class _ZipWriter:
    """A ZIP file as it grows.

    Args:
        at: Time of its files, in seconds since the epoch.
    """

    def __init__(self, at: float) -> None:
        self._drain = _Drain()
        self._zip = zipfile.ZipFile(self._drain, "w")
        self._time = datetime.fromtimestamp(at, timezone.utc).timetuple()[:6]
        self._file: io.BufferedIOBase | None = None

    def _info(self, path: str, compression: int) -> zipfile.ZipInfo:
        info = zipfile.ZipInfo(path, self._time)
        info.compress_type = compression
        info.external_attr = 0o644 << 16
        return info

    def picture(self, path: str, data: bytes) -> bytes:
        """Adds a file whole; pictures are packed already."""
        self._zip.writestr(self._info(path, zipfile.ZIP_STORED), data)
        return self._drain.take()

    def open(self, path: str) -> None:
        """Begins a file."""
        self._file = self._zip.open(self._info(path, zipfile.ZIP_DEFLATED), "w")  # type: ignore[assignment]

    def text(self, piece: str) -> bytes:
        """Adds to the file."""
        assert self._file is not None
        self._file.write(piece.encode("utf-8", "replace"))
        return self._drain.take()

    def close_file(self) -> bytes:
        """Ends the file."""
        assert self._file is not None
        self._file.close()
        return self._drain.take()

    def close(self) -> bytes:
        """Ends the ZIP file."""
        self._zip.close()
        return self._drain.take()
