"""Which engine a command uses, and a vLLM of one's own for as long as the command runs."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from pagemill.api import AUTO, EngineChoice, choose_engine
from pagemill.domain.errors import ConfigurationError, MissingDependencyError
from pagemill.serving import Preparation, ServeEvent, ServeOptions, State, Supervisor, prepare
from pagemill.serving.command import find_executable
from pagemill.serving.events import ErrorSeen, Note, Restarting, ServeEventHandler, StartProgress, StateChanged
from pagemill.serving.hardware import find_gpus
from pagemill.serving.versions import read_installed
from pagemill.settings import Settings

VLLM = "vllm"
"""Name that asks for a server started here."""
_OPENAI = "openai"
_STOP_S = 10.0
"""Time for a server that has no work left to end by itself."""


@dataclass(frozen=True, slots=True)
class EnginePlan:
    """The engine that was settled on.

    Attributes:
        choice: Its name, and why it is the one.
        server: The server to start for it; None where none is needed.
    """

    choice: EngineChoice
    server: Preparation | None = None


def plan_engine(settings: Settings) -> EnginePlan:
    """Settles on an engine: the one that was named; for `auto` an endpoint, a GPU with vLLM, or the embedded engine.

    Raises:
        ConfigurationError: A server is to be started here and cannot be, or endpoints are given as well; the message
            says why.
        MissingDependencyError: vLLM was asked for by name and is not installed.
    """
    engine = settings.engine
    if engine.name == VLLM and engine.endpoints:
        raise ConfigurationError(
            "The engine is vllm, a server started here, but endpoints are given as well.",
            "Leave out --engine to use the endpoints; leave out --endpoint (engine.endpoints) to start a server.",
        )
    if engine.endpoints or engine.name not in (AUTO, VLLM):
        return EnginePlan(choose_engine(engine.name, engine.endpoints))
    options = settings.serve.model_copy(
        update={"port": "auto", **({} if engine.model is None else {"model": engine.model})}
    )
    if engine.name == AUTO and (lacking := _what_is_lacking(options)):
        reason = (
            f"Engine: embedded (OCR on this machine's CPU), because no endpoint is given and {lacking}. LightOnOCR on "
            "vLLM reads better, above all formulas, complex tables, handwriting and poor scans."
        )
        return EnginePlan(EngineChoice(choose_engine().name, reason))
    server = prepare(options)
    where = ", ".join(gpu.name for gpu in server.gpus) or "the CPU"
    why = "as asked for" if engine.name == VLLM else "because it is installed and there is a GPU"
    return EnginePlan(
        EngineChoice(_OPENAI, f"Engine: {options.model} on vLLM {server.installed.vllm} ({where}), {why}."), server
    )


def _what_is_lacking(options: ServeOptions) -> str:
    """Why no server can be started here, in a few words; empty where one can."""
    if not find_gpus(os.environ):
        return "this machine has no GPU"
    try:
        executable = find_executable(options.vllm, os.environ)
    except MissingDependencyError:
        return "vLLM is not installed"
    return "the vLLM here is one for CPUs" if read_installed(executable).is_cpu_build else ""


class ServerNotes:
    """Tells people how a server of one's own fares.

    Args:
        console: Where to.
    """

    def __init__(self, console: Console) -> None:
        self._console = console

    def handle(self, event: ServeEvent) -> None:
        """Takes an event."""
        if isinstance(event, StartProgress):
            self._say(f"  {event.elapsed_s:4.0f} s  {event.phase}", "dim")
        elif isinstance(event, ErrorSeen):
            self._say(f"  {event.error}", "red")
        elif isinstance(event, Restarting):
            self._say(f"{event.reason} Restart {event.restart} in {event.wait_s:.1f} s.", "yellow")
        elif isinstance(event, Note):
            self._say(f"Note: {event.text}", "yellow")

    def _say(self, text: str, style: str) -> None:
        self._console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


@contextlib.asynccontextmanager
async def engine_options(
    settings: Settings, plan: EnginePlan, on_event: ServeEventHandler
) -> AsyncIterator[dict[str, Any]]:
    """Options of the planned engine; where it needs a server here, that runs for as long as the block lasts.

    Args:
        settings: All settings.
        plan: What `plan_engine` settled on.
        on_event: Told how the server fares.

    Raises:
        ConfigurationError, EngineUnavailableError: The server does not start.
    """
    options = settings.engine.options_of(plan.choice.name)
    if plan.server is None:
        yield options
        return
    for note in plan.server.notes:
        on_event(Note(note))
    async with _running(plan.server, on_event):
        served = plan.server.options
        options |= {"endpoints": [plan.server.command.base_url], "model": served.served_name}
        if served.api_key is not None:
            options["api_key"] = served.api_key.get_secret_value()
        yield options


@contextlib.asynccontextmanager
async def _running(server: Preparation, on_event: ServeEventHandler) -> AsyncIterator[None]:
    ready = asyncio.Event()

    def handle(event: ServeEvent) -> None:
        if isinstance(event, StateChanged) and event.state is State.READY:
            ready.set()
        on_event(event)

    key = server.options.api_key
    supervisor = Supervisor(
        server.command,
        server.options.watch,
        model=server.options.served_name,
        api_key=None if key is None else key.get_secret_value(),
        on_event=handle,
    )
    running = asyncio.create_task(supervisor.run())
    is_ready = asyncio.create_task(ready.wait())
    try:
        await asyncio.wait({running, is_ready}, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            running.result()
        yield
    finally:
        is_ready.cancel()
        await _stop(supervisor, running)


async def _stop(supervisor: Supervisor, running: asyncio.Task[bool]) -> None:
    """Ends the server in good order, since one that is killed leaves shared memory behind; soon in any case."""
    supervisor.request_stop()
    try:
        await asyncio.wait({running}, timeout=_STOP_S)
    finally:
        supervisor.request_stop()
        with contextlib.suppress(Exception):
            await asyncio.shield(running)
