"""What the service is made of, and how its parts are opened, run and closed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import socket
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Protocol, runtime_checkable

from fastapi import Depends, Request

from pagemill.conversion import ConversionOptions
from pagemill.documents import RenderOptions
from pagemill.domain import Job
from pagemill.domain.errors import ConfigurationError, EngineError, PagemillError
from pagemill.engines import Engine
from pagemill.gateway.fetch import check_fetch_options
from pagemill.gateway.lifecycle import Lifecycle, Streams
from pagemill.gateway.measured import MeasuredEngine, MeasuredJobs, MeasuredPool
from pagemill.gateway.metrics import Metrics
from pagemill.gateway.options import GatewayOptions
from pagemill.gateway.schemas import describe_job
from pagemill.gateway.uploads import remove_abandoned_uploads
from pagemill.gateway.webhooks import WebhookSender
from pagemill.jobs.blob_stores import open_blobs
from pagemill.jobs.blobs import BlobStore
from pagemill.jobs.gate import Gate
from pagemill.jobs.gated_engine import GatedEngine
from pagemill.jobs.janitor import Janitor
from pagemill.jobs.sql import Database, SqlKeyStore, SqlRateStore, SqlWebhookStore, open_database
from pagemill.jobs.store import JobStore, KeyStore, RateStore, WebhookStore
from pagemill.jobs.worker import JobWorker
from pagemill.telemetry import get_logger

_HEAVY_AT_ONCE = 2
_RESTART_S, _LONGEST_RESTART_S = 1.0, 15.0
_LEAST_SWEEP_S, _LONGEST_SWEEP_S = 0.5, 5.0
_GAUGES_S = 2.0
_HAND_BACK_S = 5.0

EngineStatus = Callable[[], Sequence[Mapping[str, Any]]]
"""Tells of each server of the engine its `url` and state; nothing for engines without servers."""

_log = get_logger("pagemill.gateway")


@dataclass(frozen=True)
class Services:
    """What routes work with.

    Attributes:
        options: How the service is set.
        conversion: How documents are converted where a client says nothing else.
        jobs: Jobs.
        keys: API keys.
        rates: Token buckets.
        webhooks: Calls that are due.
        blobs: Documents and pictures.
        scratch: Folder for what arrives, on the disk of the data folder.
        engine: Reads pages; not behind the gate.
        gate: Stands before the engine.
        metrics: Counts.
        engine_status: State of the engine's servers.
        wake: Tells the worker of this process that there is work.
        lifecycle: Whether requests are taken.
        streams: Open event streams.
        heavy: Held by what needs much memory for a moment: documents within JSON, exports that need the whole text.
    """

    options: GatewayOptions
    conversion: ConversionOptions
    jobs: JobStore
    keys: KeyStore
    rates: RateStore
    webhooks: WebhookStore
    blobs: BlobStore
    scratch: Path
    engine: Engine
    gate: Gate
    metrics: Metrics
    engine_status: EngineStatus = lambda: ()
    wake: Callable[[], None] = lambda: None
    lifecycle: Lifecycle = field(default_factory=Lifecycle)
    streams: Streams = field(default_factory=Streams)
    heavy: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_HEAVY_AT_ONCE))

    def refresh_gauges(self) -> None:
        """Brings what is counted by looking at it up to date."""
        self.metrics.set_gate(
            waiting=self.gate.waiting, tokens=self.gate.tokens_in_flight, window=self.gate.window_tokens
        )
        self.metrics.set_streams(self.streams.count)
        self.metrics.set_endpoints(self.engine_status())
        if (status := _server_status(self.options.engine_status)) is not None:
            self.metrics.set_server(status)


def _server_status(file: Path | None) -> dict[str, Any] | None:
    """What the supervisor of the engine's server has written; None where there is none or it cannot be read."""
    if file is None:
        return None
    try:
        status = json.loads(file.read_bytes())
        return {"state": str(status["state"]), "restarts": int(status["restarts"]), "errors": dict(status["errors"])}
    except (OSError, ValueError, KeyError, TypeError):
        return None


async def services_of(request: Request) -> Services:
    """Dependency of routes: what they work with; a coroutine, as FastAPI runs all else in threads."""
    services: Services = request.app.state.services
    return services


ServicesDependency = Annotated[Services, Depends(services_of)]


@runtime_checkable
class _HasServers(Protocol):
    """An engine with servers, which come and go."""

    @property
    def capacity(self) -> int: ...

    def endpoints_status(self) -> Sequence[Any]: ...


def capacity_of(engine: Engine) -> int:
    """Pages that an engine works on at once, now."""
    return engine.capacity if isinstance(engine, _HasServers) else max(1, engine.capabilities.max_in_flight)


def status_of_engine(engine: Engine) -> list[dict[str, Any]]:
    """State of an engine's servers; nothing where it has none."""
    return [asdict(status) for status in engine.endpoints_status()] if isinstance(engine, _HasServers) else []


class Gateway:
    """Opens the parts of a process of the service, runs them, and closes them in order.

    Args:
        options: How the service is set.
        engine: The engine; closed with the gateway.
        conversion: How documents are converted where a client says nothing else.
        render: How pages are rendered.
    """

    def __init__(
        self, options: GatewayOptions, engine: Engine, conversion: ConversionOptions, render: RenderOptions
    ) -> None:
        self._options = options
        self._engine = engine
        self._conversion = conversion
        self._owner = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        self._metrics = Metrics()
        pages = min(render.max_pages, options.limits.pages)
        self._pool = MeasuredPool(replace(render, max_pages=pages), conversion.render_workers, self._metrics)
        self._worker: JobWorker | None = None
        self._sender: WebhookSender | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._working: asyncio.Task[None] | None = None
        self._stack = contextlib.AsyncExitStack()

    async def start(self) -> Services:
        """Opens everything and begins to work.

        An engine whose servers do not answer yet keeps nobody from handing in documents.

        Raises:
            ConfigurationError: Something is set as it cannot be.
            StoreUnavailableError: The database does not answer.
        """
        options = self._options
        check_fetch_options(options.fetch)
        async with contextlib.AsyncExitStack() as stack:
            scratch = options.data / "scratch"
            await asyncio.to_thread(_make_folder, scratch)
            await asyncio.to_thread(remove_abandoned_uploads, scratch)
            database = open_database(database_url(options), options.store, process_id=self._owner)
            stack.push_async_callback(database.aclose)
            await database.start()
            blobs = open_blobs(options.blobs or options.data / "blobs", scratch)
            stack.push_async_callback(blobs.aclose)
            stack.push_async_callback(self._engine.aclose)
            await self._start_engine()
            services = self._services(database, blobs, scratch)
            if options.work:
                await stack.enter_async_context(self._pool)
            self._sender = WebhookSender(services.webhooks, options.webhook, owner=self._owner, describe=_public_fields)
            self._stack = stack.pop_all()
        self._begin(services)
        return services

    def _services(self, database: Database, blobs: BlobStore, scratch: Path) -> Services:
        options = self._options
        gate = Gate(
            options.window_tokens,
            capacity=lambda: capacity_of(self._engine),
            max_waiting=options.max_waiting,
            batch_share=options.store.batch_share,
        )
        self._metrics.describe_engine(self._engine.name)
        return Services(
            options=options,
            conversion=self._conversion,
            jobs=MeasuredJobs(database, self._metrics),
            keys=SqlKeyStore(database),
            rates=SqlRateStore(database),
            webhooks=SqlWebhookStore(database),
            blobs=blobs,
            scratch=scratch,
            engine=self._engine,
            gate=gate,
            metrics=self._metrics,
            engine_status=lambda: status_of_engine(self._engine),
            wake=self._wake,
        )

    def _begin(self, services: Services) -> None:
        lease_s = self._options.store.lease_s
        sweep_s = min(_LONGEST_SWEEP_S, max(_LEAST_SWEEP_S, lease_s / 3))
        assert self._sender is not None
        self._tasks = [
            asyncio.create_task(Janitor(services.jobs, services.blobs, sweep_s).run()),
            asyncio.create_task(_again_and_again("webhooks", self._sender.run)),
            asyncio.create_task(_refresh(services)),
        ]
        if self._options.work:
            self._working = asyncio.create_task(_again_and_again("worker", lambda: self._work(services)))
        else:
            self._tasks.append(asyncio.create_task(_again_and_again("engine", self._engine.start)))

    async def _start_engine(self) -> None:
        try:
            await self._engine.start()
        except ConfigurationError:
            raise
        except EngineError as error:
            _log.warning("the engine is not there yet; documents are taken and wait", error=str(error))

    async def _work(self, services: Services) -> None:
        await self._engine.start()
        gated = MeasuredEngine(GatedEngine(self._engine, services.gate), self._metrics)
        self._worker = JobWorker(
            services.jobs,
            services.blobs,
            gated,
            self._pool,
            self._conversion,
            owner=self._owner,
            lease_s=self._options.store.lease_s,
            capacity=lambda: capacity_of(self._engine),
            metrics=self._metrics,
        )
        await self._worker.run()

    def _wake(self) -> None:
        if self._worker is not None:
            self._worker.wake()

    async def stop(self, services: Services) -> None:
        """Takes nothing new, lets what is under way finish for `drain_s`, hands back the rest and closes everything.

        While it waits, the process answers questions about jobs; its owner ends it afterwards.
        """
        ends_at = time.monotonic() + self._options.drain_s
        services.lifecycle.stop()
        await self._stop_work(self._options.drain_s)
        await services.lifecycle.idle(max(0.0, ends_at - time.monotonic()))
        if self._sender is not None:
            self._sender.stop()

    async def _stop_work(self, drain_s: float) -> None:
        """Stops the worker; a store that does not answer while work is handed back keeps nobody waiting."""
        if self._worker is not None:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._worker.stop(drain_s), drain_s + _HAND_BACK_S)

    async def aclose(self) -> None:
        """Ends what still runs, and closes everything; safe to call twice."""
        await self._stop_work(0.0)
        tasks = [*self._tasks, *([self._working] if self._working is not None else [])]
        self._tasks, self._working, self._worker = [], None, None
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._stack.aclose()


def database_url(options: GatewayOptions) -> str:
    """Where the database is; a file in the data folder where no URL is given."""
    if options.database is not None:
        return options.database.get_secret_value()
    return f"sqlite:///{(options.data / 'pagemill.db').absolute()}"


def _make_folder(folder: Path) -> None:
    try:
        # The documents in it are nobody else's business.
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise ConfigurationError(
            f"The data folder {folder.parent} cannot be made ({error.strerror or error}).", "Choose one with --data."
        ) from error


def _public_fields(job: Job) -> dict[str, Any]:
    return describe_job(job).model_dump(mode="json")


async def _refresh(services: Services) -> None:
    """Keeps gauges true: with several processes, another one may answer for this one."""
    while True:
        services.refresh_gauges()
        await asyncio.sleep(_GAUGES_S)


async def _again_and_again(name: str, run: Callable[[], Awaitable[None]]) -> None:
    """Runs to its end; what fails is run again, since without it the service would stand still without a word."""
    pause = _RESTART_S
    while True:
        started = time.monotonic()
        try:
            await run()
        except PagemillError as error:
            _log.warning("started again soon", part=name, error=str(error))
        except Exception:  # noqa: BLE001 - whatever it is, the service must go on
            _log.exception("failed in an unexpected way and is started again", part=name)
        else:
            return
        pause = _RESTART_S if time.monotonic() - started > _LONGEST_RESTART_S else min(_LONGEST_RESTART_S, pause * 2)
        await asyncio.sleep(pause)
