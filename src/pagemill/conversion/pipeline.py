"""Documents in, results out: many documents at once, their pages in flight together, everything bounded."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pagemill.conversion.assemble import document_markdown
from pagemill.conversion.events import DocumentFinished, DocumentStarted, EventHandler, PageFinished, RunStarted
from pagemill.conversion.export import DocumentRecord, PageReader, export_document
from pagemill.conversion.headings import HeadingLevels
from pagemill.conversion.options import ConversionOptions
from pagemill.conversion.output_tree import OutputSlot, OutputTree
from pagemill.conversion.page_store import DirectoryPageStore, DocumentKey, MemoryPageStore, PageStore
from pagemill.conversion.page_work import PageJob, PageWorker, document_key, reusable
from pagemill.documents import PageSelection, RenderPool
from pagemill.domain import (
    ConversionResult,
    ConversionStatus,
    DocumentInfo,
    DocumentSource,
    Page,
    PageResult,
    Usage,
)
from pagemill.domain.errors import OutputError, PagemillError
from pagemill.engines import Engine
from pagemill.telemetry import get_logger

_BUSY_ELSEWHERE_POLL_S = 0.25
_MOST_IN_FLIGHT = 400
"""Each page in flight holds a lock file open, and the usual limit is 1,024 open files."""

_log = get_logger("pagemill.conversion")


@dataclass(frozen=True, slots=True)
class _Opened:
    """A document that was opened and has its place in the output."""

    source: DocumentSource
    info: DocumentInfo
    pages: tuple[Page, ...]
    key: DocumentKey
    slot: OutputSlot | None
    started: float


class Converter:
    """Converts documents with one engine.

    Args:
        engine: The engine; `run` starts it and leaves it running.
        pool: The render pool; `run` starts it and leaves it running.
        output: Folder for the files and the state of the conversion; None keeps everything in memory.
        options: How documents are converted.
        on_event: Called for each event, in the event loop's thread; it must not block.
        keep_pages: Whether results carry their pages in full and the document's Markdown. Without it, and with an
            output folder, they carry neither blocks nor pictures: those are in the files.
    """

    def __init__(
        self,
        engine: Engine,
        pool: RenderPool,
        output: Path | None = None,
        options: ConversionOptions | None = None,
        *,
        on_event: EventHandler | None = None,
        keep_pages: bool = True,
    ) -> None:
        self._engine = engine
        self._pool = pool
        self._options = options or ConversionOptions()
        self._tree = None if output is None else OutputTree(output, overwrite_changed=self._options.overwrite_changed)
        self._store: PageStore = (
            MemoryPageStore() if self._tree is None else DirectoryPageStore(self._tree.state_folder)
        )
        self._selection = PageSelection.parse(self._options.pages)
        self._emit: EventHandler = on_event or (lambda _event: None)
        self._keep_pages = keep_pages

    async def run(self, sources: Sequence[DocumentSource]) -> AsyncGenerator[ConversionResult, None]:
        """Yields each document's result as it is complete, in no fixed order.

        Closing the iterator early cancels what is under way; finished pages stay in the output folder's state.

        Raises:
            EngineError, ConfigurationError: The engine cannot start.
        """
        if self._tree is not None:
            tree = self._tree
            sources = [source for source in sources if not tree.is_picture_of_output(source.path)]
        await self._pool.start()
        await self._engine.start()
        self._emit(RunStarted(len(sources)))
        worker = PageWorker(self._engine, self._pool, self._store, self._options)
        in_flight = asyncio.Semaphore(
            min(_MOST_IN_FLIGHT, 2 * max(1, self._engine.capabilities.max_in_flight)) + 2 * self._pool.workers
        )
        results: asyncio.Queue[ConversionResult | None] = asyncio.Queue()
        feeder = asyncio.create_task(self._feed(sources, worker, in_flight, results))
        try:
            while (result := await results.get()) is not None:
                yield result
            await feeder
        finally:
            feeder.cancel()
            await asyncio.gather(feeder, return_exceptions=True)

    async def _feed(
        self,
        sources: Sequence[DocumentSource],
        worker: PageWorker,
        in_flight: asyncio.Semaphore,
        results: asyncio.Queue[ConversionResult | None],
    ) -> None:
        """Opens documents in order, a few ahead, and starts each when there is room."""
        open_slots = asyncio.Semaphore(self._options.open_documents)
        documents: set[asyncio.Task[None]] = set()

        async def convert(opened: _Opened) -> None:
            try:
                results.put_nowait(await self._convert_document(opened, worker, in_flight))
            except Exception as error:  # noqa: BLE001 - a fault of one document must neither hide it nor end the others
                _log.exception("document failed in an unexpected way", document=opened.source.name)
                fault = OutputError(
                    f"{opened.source.name} failed in an unexpected way ({type(error).__name__}: {error}).",
                    "Run again: finished pages are kept. If it happens again, report it.",
                )
                results.put_nowait(self._unopened(opened.source, fault, opened.started))
            finally:
                open_slots.release()

        opening: deque[tuple[DocumentSource, float, asyncio.Task[DocumentInfo]]] = deque()
        remaining = iter(sources)
        try:
            while True:
                self._open_ahead(remaining, opening)
                if not opening:
                    break
                source, started, task = opening.popleft()
                try:
                    opened = self._admit(source, await task, started)
                except PagemillError as error:
                    results.put_nowait(self._unopened(source, error, started))
                    continue
                await open_slots.acquire()
                documents.add(document := asyncio.create_task(convert(opened)))
                document.add_done_callback(documents.discard)
            await asyncio.gather(*documents)
        except BaseException:
            for pending in (*documents, *(task for _, _, task in opening)):
                pending.cancel()
            await asyncio.gather(*documents, *(task for _, _, task in opening), return_exceptions=True)
            raise
        finally:
            results.put_nowait(None)

    def _open_ahead(
        self,
        remaining: Iterator[DocumentSource],
        opening: deque[tuple[DocumentSource, float, asyncio.Task[DocumentInfo]]],
    ) -> None:
        while len(opening) < self._pool.workers:
            source = next(remaining, None)
            if source is None:
                return
            opening.append((source, time.monotonic(), asyncio.create_task(self._pool.inspect(source))))

    def _admit(self, source: DocumentSource, info: DocumentInfo, started: float) -> _Opened:
        """Chooses a document's pages and its place; called in the order of the sources, so names are stable."""
        pages = self._selection.apply(info.pages)
        slot = None
        if self._tree is not None:
            slot = self._tree.allocate(source, info.sha256, [f.value for f in self._options.formats])
        key = document_key(info, self._engine, self._pool, self._options)
        return _Opened(source, info, pages, key, slot, started)

    async def _convert_document(
        self, opened: _Opened, worker: PageWorker, in_flight: asyncio.Semaphore
    ) -> ConversionResult:
        pages: dict[int, PageResult] = {}
        for page in opened.pages:
            stored = self._store.load(opened.key, page.index, figures=False)
            if stored is not None and reusable(stored, self._options.reuse):
                pages[page.index] = self._slim(stored)
        reused = len(pages)
        self._emit(DocumentStarted(opened.source.name, len(opened.pages), reused))
        todo = [page for page in opened.pages if page.index not in pages]
        try:
            while todo:
                finished = await self._convert_pages(opened, todo, worker, in_flight)
                pages.update(finished)
                todo = [page for page in todo if page.index not in finished]
                if todo:
                    await asyncio.sleep(_BUSY_ELSEWHERE_POLL_S)
            result = self._result(opened, [pages[page.index] for page in opened.pages], reused)
            if self._tree is not None and opened.slot is not None:
                outputs = await asyncio.to_thread(self._write, self._tree, opened.slot, opened, result)
                result = replace(result, outputs=outputs)
            result = replace(result, duration_s=time.monotonic() - opened.started)
        except OutputError as error:
            result = replace(self._unopened(opened.source, error, opened.started, emit=False), info=opened.info)
        self._emit(DocumentFinished(result))
        return result

    async def _convert_pages(
        self, opened: _Opened, todo: list[Page], worker: PageWorker, in_flight: asyncio.Semaphore
    ) -> dict[int, PageResult]:
        """Takes pages through the worker once; those that another run works on are missing from the answer."""
        finished: dict[int, PageResult] = {}
        tasks: set[asyncio.Task[None]] = set()

        async def convert(page: Page) -> None:
            outcome = await worker.process(PageJob(opened.source, opened.info, page, opened.key))
            if outcome is not None:
                result, made_now = outcome
                finished[page.index] = self._slim(result)
                if made_now:
                    self._emit(PageFinished(opened.source.name, finished[page.index]))

        try:
            for page in todo:
                await in_flight.acquire()
                tasks.add(task := asyncio.create_task(convert(page)))
                # Not in the task itself: one that is cancelled before its first step would never give it back.
                task.add_done_callback(lambda _task: in_flight.release())
                if failed := next((t for t in tasks if t.done() and t.exception()), None):
                    await failed
                tasks = {t for t in tasks if not t.done()} | {task}
            await asyncio.gather(*tasks)
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise
        return finished

    def _slim(self, result: PageResult) -> PageResult:
        """What is held of a page until its document is complete; the rest is in the store."""
        return result if self._tree is None else replace(result, blocks=(), figures=())

    def _load_pages(self, opened: _Opened, *, figures: bool) -> Iterator[PageResult]:
        for page in opened.pages:
            result = self._store.load(opened.key, page.index, figures=figures)
            if result is None:
                raise OutputError(
                    f"The stored result of page {page.index + 1} of {opened.source.name} is gone or damaged.",
                    "Run again: only that page is done anew.",
                )
            yield result

    def _page_reader(self, opened: _Opened) -> PageReader:
        """Reads a document's pages from the store, with heading levels that hold over all of them."""
        levels = HeadingLevels.of(self._load_pages(opened, figures=False))
        return lambda: (levels.apply(page) for page in self._load_pages(opened, figures=True))

    def _result(self, opened: _Opened, pages: list[PageResult], reused: int) -> ConversionResult:
        good = sum(page.ok for page in pages)
        status = ConversionStatus.PARTIAL_SUCCESS
        if good == len(pages):
            status = ConversionStatus.SUCCESS
        elif good == 0 and not any(page.markdown.strip() for page in pages):
            status = ConversionStatus.FAILURE
        markdown = ""
        if self._keep_pages:
            pages = list(self._page_reader(opened)())
            markdown = "".join(
                document_markdown(
                    pages,
                    self._options.furniture,
                    opened.slot.assets_link if opened.slot else "",
                    page_markers=self._options.page_markers,
                )
            )
        return ConversionResult(
            source=opened.source,
            status=status,
            pages=tuple(pages),
            usage=sum((page.usage for page in pages), Usage()),
            engine=f"{self._engine.name} {self._engine.capabilities.version}",
            reused_pages=reused,
            markdown=markdown,
            info=opened.info,
        )

    def _write(self, tree: OutputTree, slot: OutputSlot, opened: _Opened, result: ConversionResult) -> tuple[Path, ...]:
        record = DocumentRecord(
            name=opened.source.name,
            sha256=opened.info.sha256,
            format=opened.info.format,
            pages=len(opened.info.pages),
            warnings=opened.info.warnings,
            status=result.status,
            engine=self._engine.name,
            engine_version=self._engine.capabilities.version,
            figure_folder=slot.assets_link,
        )

        read_pages = self._page_reader(opened)

        def files() -> Iterator[tuple[str, bytes]]:
            # Pictures first: a document never links to what is not there yet.
            for page in read_pages():
                for figure in page.figures:
                    yield f"{slot.assets}/{figure.name}", figure.data
            for output_format in self._options.formats:
                content = export_document(output_format, record, read_pages, self._options)
                yield slot.file(output_format.value), content

        return tree.write(slot, files())

    def _unopened(
        self, source: DocumentSource, error: PagemillError, started: float, *, emit: bool = True
    ) -> ConversionResult:
        result = ConversionResult(
            source=source,
            status=ConversionStatus.FAILURE,
            error=error,
            engine=f"{self._engine.name} {self._engine.capabilities.version}",
            duration_s=time.monotonic() - started,
        )
        if emit:
            self._emit(DocumentFinished(result))
        return result
