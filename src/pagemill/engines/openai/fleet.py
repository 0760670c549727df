"""The servers of an engine together: connections, turns, who is left alone, and who comes back."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator, Coroutine
from typing import Any
from urllib.parse import unquote, urlsplit

import aiohttp

from pagemill.domain.errors import (
    ConfigurationError,
    EngineError,
    EngineOverloadedError,
    EngineTimeoutError,
    EngineUnavailableError,
)
from pagemill.engines.openai.discovery import (
    ENGINE_DEAD,
    context_of,
    described_models,
    health_status,
    is_alive,
    server_version,
)
from pagemill.engines.openai.endpoints import Dispatcher, Endpoint, Lease, not_running
from pagemill.engines.openai.options import OpenAIOptions, SizeClass, without_userinfo
from pagemill.engines.openai.server_load import LoadWatch
from pagemill.engines.openai.window import AdaptiveWindow, Overload
from pagemill.engines.page_clock import waiting
from pagemill.telemetry import get_logger

_KEEP_ALIVE_S = 4.0
"""vLLM closes idle connections after 5 s; a request on one that is just being closed would look like a death."""

_log = get_logger("pagemill.engines.openai")


class Fleet:
    """Servers that all serve one model.

    Args:
        options: Servers, model and bounds.

    Attributes:
        urls: Their base URLs, without users and passwords.
        model: Name of the model; empty before `start` where none was named.
        dispatcher: What is in flight where.
        streaming: Answers that are being read; `aclose` breaks them off.
        is_running: Whether it was started, and not closed since.
    """

    def __init__(self, options: OpenAIOptions) -> None:
        self._options = options
        # Users and passwords go into the sessions; everything else, and every message, has the URL without them.
        self._logins = {without_userinfo(url): urlsplit(url) for url in options.endpoints}
        self.urls = frozenset(self._logins)
        self.model = options.model or ""
        self.dispatcher = self._new_dispatcher()
        self._sessions: dict[tuple[str, str], aiohttp.ClientSession] = {}
        self._loads: dict[str, LoadWatch] = {}
        self.streaming: set[aiohttp.ClientResponse] = set()
        self._probes: set[asyncio.Task[None]] = set()
        self._suspects: defaultdict[frozenset[str], asyncio.Lock] = defaultdict(asyncio.Lock)
        self._starting = asyncio.Lock()
        self.is_running = False

    def _new_dispatcher(self) -> Dispatcher:
        w = self._options.window
        windows = {url: AdaptiveWindow(w.initial, w.least, w.most, fixed=w.fixed) for url in self._logins}
        return Dispatcher([Endpoint(url, window) for url, window in windows.items()], self._options.classes)

    @property
    def version(self) -> str:
        """What the servers say they are, without repetition; empty where none does."""
        return ", ".join(sorted({one.version for one in self.dispatcher.endpoints if one.version}))

    async def start(self) -> None:
        """Finds out which model is served, and by what. Safe to call twice.

        Raises:
            EngineUnavailableError: No server answers.
            ConfigurationError: The model is not served, or there are several and none was named.
        """
        async with self._starting:
            if self.is_running:
                return
            # Nothing that was known of the servers in an earlier life.
            self.dispatcher = self._new_dispatcher()
            for endpoint in self.dispatcher.endpoints:
                self._connect(endpoint)
            try:
                await self._look_around()
            except BaseException:
                await self.aclose()
                raise
            self.dispatcher.open()
            self.is_running = True

    def _connect(self, endpoint: Endpoint) -> None:
        login, headers = self._logins[endpoint.url], {}
        if self._options.api_key is not None:
            headers["Authorization"] = f"Bearer {self._options.api_key.get_secret_value()}"
        elif login.username:
            pair = f"{unquote(login.username)}:{unquote(login.password or '')}"
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        for size_class in self._options.classes:
            self._sessions[endpoint.url, size_class.name] = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE_S), headers=headers
            )
        self._loads[endpoint.url] = LoadWatch(endpoint, self.asking(endpoint))

    async def _look_around(self) -> None:
        endpoints = self.dispatcher.endpoints
        found = await asyncio.gather(*map(self._describe, endpoints))
        problems: list[str] = []
        for endpoint, models in zip(endpoints, found, strict=True):
            if isinstance(models, EngineError):
                problems.append(f"{endpoint.url}: {models}")
                self._set_aside(endpoint)
            else:
                self._choose_model(list(models), endpoint)
                await self._learn(endpoint, models)
        if len(problems) == len(endpoints):
            raise EngineUnavailableError(
                f"No server answers ({'; '.join(problems)}).",
                "Start one (vllm serve lightonai/LightOnOCR-2-1B), check --endpoint, or use --engine embedded.",
            )

    async def _describe(self, endpoint: Endpoint) -> dict[str, dict[str, Any]] | EngineError:
        """What a server tells of its models, by their names."""
        try:
            found = await described_models(self.asking(endpoint), endpoint.url, self._options.connect_timeout_s)
        except EngineError as error:
            return error
        return {str(model.get("id", "")): model for model in found}

    def _choose_model(self, names: list[str], endpoint: Endpoint) -> None:
        if not self.model:
            if len(names) != 1:
                raise ConfigurationError(
                    f"{endpoint.url} serves {', '.join(names) or 'no model'}.", "Name one with the option model."
                )
            self.model = names[0]
        elif self.model not in names:
            raise ConfigurationError(
                f"{endpoint.url} does not serve '{self.model}' but {', '.join(names) or 'nothing'}.",
                "Set the option model, or leave it out when all servers serve one model.",
            )

    async def _learn(self, endpoint: Endpoint, models: dict[str, dict[str, Any]]) -> None:
        endpoint.context = context_of(models[self.model])
        endpoint.version = await server_version(self.asking(endpoint), endpoint.url)

    def asking(self, endpoint: Endpoint) -> aiohttp.ClientSession:
        """Connections for questions that are no pages."""
        return self.session(endpoint, self._options.classes[0])

    def session(self, endpoint: Endpoint, size_class: SizeClass) -> aiohttp.ClientSession:
        """Connections to a server for pages of a class.

        Raises:
            EngineUnavailableError: They were closed, or are not open yet.
        """
        try:
            return self._sessions[endpoint.url, size_class.name]
        except KeyError:
            raise not_running() from None

    @contextlib.asynccontextmanager
    async def turn(
        self, size_class: SizeClass, tokens: int, allowed: frozenset[str], *, suspect: bool = False
    ) -> AsyncIterator[Lease]:
        """A turn at a server, for as long as the block lasts.

        When a server dies, any page that it was reading may be why: such suspects are tried again one by one, so that
        the one that does it is alone when it does it again. Who waits to be that one holds no turn, and keeps up nobody
        who may go to other servers.

        Args:
            size_class: Class of the page.
            tokens: Its image tokens.
            allowed: URLs of the servers that may read it.
            suspect: Whether a server died while it read the page.

        Raises:
            EngineUnavailableError: No allowed server has answered for a while, or the engine is not running.
        """
        dispatcher = self.dispatcher
        async with contextlib.AsyncExitStack() as stack:
            with waiting():
                if suspect:
                    await stack.enter_async_context(self._suspects[allowed])
                lease = await dispatcher.acquire(size_class.name, tokens, allowed, self._options.outage_timeout_s)
            stack.callback(dispatcher.release, lease)
            if self.is_running:
                self._loads[lease.endpoint.url].look()
            yield lease

    def note(self, lease: Lease, failure: EngineError) -> None:
        """Lets window and dispatcher know how a request failed."""
        if isinstance(failure, EngineOverloadedError):
            lease.endpoint.window.on_overload(Overload.REFUSED)
        elif isinstance(failure, EngineTimeoutError):
            lease.endpoint.window.on_overload(Overload.TIMEOUT)
            self._count_failure(lease)
        elif isinstance(failure, EngineUnavailableError):
            self._count_failure(lease)
            if failure.while_reading and self.is_running and self.dispatcher.set_aside(lease.endpoint):
                self._watch(self._make_sure(lease.endpoint))

    def _count_failure(self, lease: Lease) -> None:
        if self.is_running and self.dispatcher.failed(lease):
            self._leave_alone(lease.endpoint)

    def replaces(self, endpoint: Endpoint, allowed: frozenset[str]) -> bool:
        """Leaves a server alone that refuses every page, if another one may read them; False if there is none."""
        others = (one for one in self.dispatcher.endpoints if one is not endpoint and one.url in allowed)
        if not any(not one.set_aside for one in others):
            return False
        self._set_aside(endpoint)
        return True

    def _set_aside(self, endpoint: Endpoint) -> None:
        if self.dispatcher.set_aside(endpoint):
            self._leave_alone(endpoint)

    def _leave_alone(self, endpoint: Endpoint) -> None:
        self._watch(self._watch_for_return(endpoint))

    def _watch(self, watch: Coroutine[None, None, None]) -> None:
        self._probes.add(task := asyncio.create_task(watch))
        task.add_done_callback(self._probes.discard)

    async def _make_sure(self, endpoint: Endpoint) -> None:
        """Asks a server that seems to have died under its pages whether it has.

        Meanwhile it gets nothing: one whose engine has died listens on for a while, and a page that came back from it
        would meet the same death for the second time.
        """
        if await is_alive(self.asking(endpoint), endpoint.url):
            self.dispatcher.trust(endpoint)
        else:
            await self._watch_for_return(endpoint)

    async def _watch_for_return(self, endpoint: Endpoint) -> None:
        _log.warning("endpoint set aside", endpoint=endpoint.url)
        told = False

        async def probe() -> bool:
            nonlocal told
            models = await self._describe(endpoint)
            if isinstance(models, EngineError) or not models:
                return False
            if await health_status(self.asking(endpoint), endpoint.url) == ENGINE_DEAD:
                return False
            if self.model in models:
                await self._learn(endpoint, models)
                return True
            if not told:
                told = True
                _log.warning(
                    "endpoint serves another model", endpoint=endpoint.url, models=list(models), wanted=self.model
                )
            return False

        await self.dispatcher.probe_until_back(endpoint, probe)
        _log.warning("endpoint is back", endpoint=endpoint.url)

    async def aclose(self) -> None:
        """Closes all connections; those who wait for a turn are told. Safe to call twice."""
        self.is_running = False
        self.dispatcher.close()
        for task in self._probes:
            task.cancel()
        await asyncio.gather(*self._probes, return_exceptions=True)
        loads, self._loads = list(self._loads.values()), {}
        await asyncio.gather(*(load.aclose() for load in loads))
        for answer in list(self.streaming):
            answer.close()
        sessions, self._sessions = list(self._sessions.values()), {}
        await asyncio.gather(*(session.close() for session in sessions))
