"""LightOnOCR, or any model for OCR, on servers that speak the OpenAI chat API: vLLM, SGLang, llama.cpp."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

from pagemill.domain import FinishReason, PageImage, PageResult, SamplingParams, TextVerdict
from pagemill.domain.errors import EngineError, EngineUnavailableError, RequestRejectedError
from pagemill.engines.openai.discovery import described_models
from pagemill.engines.openai.endpoints import Dispatcher, Lease
from pagemill.engines.openai.exchange import Answer, exchange
from pagemill.engines.openai.fleet import Fleet
from pagemill.engines.openai.language import guess_language
from pagemill.engines.openai.options import (
    LanguageRoute,
    OpenAIOptions,
    SizeClass,
    clean_base_url,
    without_userinfo,
)
from pagemill.engines.openai.output import extract_pictures, repair_math
from pagemill.engines.openai.presets import preset_for
from pagemill.engines.openai.slots import EndpointStatus, Slot
from pagemill.engines.openai.tokens import image_tokens
from pagemill.engines.openai.tries import Tries
from pagemill.engines.openai.wire import chat_request
from pagemill.engines.page_clock import waiting
from pagemill.engines.protocol import EngineCapabilities, EngineHealth
from pagemill.telemetry import get_logger

_ENGINE_VERSION = "1"
_TEMPLATE_TOKENS = 64
"""Room for what the chat template adds to the image."""
_MEDIA_TYPES = ("image/png", "image/jpeg", "image/webp")

_log = get_logger("pagemill.engines.openai")


class OpenAIEngine:
    """Sends page images to one or several servers and reads their answers as they are written.

    Args:
        options: Servers, model and bounds.
    """

    def __init__(self, options: OpenAIOptions) -> None:
        self._options = options
        self._fleet = Fleet(options)

    @property
    def name(self) -> str:
        """`openai`."""
        return "openai"

    @property
    def dispatcher(self) -> Dispatcher:
        """What is in flight where; for metrics and tests."""
        return self._fleet.dispatcher

    @property
    def capabilities(self) -> EngineCapabilities:
        """The model that is served, and how many pages it may get."""
        fleet = self._fleet
        return EngineCapabilities(
            version=f"{fleet.model or 'unknown model'} on {fleet.version or 'unknown server'}",
            # Not the server's version: a replica that joins, or an upgrade, must not redo a hundred thousand pages.
            fingerprint=f"openai-{_ENGINE_VERSION};{fleet.model}",
            max_in_flight=self._options.window.most * len(fleet.urls),
            media_types=_MEDIA_TYPES,
            wants_text_layer=bool(self._options.routes) and not self._options.languages,
            max_long_side=preset_for(fleet.model).long_side,
            generative=True,
        )

    async def start(self) -> None:
        """Finds out which model is served, and by what. Safe to call twice, and again after `aclose`.

        Raises:
            EngineUnavailableError: No server answers.
            ConfigurationError: The model is not served, or there are several and none was named.
        """
        await self._fleet.start()

    @property
    def model(self) -> str:
        """Name of the model that is served; empty before `start`."""
        return self._fleet.model

    async def models(self) -> list[dict[str, Any]]:
        """The models that the servers offer, as the first that is in use tells of them.

        Raises:
            EngineError: It does not answer.
        """
        endpoints = self._fleet.dispatcher.endpoints
        endpoint = next((one for one in endpoints if not one.set_aside), endpoints[0])
        return await described_models(self._fleet.asking(endpoint), endpoint.url, self._options.connect_timeout_s)

    @contextlib.asynccontextmanager
    async def reserve(self, tokens: int, long_side: int = 0) -> AsyncIterator[Slot]:
        """Waits for a turn at a server, for a request that is passed through as it is, and holds it for the block.

        Args:
            tokens: Tokens of its images.
            long_side: Pixels on the long side of the largest; 0 for none.

        Raises:
            EngineUnavailableError: No server has answered for a while, or the engine is not running.
        """
        fleet, size_class = self._fleet, self._class_of(long_side, tokens)
        async with fleet.turn(size_class, tokens, fleet.urls) as lease:
            session = fleet.session(lease.endpoint, size_class)
            yield Slot(
                lease, session, fleet.dispatcher, fleet.note, lambda endpoint: fleet.replaces(endpoint, fleet.urls)
            )

    def endpoints_status(self) -> tuple[EndpointStatus, ...]:
        """The servers as they are now."""
        return tuple(EndpointStatus.of(endpoint) for endpoint in self._fleet.dispatcher.endpoints)

    @property
    def capacity(self) -> int:
        """Requests that the servers in use work on at once, as far as is known by now."""
        return sum(endpoint.window.limit for endpoint in self._fleet.dispatcher.endpoints if not endpoint.set_aside)

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
        tries = Tries(self._options.transport_attempts, self._options.outage_timeout_s)
        while True:
            async with self._fleet.turn(size_class, tokens, allowed, suspect=tries.deaths > 0) as lease:
                try:
                    return await self._send(lease, page, params, size_class)
                except EngineError as failure:
                    error = failure
                    self._fleet.note(lease, error)
            _log.info("request failed", endpoint=lease.endpoint.url, page=page.index + 1, code=error.code)
            refuses_all = isinstance(error, RequestRejectedError) and error.any_page
            # It answers at once, and would draw all pages if it stayed.
            if refuses_all and self._fleet.replaces(lease.endpoint, allowed):
                continue
            pause_s = tries.after(error)
            with waiting():
                await asyncio.sleep(pause_s)

    async def _send(self, lease: Lease, page: PageImage, params: SamplingParams, size_class: SizeClass) -> Answer:
        server, fleet = lease.endpoint, self._fleet
        detection = self._options.repetition_detection
        # The answer must fit behind the prompt; asking for more than the context is a refused request.
        context = min(preset_for(fleet.model).context, server.context or sys.maxsize)
        params = replace(params, max_tokens=max(1, min(params.max_tokens, context - lease.tokens - _TEMPLATE_TOKENS)))
        body = chat_request(
            fleet.model,
            page,
            params,
            repetition_detection=detection == "on" or (detection == "auto" and server.version.startswith("vllm")),
        )
        answer = await exchange(fleet.session(server, size_class), server.url, body, self._options, fleet.streaming)
        if answer.finish_reason is FinishReason.ABORT:
            raise EngineUnavailableError("The server gave the page up while it was shutting down.")
        fleet.dispatcher.succeeded(lease, answer.usage.completion_tokens)
        return answer

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
        free = self._fleet.urls - {_url_of(route) for route in routes}
        return free or self._fleet.urls

    async def health(self) -> EngineHealth:
        """Whether any server is in use."""
        if not self._fleet.is_running:
            return EngineHealth(ready=False, detail="not started")
        states = self.endpoints_status()
        live = sum(state.in_use for state in states)
        return EngineHealth(live > 0, f"{live} of {len(states)} servers in use")

    async def aclose(self) -> None:
        """Closes all connections; requests in flight are dropped by the servers."""
        await self._fleet.aclose()


def _url_of(route: LanguageRoute) -> str:
    return without_userinfo(clean_base_url(route.endpoint))
