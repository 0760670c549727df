"""`pagemill gateway`: the document service."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from pagemill._version import __version__
from pagemill.api import choose_engine
from pagemill.cli.exit_codes import ExitCode
from pagemill.cli.local_engine import VLLM
from pagemill.domain.errors import ConfigurationError, MissingDependencyError
from pagemill.engines import create_engine
from pagemill.settings import Settings, load_settings
from pagemill.telemetry import LogLevel, configure_logging, configure_tracing, get_logger, shutdown_tracing

if TYPE_CHECKING:
    from pagemill.gateway.runtime import Services

_ENGINE = "Engine"
_RUN = "Run"


def gateway_command(
    host: Annotated[str | None, typer.Option(help="Address to listen on.  [default: 127.0.0.1]")] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port; 0 for any free one.  [default: 8080]")
    ] = None,
    processes: Annotated[
        int | None, typer.Option(min=1, max=64, help="Processes that serve and work.  [default: 1]")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Folder for database and documents.  [default: pagemill-data]")
    ] = None,
    endpoint: Annotated[
        list[str] | None,
        typer.Option(help="Base URL of an OpenAI-compatible server; may be repeated.", rich_help_panel=_ENGINE),
    ] = None,
    engine: Annotated[
        str | None, typer.Option(help="Engine, see `pagemill engines`.  [default: auto]", rich_help_panel=_ENGINE)
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Name of the served model, where a server has several.", rich_help_panel=_ENGINE)
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="Settings file.  [default: pagemill.toml]", rich_help_panel=_RUN)
    ] = None,
    log_level: Annotated[
        LogLevel | None,
        typer.Option(help="debug, info (a line for each request), warning, error.", rich_help_panel=_RUN),
    ] = None,
    json_logs: Annotated[
        bool, typer.Option("--json-logs", help="Log one JSON object a line.", rich_help_panel=_RUN)
    ] = False,
    socket_fd: Annotated[int | None, typer.Option(hidden=True)] = None,
    announce: Annotated[bool, typer.Option("--announce", hidden=True)] = False,
) -> None:
    """Serves documents over HTTP: uploads become jobs that survive crashes, and their results are kept for a while.

    Without --endpoint the embedded engine reads the pages. Ctrl-C or SIGTERM lets pages in flight finish; a second one
    stops at once. Database, object storage, limits and webhooks are settings: see docs/reference/settings.md.

    Exit status: 0 stopped in good order, 1 it failed, 2 wrong usage or settings, 130 stopped at once.
    """
    given = {"host": host, "port": port, "processes": processes, "data": data}
    reader = {"name": engine, "endpoints": endpoint or None, "model": model}
    log = {"level": log_level, "format": "json" if json_logs else None}
    settings = load_settings(config, {"gateway": _given(given), "engine": _given(reader), "log": _given(log)})
    configure_logging(settings.log.level, settings.log.format)
    raise typer.Exit(_run(settings, socket_fd, announce=announce or socket_fd is None))


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _run(settings: Settings, socket_fd: int | None, *, announce: bool) -> int:
    if settings.engine.name == VLLM:
        raise ConfigurationError(
            "The document service starts no vLLM by itself.",
            "Start both with `pagemill serve`, or give --endpoint with --engine openai.",
        )
    try:
        # The rest of the command line must work without the packages of the service.
        from pagemill.gateway.server import listen  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f"The gateway needs a package that is not installed ({error}).",
            "Install it with: pip install 'pagemill[gateway]'",
        ) from error
    if socket_fd is not None:
        with socket.socket(fileno=socket_fd) as listener, _traces(settings):
            return asyncio.run(_serve(settings, listener, announce=announce, child=True))
    with listen(settings.gateway.host, settings.gateway.port) as listener:
        if settings.gateway.processes > 1:
            return asyncio.run(_supervise(settings, listener))
        with _traces(settings):
            return asyncio.run(_serve(settings, listener, announce=True, child=False))


@contextlib.contextmanager
def _traces(settings: Settings) -> Iterator[None]:
    if settings.gateway.traces is not None:
        configure_tracing(settings.gateway.traces, "pagemill-gateway", __version__)
    try:
        yield
    finally:
        shutdown_tracing()


async def _serve(settings: Settings, listener: socket.socket, *, announce: bool, child: bool) -> int:
    """One process."""
    from pagemill.gateway.runtime import Gateway  # noqa: PLC0415 - see `_run`
    from pagemill.gateway.server import GatewayServer  # noqa: PLC0415

    choice = choose_engine(settings.engine.name, settings.engine.endpoints)
    options = settings.engine.options_of(choice.name)
    engine = create_engine(choice.name, options)
    gateway = Gateway(settings.gateway, engine, settings.conversion, settings.render)
    server = GatewayServer(gateway, settings.gateway)

    async def on_ready(services: Services) -> None:
        # What is there by now stays: without this, collecting garbage looks at all of it again and again, and every
        # request waits meanwhile.
        gc.collect()
        gc.freeze()
        if announce:
            await _announce(settings, listener, services, choice.reason)

    _on_signals(server.request_stop)
    if child:
        # The pipe ends with the process that started this one, however that ends.
        asyncio.get_running_loop().add_reader(sys.stdin.fileno(), _stop_once(server.request_stop))
    in_order = await server.run(listener, on_ready)
    return ExitCode.SUCCESS if in_order else ExitCode.INTERRUPTED


async def _supervise(settings: Settings, listener: socket.socket) -> int:
    """The process that keeps the others running; they read the same command line, environment and file."""
    from pagemill.gateway.processes import ProcessGroup  # noqa: PLC0415 - see `_run`

    command = [sys.executable, "-m", "pagemill", *sys.argv[1:], "--socket-fd", str(listener.fileno())]
    group = ProcessGroup(
        [[*command, "--announce"], *[command] * (settings.gateway.processes - 1)],
        shared=[listener.fileno()],
        stop_s=settings.gateway.drain_s,
        fatal_status=ExitCode.USAGE,
    )
    _on_signals(group.request_stop)
    status = await group.run()
    return status if group.in_order else ExitCode.INTERRUPTED


def _on_signals(stop: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, stop)


def _stop_once(stop: Callable[[], None]) -> Callable[[], None]:
    def ended() -> None:
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
        stop()

    return ended


async def _announce(settings: Settings, listener: socket.socket, services: Services, engine: str) -> None:
    from pagemill.gateway.auth import Authenticator, is_loopback  # noqa: PLC0415 - see `_run`
    from pagemill.gateway.server import url_of  # noqa: PLC0415

    asked = await Authenticator(services.keys, settings.gateway).required()
    keys = "asked for" if asked else "not asked for"
    if asked and not await services.keys.all_keys():
        keys = "asked for, but there is none: make one with `pagemill keys create NAME`"
    with contextlib.suppress(BrokenPipeError):
        Console(stderr=True).print(
            f"Ready: {url_of(listener)} (API keys: {keys}). {engine}", markup=False, highlight=False, soft_wrap=True
        )
    if not asked and not is_loopback(settings.gateway.host):
        get_logger("pagemill.gateway").warning(
            "everybody who reaches this address can use the service and see all documents: gateway.auth is off",
            host=settings.gateway.host,
        )
