"""One page: rendered, recognised, kept. Its failure is data, never the end of its document."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from pathlib import PurePath

from pagemill.conversion.checks import check_text
from pagemill.conversion.enhance import enhanced
from pagemill.conversion.flow import ByteBudget
from pagemill.conversion.ink import measure_ink
from pagemill.conversion.ladder import read_page
from pagemill.conversion.options import ConversionOptions, ReusePolicy
from pagemill.conversion.orientation import reading_quality, turned, turns_to_try
from pagemill.conversion.page_store import DocumentKey, PageStore
from pagemill.documents import RenderPool
from pagemill.domain import (
    DocumentInfo,
    DocumentSource,
    FinishReason,
    Page,
    PageError,
    PageFlag,
    PageImage,
    PageResult,
    SamplingParams,
    TextVerdict,
)
from pagemill.domain.errors import CorruptDocumentError, EngineError, EngineTimeoutError, InputError, PagemillError
from pagemill.engines import Engine
from pagemill.engines.page_clock import within
from pagemill.telemetry import get_logger

_log = get_logger("pagemill.conversion")


@dataclass(frozen=True, slots=True)
class PageJob:
    """A page to convert, and where its result belongs."""

    source: DocumentSource
    info: DocumentInfo
    page: Page
    key: DocumentKey


def reusable(stored: PageResult | None, policy: ReusePolicy) -> bool:
    """Whether a stored result makes the work on its page unnecessary."""
    if stored is None or policy is ReusePolicy.NONE:
        return False
    return stored.ok or policy is ReusePolicy.ALL


def document_key(info: DocumentInfo, engine: Engine, pool: RenderPool, options: ConversionOptions) -> DocumentKey:
    """Everything that the results of a document depend on."""
    capabilities = engine.capabilities
    parts = [engine.name, capabilities.fingerprint, pool.options.fingerprint(), repr(options.sampling)]
    if capabilities.generative:
        parts.append(f"{options.enhance.value};{options.orient};{options.readings}")
    return DocumentKey.of(info.sha256, *parts)


class PageBounds:
    """What all pages share that are under way at once, whatever the options of their documents.

    Args:
        engine: A started engine.
        pool: A started render pool.
        buffer_bytes: Encoded page images that may wait between rendering and recognition, in bytes.
    """

    def __init__(self, engine: Engine, pool: RenderPool, buffer_bytes: int) -> None:
        self.engine_slots = asyncio.Semaphore(max(1, engine.capabilities.max_in_flight))
        self.render_slots = asyncio.Semaphore(pool.workers)
        self.budget = ByteBudget(buffer_bytes)


class PageWorker:
    """Takes pages through rendering and recognition, within bounds that all documents share.

    Args:
        engine: A started engine.
        pool: A started render pool.
        store: Where results are kept.
        options: How documents are converted.
        bounds: Shared with other workers; its own by default.
    """

    def __init__(
        self,
        engine: Engine,
        pool: RenderPool,
        store: PageStore,
        options: ConversionOptions,
        bounds: PageBounds | None = None,
    ) -> None:
        self._engine = engine
        self._pool = pool
        self._store = store
        self._options = options
        self._bounds = bounds or PageBounds(engine, pool, options.buffer_bytes)
        self._done_here: set[tuple[DocumentKey, int]] = set()

    async def process(self, job: PageJob) -> tuple[PageResult, bool] | None:
        """Gives a page's result and whether it was made now; None while another run works on the page.

        Raises:
            OutputError: The result cannot be kept.
        """
        index = job.page.index
        with self._store.claim(job.key, index) as granted:
            if not granted:
                return None
            stored = self._store.load(job.key, index, figures=False)
            if stored is not None and (self._is_done(job) or reusable(stored, self._options.reuse)):
                return stored, False
            result = await self._convert(job)
            await asyncio.to_thread(self._store.save, job.key, result)
            self._done_here.add((job.key, index))
            return result, True

    def _is_done(self, job: PageJob) -> bool:
        """Whether this run made the page already, for another file with the same bytes."""
        return (job.key, job.page.index) in self._done_here

    async def _convert(self, job: PageJob) -> PageResult:
        index = job.page.index
        for attempt in range(1, self._options.page_attempts + 1):
            try:
                return await self._render_and_recognize(job, attempt)
            except (InputError, EngineError) as error:
                _log.info("page failed", document=job.source.name, page=index + 1, code=error.code, attempt=attempt)
                # The pool has retried a crashed render itself; only the engine's errors may pass.
                if attempt == self._options.page_attempts or not (isinstance(error, EngineError) and error.retryable):
                    return _failed(index, error, attempt)
            except Exception as error:  # noqa: BLE001 - an engine of someone else may raise anything
                _log.exception("engine raised an unexpected error", document=job.source.name, page=index + 1)
                return _failed(index, _unexpected(self._engine.name, error), attempt)
        raise AssertionError("page_attempts is at least 1")

    async def _render_and_recognize(self, job: PageJob, attempt: int) -> PageResult:
        await self._bounds.render_slots.acquire()
        rendering = True
        try:
            image = await self._pool.render(job.source, job.page, text_layer=self._engine.capabilities.wants_text_layer)
            async with self._bounds.budget.hold(len(image.data)):
                self._bounds.render_slots.release()
                rendering = False
                async with self._bounds.engine_slots:
                    result = await self._read(image)
                    return replace(
                        result,
                        index=job.page.index,
                        attempts=result.attempts + attempt - 1,
                        flags=(*result.flags, *((PageFlag.DAMAGED_SOURCE,) if image.warnings else ())),
                        warnings=(*result.warnings, *image.warnings),
                    )
        finally:
            if rendering:
                self._bounds.render_slots.release()

    async def _read(self, image: PageImage) -> PageResult:
        capabilities = self._engine.capabilities
        if not capabilities.generative:
            return await self._recognize(image, self._options.sampling)
        # An engine that writes text writes some for an empty page as well: it is not asked.
        ink = await asyncio.to_thread(measure_ink, image)
        if ink.is_blank and image.warnings:
            raise CorruptDocumentError(f"Nothing of the page could be drawn: {'; '.join(image.warnings)}.")
        if ink.is_blank:
            return PageResult(image.index, "", flags=(PageFlag.BLANK,), width=image.width, height=image.height)
        image = await asyncio.to_thread(enhanced, image, self._options.enhance, ink)
        turns = await asyncio.to_thread(turns_to_try, image) if self._options.orient and not _has_text(image) else (0,)
        result = await self._read_turned(image, turns)
        return replace(result, flags=(*result.flags, *check_text(result.markdown, ink)))

    async def _read_turned(self, image: PageImage, turns: tuple[int, ...]) -> PageResult:
        """Reads a page under each turn, and keeps the reading that looks most like language."""
        best: PageResult | None = None
        for degrees in turns:
            result = await read_page(
                self._recognize,
                await asyncio.to_thread(turned, image, degrees),
                self._options.sampling,
                attempts=self._options.readings,
                max_long_side=self._engine.capabilities.max_long_side,
            )
            if degrees:
                result = replace(result, flags=(*result.flags, PageFlag.ROTATED))
            if best is None or reading_quality(result) > reading_quality(best):
                best = result
        assert best is not None
        return best

    async def _recognize(self, image: PageImage, params: SamplingParams) -> PageResult:
        limit = self._options.page_timeout_s
        try:
            result = await within(limit, self._engine.recognize(image, params))
        except (TimeoutError, asyncio.TimeoutError) as error:
            raise EngineTimeoutError(
                f"The engine '{self._engine.name}' did not finish the page within {limit:g} s of work.",
                "Raise --page-timeout if pages are really that slow.",
            ) from error
        for figure in result.figures:
            if figure.name != PurePath(figure.name).name or figure.name.startswith("."):
                raise EngineError(
                    f"The engine '{self._engine.name}' named a picture {figure.name!r}, which is no plain file name.",
                    "Report it to the engine's authors.",
                )
        return result


def _has_text(image: PageImage) -> bool:
    """Whether the page's own text shows that it is the right way up."""
    return image.text_layer is not None and image.text_layer.verdict is TextVerdict.SANE


def _unexpected(engine: str, error: Exception) -> EngineError:
    return EngineError(
        f"The engine '{engine}' failed in an unexpected way ({type(error).__name__}: {error}).",
        "Run again with --log-level debug and report it to the engine's authors.",
    )


def _failed(index: int, error: PagemillError, attempts: int) -> PageResult:
    return PageResult(
        index=index,
        markdown="",
        finish_reason=FinishReason.ERROR,
        attempts=attempts,
        error=PageError(error.code, str(error), error.retryable),
    )
