"""A pool of render processes for asyncio programs."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

from pagemill.documents import wire
from pagemill.documents.options import RenderOptions
from pagemill.documents.process import ProcessDiedError, RenderProcess
from pagemill.domain import DocumentInfo, DocumentSource, Page, PageImage
from pagemill.domain.errors import RenderError
from pagemill.telemetry import get_logger

if TYPE_CHECKING:
    from typing_extensions import Self

_ABANDONED_GRACE_S = 1.0
_CRASH_ATTEMPTS = 2

_log = get_logger(__name__)


@dataclass(slots=True)
class _Seat:
    """A place for one process; None before its first use and after a death."""

    process: RenderProcess | None = None


class RenderPool:
    """Opens documents and renders pages in processes that are limited, recycled and, when stuck, killed.

    A crash or a hang costs the page that caused it, never the run. Use it as `async with RenderPool() as pool`,
    in one event loop; any number of tasks may call it at once.

    Args:
        options: What pages look like, and the limits.
        workers: Number of processes; None for one per available CPU.
    """

    def __init__(self, options: RenderOptions | None = None, *, workers: int | None = None) -> None:
        self.options = options or RenderOptions()
        self.workers = max(1, workers if workers is not None else _available_cpus())
        self._seats = [_Seat() for _ in range(self.workers)]
        self._idle: asyncio.LifoQueue[_Seat | None] = asyncio.LifoQueue()
        self._waiting = 0
        self._jobs: set[asyncio.Task[Any]] = set()
        self._started = False

    async def start(self) -> None:
        """Starts all processes. Safe to call twice.

        Raises:
            ConfigurationError: They do not come up.
        """
        if self._started:
            return
        self._started = True
        try:
            await asyncio.gather(*(self._process(seat) for seat in self._seats))
        except BaseException:
            await self.aclose()
            raise
        for seat in self._seats:
            self._idle.put_nowait(seat)

    async def aclose(self) -> None:
        """Gives up what is being rendered and ends all processes. Safe to call twice."""
        self._started = False
        for job in self._jobs:
            job.cancel()
        await asyncio.gather(*self._jobs, return_exceptions=True)
        while not self._idle.empty():
            self._idle.get_nowait()
        for _ in range(self._waiting):
            self._idle.put_nowait(None)
        processes = [seat.process for seat in self._seats if seat.process]
        for seat in self._seats:
            seat.process = None
        await asyncio.gather(*(process.close() for process in processes))

    async def __aenter__(self) -> Self:
        """Starts the pool."""
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Closes the pool."""
        await self.aclose()

    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids of the running render processes."""
        return tuple(seat.process.pid for seat in self._seats if seat.process)

    @property
    def resident_bytes(self) -> int:
        """Resident memory of all render processes, as each last said."""
        return sum(seat.process.rss for seat in self._seats if seat.process)

    async def inspect(self, source: DocumentSource) -> DocumentInfo:
        """Opens and hashes a document and lists its pages.

        Raises:
            InputError: The document cannot be read, by the fitting subclass.
        """
        request = {**_request(source), "do": "inspect"}
        message, _ = await self._submit(request, source.name, self.options.inspect_timeout_s)
        with _reading_answer(source.name):
            return wire.info_from_json(message)

    async def render(self, source: DocumentSource, page: Page, *, text_layer: bool = False) -> PageImage:
        """Renders one page.

        Args:
            source: The document.
            page: One of the pages that `inspect` gave.
            text_layer: Whether to extract and judge the page's own text as well.

        Raises:
            InputError: This page cannot be rendered, by the fitting subclass.
        """
        request = {**_request(source), "do": "render", "index": page.index, "text_layer": text_layer}
        where = f"Page {page.index + 1} of {source.name}"
        message, data = await self._submit(request, where, self.options.page_timeout_s)
        with _reading_answer(where):
            return wire.page_from_json(page.index, message, data)

    async def _submit(self, request: dict[str, Any], where: str, timeout_s: float) -> tuple[dict[str, Any], bytes]:
        if not self._started:
            raise RuntimeError("RenderPool is not started")
        self._waiting += 1
        try:
            seat = await self._idle.get()
        finally:
            self._waiting -= 1
        if seat is None:
            raise RuntimeError("RenderPool was closed")
        job = asyncio.create_task(self._serve(seat, request, where, timeout_s))
        self._jobs.add(job)
        job.add_done_callback(self._forget)
        try:
            return await asyncio.shield(job)
        except asyncio.CancelledError:
            # The page may be nearly done, and a new process costs more than that: only a slow one is killed.
            asyncio.get_running_loop().call_later(_ABANDONED_GRACE_S, job.cancel)
            raise

    def _forget(self, job: asyncio.Task[Any]) -> None:
        self._jobs.discard(job)
        if not job.cancelled():
            job.exception()  # marks it as seen where the caller has gone

    async def _serve(
        self, seat: _Seat, request: dict[str, Any], where: str, timeout_s: float
    ) -> tuple[dict[str, Any], bytes]:
        try:
            message, data = await self._ask(seat, request, where, timeout_s)
        except BaseException:
            await self._discard(seat)
            raise
        else:
            if "error" in message:
                raise wire.error_from_json(message)
            return message, data
        finally:
            await self._recycle(seat)
            self._idle.put_nowait(seat)

    async def _ask(
        self, seat: _Seat, request: dict[str, Any], where: str, timeout_s: float
    ) -> tuple[dict[str, Any], bytes]:
        words = ""
        for _ in range(_CRASH_ATTEMPTS):
            process = await self._process(seat)
            try:
                return await asyncio.wait_for(process.ask(request), timeout_s)
            except asyncio.TimeoutError:
                raise RenderError(
                    f"{where} took longer than {timeout_s:g} s and was given up.",
                    "Raise page_timeout_s if the document is worth waiting for.",
                ) from None
            except ProcessDiedError:
                await self._discard(seat)
                words = process.last_words()
                _log.warning("render_process_died", where=where, cause=words)
        raise RenderError(
            f"{where} crashed its render process{f' ({words})' if words else ''}.",
            "Try to save the document anew with another program.",
        )

    async def _process(self, seat: _Seat) -> RenderProcess:
        if seat.process is None:
            seat.process = await RenderProcess.start(self.options)
        return seat.process

    async def _discard(self, seat: _Seat) -> None:
        process, seat.process = seat.process, None
        if process is not None:
            await process.kill()

    async def _recycle(self, seat: _Seat) -> None:
        process = seat.process
        if process is not None and (
            process.pages >= self.options.recycle_after_pages or process.rss > self.options.recycle_above_bytes
        ):
            seat.process = None
            await process.close()


@contextlib.contextmanager
def _reading_answer(where: str) -> Iterator[None]:
    try:
        yield
    except wire.WireError as error:
        raise RenderError(f"{where} led to a wrong answer of its render process: {error}.", "Report this.") from error


def _request(source: DocumentSource) -> dict[str, Any]:
    return {"path": os.fspath(source.path), "name": source.name, "passwords": list(source.passwords)}


def _available_cpus() -> int:
    with contextlib.suppress(AttributeError):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
