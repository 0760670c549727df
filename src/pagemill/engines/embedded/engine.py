"""The embedded engine as others see it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from pagemill._version import __version__
from pagemill.domain import PageImage, PageResult, SamplingParams
from pagemill.domain.errors import EngineError, EngineUnavailableError, PagemillError
from pagemill.engines.embedded import weights
from pagemill.engines.embedded.detection import Detector
from pagemill.engines.embedded.layout import LayoutModel
from pagemill.engines.embedded.options import EmbeddedOptions
from pagemill.engines.embedded.pipeline import PagePipeline
from pagemill.engines.embedded.reading import Reader
from pagemill.engines.embedded.recognition import Recogniser
from pagemill.engines.embedded.sessions import Session
from pagemill.engines.protocol import EngineCapabilities, EngineHealth

_REVISION = "1"
"""To be raised with every change of the stages that may change what a page says."""


class _Stopped(Exception):  # noqa: N818 - a signal between our own threads, never seen outside
    """The page is no longer wanted."""


class EmbeddedEngine:
    """Reads pages on the CPU, each in a thread of its own.

    Args:
        options: See `EmbeddedOptions`.

    Raises:
        MissingDependencyError: A package with weights is not installed.
    """

    def __init__(self, options: EmbeddedOptions | None = None) -> None:
        self._options = options or EmbeddedOptions()
        for item in weights.ALL_WEIGHTS:
            weights.locate(item)
        self._capabilities = EngineCapabilities(
            version=__version__,
            fingerprint=f"embedded-{_REVISION}-{weights.fingerprint()}-{self._options.min_confidence:g}",
            max_in_flight=self._options.page_threads,
            media_types=("image/png", "image/jpeg", "image/webp"),
            wants_text_layer=True,
        )
        self._pipeline: PagePipeline | None = None
        self._threads: _Threads | None = None
        self._starting = asyncio.Lock()
        self._closed = threading.Event()

    @property
    def name(self) -> str:
        """Short name, as in `--engine`."""
        return "embedded"

    @property
    def capabilities(self) -> EngineCapabilities:
        """What it tells about itself."""
        return self._capabilities

    async def start(self) -> None:
        """Loads the models; about a second. Safe to call twice, and again after `aclose`.

        Raises:
            ConfigurationError: A model file is not the expected one.
            EngineError: The runtime cannot load a model.
        """
        async with self._starting:
            if self._pipeline is not None:
                return
            self._closed = threading.Event()
            threads = _Threads(self._options)
            try:
                self._pipeline = await asyncio.get_running_loop().run_in_executor(
                    threads.pages, _load, threads, self._options
                )
            except BaseException:
                threads.shutdown()
                raise
            self._threads = threads

    async def recognize(self, page: PageImage, params: SamplingParams) -> PageResult:
        """Reads one page. A cancelled call stops its thread at the next line.

        Raises:
            EngineUnavailableError: The engine was not started, or is closed.
            RequestRejectedError: The image cannot be decoded.
            EngineError: A model or a stage failed.
        """
        pipeline, threads, closed = self._pipeline, self._threads, self._closed
        if pipeline is None or threads is None:
            raise EngineUnavailableError("The embedded engine is not running.", "Call start() first.")
        unwanted = threading.Event()

        def check() -> None:
            if unwanted.is_set() or closed.is_set():
                raise _Stopped

        try:
            return await asyncio.get_running_loop().run_in_executor(threads.pages, _guarded, pipeline, page, check)
        except _Stopped:
            raise EngineUnavailableError(
                f"The embedded engine was closed while it read page {page.index + 1}.", "Start it again."
            ) from None
        finally:
            unwanted.set()

    async def health(self) -> EngineHealth:
        """Whether the models are loaded."""
        if self._pipeline is None:
            return EngineHealth(ready=False, detail="not started")
        return EngineHealth(ready=True, detail=f"{self._options.page_threads} pages at once")

    async def aclose(self) -> None:
        """Stops pages in work at their next line and frees the models. Safe to call twice."""
        async with self._starting:
            threads, self._threads, self._pipeline = self._threads, None, None
            self._closed.set()
            if threads is not None:
                await asyncio.to_thread(threads.shutdown)


class _Threads:
    """One pool for pages, and one for the lines of all of them, so that a lone page has all cores, too."""

    def __init__(self, options: EmbeddedOptions) -> None:
        self.pages = ThreadPoolExecutor(options.page_threads, thread_name_prefix="pagemill-pages")
        self.lines = ThreadPoolExecutor(options.line_threads, thread_name_prefix="pagemill-lines")

    def shutdown(self) -> None:
        """Waits for pages in work, which have been told to stop."""
        self.pages.shutdown()
        self.lines.shutdown()


def _load(threads: _Threads, options: EmbeddedOptions) -> PagePipeline:
    recogniser = Recogniser(Session(weights.RECOGNISER))
    # Finding lines takes a sixth of the time of reading them.
    detector = Detector(Session(weights.DETECTOR), at_once=1 + options.line_threads // 4)
    reader = Reader(detector, recogniser, options.min_confidence, threads.lines)
    return PagePipeline(reader, LayoutModel(Session(weights.LAYOUT)))


def _guarded(pipeline: PagePipeline, page: PageImage, check: Callable[[], None]) -> PageResult:
    """Runs a page so that nothing but the tree of errors comes out."""
    check()
    try:
        return pipeline.process(page, check)
    except (PagemillError, _Stopped):
        raise
    except MemoryError as error:
        raise EngineError(
            f"Page {page.index + 1} ({page.width} x {page.height} pixels) does not fit into memory.",
            "Render it smaller, or read fewer pages at once (option pages_in_flight).",
        ) from error
    except Exception as error:
        raise EngineError(
            f"Page {page.index + 1} could not be read ({type(error).__name__}: {error}).",
            "Report the page to the authors of pagemill.",
        ) from error
