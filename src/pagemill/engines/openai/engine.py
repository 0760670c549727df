"""LightOnOCR, or any model for OCR, on servers that speak the OpenAI chat API: vLLM, SGLang, llama.cpp."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from urllib.parse import unquote, urlsplit

import aiohttp

from pagemill.domain import FinishReason, PageImage, PageResult, SamplingParams, TextVerdict
from pagemill.domain.errors import (
    ConfigurationError,
    EngineError,
    EngineOverloadedError,
    EngineTimeoutError,
    EngineUnavailableError,
    PageQuarantinedError,
)
from pagemill.engines.openai.discovery import described_models, served_models, server_version
from pagemill.engines.openai.endpoints import Dispatcher, Endpoint, Lease
from pagemill.engines.openai.exchange import Answer, exchange
from pagemill.engines.openai.language import guess_language
from pagemill.engines.openai.options import (
    LanguageRoute,
    OpenAIOptions,
    SizeClass,
    clean_base_url,
    without_userinfo,
)
from pagemill.engines.openai.output import extract_pictures, repair_math
from pagemill.engines.openai.presets import ModelPreset, preset_for
from pagemill.engines.openai.server_load import LoadWatch
from pagemill.engines.openai.slots import EndpointStatus, Slot
from pagemill.engines.openai.tokens import image_tokens
from pagemill.engines.openai.window import AdaptiveWindow, Overload
from pagemill.engines.openai.wire import chat_request
from pagemill.engines.page_clock import waiting
from pagemill.engines.protocol import EngineCapabilities, EngineHealth
from pagemill.telemetry import get_logger

_ENGINE_VERSION = "1"
_OVERLOAD_PAUSE_S = 1.0
_LONGEST_OVERLOAD_PAUSE_S = 30.0
_DEATHS_TO_QUARANTINE = 2
_MEDIA_TYPES = ("image/png", "image/jpeg", "image/webp")

_log = get_logger("pagemill.engines.openai")


class OpenAIEngine:
    """Sends page images to one or several servers and reads their answers as they are written.

    Args:
        options: Servers, model and bounds.
    """

    def __init__(self, options: OpenAIOptions) -> None:
        self._options = options
        w = options.window
        # Users and passwords go into the sessions; everything else, and every message, has the URL without them.
        self._users = {without_userinfo(url): urlsplit(url) for url in options.endpoints}
        self._endpoints = [
            Endpoint(url, AdaptiveWindow(w.initial, w.least, w.most, fixed=w.fixed)) for url in self._users
        ]
        self._dispatcher = Dispatcher(self._endpoints, options.classes)
        self._sessions: dict[tuple[str, str], aiohttp.ClientSession] = {}
        self._probes: set[asyncio.Task[None]] = set()
        self._loads: dict[str, LoadWatch] = {}
        self._model = options.model or ""
        self._preset: ModelPreset = preset_for(self._model)
        self._server = ""
        self._detects_repetition = options.repetition_detection == "on"
        self._suspects = asyncio.Lock()
        self._started = False

    @property
    def name(self) -> str:
        """`openai`."""
        return "openai"

    @property
    def dispatcher(self) -> Dispatcher:
        """What is in flight where; for metrics and tests."""
        return self._dispatcher

    @property
    def capabilities(self) -> EngineCapabilities:
        """The model that is served, and how many pages it may get."""
        return EngineCapabilities(
            version=f"{self._model or 'unknown model'} on {self._server or 'unknown server'}",
            # Not the server's version: a replica that joins, or an upgrade, must not redo a hundred thousand pages.
            fingerprint=f"openai-{_ENGINE_VERSION};{self._model}",
            max_in_flight=self._options.window.most * len(self._endpoints),
            media_types=_MEDIA_TYPES,
            wants_text_layer=bool(self._options.routes) and not self._options.languages,
            max_long_side=self._preset.long_side,
            generative=True,
        )

    async def start(self) -> None:
        """Finds out which model is served, and by what.

        Raises:
            EngineUnavailableError: No server answers.
            ConfigurationError: The model is not served, or there are several and none was named.
        """
        if self._started:
            return
        headers = {}
        if self._options.api_key is not None:
            headers["Authorization"] = f"Bearer {self._options.api_key.get_secret_value()}"
        for endpoint in self._endpoints:
            user = self._users[endpoint.url]
            own = dict(headers)
            if user.username and not own:
                pair = f"{unquote(user.username)}:{unquote(user.password or '')}"
                own["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
            for size_class in self._options.classes:
                self._sessions[endpoint.url, size_class.name] = aiohttp.ClientSession(
                    connector=aiohttp.TCPConnector(limit=0), headers=own
                )
            self._loads[endpoint.url] = LoadWatch(endpoint, self._asking(endpoint))
        try:
            await self._look_around()
        except BaseException:
            await self.aclose()
            raise
        self._started = True

    async def _look_around(self) -> None:
        problems: list[str] = []
        for endpoint in self._endpoints:
            try:
                models = await served_models(self._asking(endpoint), endpoint.url, self._options.connect_timeout_s)
            except (EngineError, aiohttp.ClientError, asyncio.TimeoutError, OSError) as error:
                problems.append(f"{endpoint.url}: {error or type(error).__name__}")
                self._set_aside(endpoint)
                continue
            self._choose_model(models, endpoint)
            # An earlier `start` may have found it silent.
            endpoint.set_aside = False
            self._server = self._server or await server_version(self._asking(endpoint), endpoint.url)
        if len(problems) == len(self._endpoints):
            raise EngineUnavailableError(
                f"No server answers ({'; '.join(problems)}).",
                "Start one (vllm serve lightonai/LightOnOCR-2-1B), check --endpoint, or use --engine embedded.",
            )
        if self._options.repetition_detection == "auto":
            self._detects_repetition = self._server.startswith("vllm")

    def _choose_model(self, models: list[str], endpoint: Endpoint) -> None:
        wanted = self._model
        if not wanted:
            if len(models) != 1:
                raise ConfigurationError(
                    f"{endpoint.url} serves {', '.join(models) or 'no model'}.", "Name one with the option model."
                )
            self._model = models[0]
        elif wanted not in models:
            raise ConfigurationError(
                f"{endpoint.url} does not serve '{wanted}' but {', '.join(models) or 'nothing'}.",
                "Set the option model, or leave it out when all servers serve one model.",
            )
        self._preset = preset_for(self._model)

    def _check_started(self) -> None:
        if not self._started:
            raise EngineUnavailableError("No server has answered yet.", "Try again once it has started.")

    def _session(self, endpoint: Endpoint, size_class: SizeClass) -> aiohttp.ClientSession:
        return self._sessions[endpoint.url, size_class.name]

    def _asking(self, endpoint: Endpoint) -> aiohttp.ClientSession:
        return self._session(endpoint, self._options.classes[0])

    @property
    def model(self) -> str:
        """Name of the model that is served; empty before `start`."""
        return self._model

    async def models(self) -> list[dict[str, Any]]:
        """The models that the servers offer, as the first that is in use tells of them.

        Raises:
            EngineError: It does not answer.
        """
        self._check_started()
        endpoint = next((one for one in self._endpoints if not one.set_aside), self._endpoints[0])
        try:
            return await described_models(self._asking(endpoint), endpoint.url, self._options.connect_timeout_s)
        except (aiohttp.ClientError, asyncio.TimeoutError, OSError) as error:
            raise EngineUnavailableError(f"{endpoint.url} does not answer ({error}).", "Is it running?") from error

    @contextlib.asynccontextmanager
    async def reserve(self, tokens: int, long_side: int = 0) -> AsyncIterator[Slot]:
        """Waits for a turn at a server, for a request that is passed through as it is, and holds it for the block.

        Args:
            tokens: Tokens of its images.
            long_side: Pixels on the long side of the largest; 0 for none.

        Raises:
            EngineUnavailableError: No server has answered for a while.
        """
        self._check_started()
        size_class = self._class_of(long_side, tokens)
        async with self._turn(size_class, tokens, frozenset(self._users), suspect=False) as lease:
            yield Slot(lease, self._session(lease.endpoint, size_class), self._dispatcher, self._note)

    def endpoints_status(self) -> tuple[EndpointStatus, ...]:
        """The servers as they are now."""
        return tuple(EndpointStatus.of(endpoint) for endpoint in self._endpoints)

    @property
    def capacity(self) -> int:
        """Requests that the servers in use work on at once, as far as is known by now."""
        return sum(endpoint.window.limit for endpoint in self._endpoints if not endpoint.set_aside)

    def _class_of(self, long_side: int, tokens: int) -> SizeClass:
        for size_class in self._options.classes:
            fits_side = size_class.max_long_side is None or long_side <= size_class.max_long_side
            fits_tokens = size_class.max_image_tokens is None or tokens <= size_class.max_image_tokens
            if fits_side and fits_tokens:
                return size_class
        return self._options.classes[-1]

    async def recognize(self, page: PageImage, params: SamplingParams) -> PageResult:
        """Reads one page; an answer that is cut or loops comes back with the text before and its finish reason.

        Raises:
            EngineError: The servers cannot be reached, stay full, or refuse the page.
        """
        started = time.monotonic()
        tokens = image_tokens(page.width, page.height)
        # The answer must fit behind the prompt; asking for more than the context is a refused request.
        params = replace(params, max_tokens=max(1, min(params.max_tokens, self._preset.context - tokens - 64)))
        size_class = self._class_of(max(page.width, page.height), tokens)
        languages = self._languages_of(page)
        allowed = self._allowed(languages)
        answer = await self._ask(page, params, size_class, tokens, allowed)
        if self._options.routes and not languages:
            language = guess_language(answer.text)
            better = self._allowed({language} if language else set())
            if not better & allowed:
                first, answer = answer, await self._ask(page, params, size_class, tokens, better)
                answer = replace(answer, usage=first.usage + answer.usage)
        markdown, figures = await asyncio.to_thread(extract_pictures, repair_math(answer.text), page)
        return PageResult(
            index=page.index,
            markdown=markdown,
            figures=figures,
            finish_reason=answer.finish_reason,
            usage=answer.usage,
            duration_s=time.monotonic() - started,
            width=page.width,
            height=page.height,
        )

    async def _ask(
        self, page: PageImage, params: SamplingParams, size_class: SizeClass, tokens: int, allowed: frozenset[str]
    ) -> Answer:
        error: EngineError | None = None
        pause = _OVERLOAD_PAUSE_S
        deaths = 0
        for attempt in range(1, self._options.transport_attempts + 1):
            async with self._turn(size_class, tokens, allowed, suspect=deaths > 0) as lease:
                try:
                    body = chat_request(self._model, page, params, repetition_detection=self._detects_repetition)
                    session = self._session(lease.endpoint, size_class)
                    answer = await exchange(session, lease.endpoint.url, body, self._options)
                    if answer.finish_reason is not FinishReason.ABORT:
                        self._dispatcher.succeeded(lease, answer.usage.completion_tokens)
                        return answer
                    error = EngineUnavailableError("The server gave the page up while it was shutting down.")
                    self._note_failure(lease)
                except EngineError as failure:
                    error = failure
                    self._note(lease, failure)
                    deaths += isinstance(failure, EngineUnavailableError) and failure.while_reading
            _log.info(
                "request failed", endpoint=lease.endpoint.url, page=page.index + 1, code=error.code, attempt=attempt
            )
            if not error.retryable:
                raise error
            if deaths == _DEATHS_TO_QUARANTINE:
                raise PageQuarantinedError(
                    f"The server died {deaths} times while it read the page ({error}).",
                    "Look at its log and at the page; --retry-failed sends it again.",
                ) from error
            if isinstance(error, EngineOverloadedError):
                with waiting():
                    await asyncio.sleep(error.retry_after if error.retry_after is not None else pause)
                pause = min(_LONGEST_OVERLOAD_PAUSE_S, pause * 2)
        assert error is not None
        raise error

    @contextlib.asynccontextmanager
    async def _turn(
        self, size_class: SizeClass, tokens: int, allowed: frozenset[str], *, suspect: bool
    ) -> AsyncIterator[Lease]:
        """A turn at a server.

        When a server dies, any page that it was reading may be why: such suspects are tried again one by one, so that
        the one that does it is alone when it does it again.
        """
        async with contextlib.AsyncExitStack() as stack:
            with waiting():
                if suspect:
                    await stack.enter_async_context(self._suspects)
                lease = await self._dispatcher.acquire(size_class.name, tokens, allowed, self._options.outage_timeout_s)
            stack.callback(self._dispatcher.release, lease)
            self._loads[lease.endpoint.url].look()
            yield lease

    def _note(self, lease: Lease, failure: EngineError) -> None:
        """Lets window and dispatcher know how a request failed."""
        if isinstance(failure, EngineOverloadedError):
            self._dispatcher.overloaded(lease, Overload.REFUSED)
        elif isinstance(failure, EngineTimeoutError):
            self._dispatcher.overloaded(lease, Overload.TIMEOUT)
            self._note_failure(lease)
        elif isinstance(failure, EngineUnavailableError):
            self._note_failure(lease)

    def _languages_of(self, page: PageImage) -> set[str]:
        """Languages of a page as far as they are known before it is read."""
        if self._options.languages or not self._options.routes or page.text_layer is None:
            return set(self._options.languages)
        if page.text_layer.verdict is not TextVerdict.SANE:
            return set()
        language = guess_language(" ".join(span.text for span in page.text_layer.spans))
        return {language} if language else set()

    def _allowed(self, languages: set[str]) -> frozenset[str]:
        """Servers that may read a page: those of its languages' routes, else those without a route."""
        routes = self._options.routes
        routed = {_url_of(route) for route in routes if languages & set(route.languages)}
        if routed:
            return frozenset(routed)
        free = frozenset(self._users) - {_url_of(route) for route in routes}
        return free or frozenset(self._users)

    def _note_failure(self, lease: Lease) -> None:
        if self._dispatcher.failed(lease):
            _log.warning("endpoint set aside", endpoint=lease.endpoint.url)
            self._watch_for_return(lease.endpoint)

    def _set_aside(self, endpoint: Endpoint) -> None:
        endpoint.set_aside = True
        self._watch_for_return(endpoint)

    def _watch_for_return(self, endpoint: Endpoint) -> None:
        async def probe(asked: Endpoint) -> bool:
            with contextlib.suppress(EngineError, aiohttp.ClientError, asyncio.TimeoutError, OSError):
                models = await served_models(self._asking(asked), asked.url, self._options.connect_timeout_s)
                if not models or self._model in models:
                    return bool(models)
                _log.warning("endpoint serves another model", endpoint=asked.url, models=models, wanted=self._model)
            return False

        async def watch() -> None:
            await self._dispatcher.probe_until_back(endpoint, lambda asked: asyncio.ensure_future(probe(asked)))
            _log.warning("endpoint is back", endpoint=endpoint.url)

        self._probes.add(task := asyncio.create_task(watch()))
        task.add_done_callback(self._probes.discard)

    async def health(self) -> EngineHealth:
        """Whether any server answers."""
        live = [endpoint.url for endpoint in self._endpoints if not endpoint.set_aside]
        return EngineHealth(bool(live), f"{len(live)} of {len(self._endpoints)} servers in use")

    async def aclose(self) -> None:
        """Closes all connections; requests in flight are dropped by the servers."""
        for task in self._probes:
            task.cancel()
        await asyncio.gather(*self._probes, return_exceptions=True)
        await asyncio.gather(*(watch.aclose() for watch in self._loads.values()))
        sessions, self._sessions = list(self._sessions.values()), {}
        await asyncio.gather(*(session.close() for session in sessions))
        self._started = False


def _url_of(route: LanguageRoute) -> str:
    return without_userinfo(clean_base_url(route.endpoint))
