"""`pagemill serve`: LightOnOCR on vLLM, supervised."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shlex
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, TextIO

import typer
from rich.console import Console

from pagemill.cli.exit_codes import ExitCode
from pagemill.cli.front_service import FrontService
from pagemill.cli.local_engine import ServerNotes
from pagemill.domain.errors import ConfigurationError, MissingDependencyError, OutputError
from pagemill.serving import Preparation, ServeEvent, ServeOptions, Supervisor, prepare
from pagemill.serving.events import (
    Note,
    ServeEventHandler,
    State,
    StateChanged,
    event_to_json,
)
from pagemill.serving.logs import LogRecord
from pagemill.serving.process import RecordHandler
from pagemill.settings import Settings, load_settings
from pagemill.telemetry import configure_logging

_MODEL = "Model"
_MACHINE = "Machine"
_GATEWAY = "Document service"
_RUN = "Run"


def serve_command(
    vllm_flags: Annotated[
        list[str] | None, typer.Argument(help="After --: more flags for vllm serve, as they are.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="Hub id or folder.  [default: lightonai/LightOnOCR-2-1B]", rich_help_panel=_MODEL),
    ] = None,
    source: Annotated[
        Literal["hf", "modelscope"] | None,
        typer.Option(help="Hub of the id: hf or modelscope.  [default: hf]", rich_help_panel=_MODEL),
    ] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Use only what was downloaded before.", rich_help_panel=_MODEL)
    ] = False,
    served_name: Annotated[
        str | None, typer.Option(help="Name for clients.  [default: lightonocr]", rich_help_panel=_MODEL)
    ] = None,
    max_model_len: Annotated[
        int | None,
        typer.Option(min=1, help="Tokens of page and answer.  [default: the model's]", rich_help_panel=_MODEL),
    ] = None,
    host: Annotated[
        str | None, typer.Option(help="Address to listen on.  [default: 127.0.0.1]", rich_help_panel=_MACHINE)
    ] = None,
    port: Annotated[
        str | None, typer.Option(help="Port, or auto for a free one.  [default: 8000]", rich_help_panel=_MACHINE)
    ] = None,
    gpus: Annotated[
        int | None,
        typer.Option(min=1, help="GPUs to use, an engine on each.  [default: all]", rich_help_panel=_MACHINE),
    ] = None,
    tensor_parallel: Annotated[
        int | None, typer.Option(min=1, help="GPUs that share one engine.  [default: 1]", rich_help_panel=_MACHINE)
    ] = None,
    device: Annotated[
        Literal["auto", "cpu"] | None,
        typer.Option(help="auto, or cpu for a CPU build.  [default: auto]", rich_help_panel=_MACHINE),
    ] = None,
    vllm: Annotated[
        Path | None,
        typer.Option(help="The vllm executable.  [default: beside this Python, or on PATH]", rich_help_panel=_MACHINE),
    ] = None,
    log_file: Annotated[
        Path | None, typer.Option(help="File for the server's log, as JSON lines.", rich_help_panel=_RUN)
    ] = None,
    gateway: Annotated[
        bool | None,
        typer.Option(
            "--gateway/--no-gateway",
            help="Start the document service in front of it.  [default: gateway, where it is installed]",
            rich_help_panel=_GATEWAY,
        ),
    ] = None,
    gateway_host: Annotated[
        str | None,
        typer.Option(help="Address of the document service.  [default: 127.0.0.1]", rich_help_panel=_GATEWAY),
    ] = None,
    gateway_port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Its port; 0 for any free one.  [default: 8080]", rich_help_panel=_GATEWAY),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="Settings file.  [default: pagemill.toml]", rich_help_panel=_RUN)
    ] = None,
    json_events: Annotated[
        bool, typer.Option("--json", help="Print events as JSON lines.", rich_help_panel=_RUN)
    ] = False,
) -> None:
    """Serves LightOnOCR with vLLM, and starts it again when it dies or hangs; before it, the document service.

    Ctrl-C or SIGTERM lets pages in flight finish; a second one stops at once.

    Exit status: 0 stopped in good order, 1 the server failed, 2 wrong usage or nothing to run it on, 130 stopped at
    once.
    """
    given = {
        "model": model,
        "source": source,
        "offline": offline or None,
        "served_name": served_name,
        "max_model_len": max_model_len,
        "host": host,
        "port": None if port is None else _parse_port(port),
        "gpus": gpus,
        "tensor_parallel": tensor_parallel,
        "device": device,
        "vllm": vllm,
        "log_file": log_file,
        "extra_args": tuple(vllm_flags) if vllm_flags else None,
        "gateway": gateway,
    }
    front = {"host": gateway_host, "port": gateway_port}
    settings = load_settings(config, {"serve": _given(given), "gateway": _given(front)})
    configure_logging(settings.log.level, settings.log.format)
    reporter = JsonServeReporter(sys.stdout) if json_events else PlainServeReporter(Console(stderr=True))
    prepared = prepare(settings.serve)
    reporter.prepared(prepared)
    raise typer.Exit(asyncio.run(_run(prepared, reporter, _front(settings, prepared, config))))


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _front(settings: Settings, prepared: Preparation, config: Path | None) -> FrontService | None:
    """The document service in front of the server; None where it is not wanted, or not installed and not asked for."""
    wanted = settings.serve.gateway
    if wanted is False:
        return None
    try:
        return FrontService(settings, prepared, config)
    except MissingDependencyError:
        if wanted:
            raise
        return None


def _parse_port(text: str) -> int | Literal["auto"]:
    if text == "auto":
        return "auto"
    if not text.isdigit():
        raise ConfigurationError(f"--port is '{text}'.", "Give a number, or auto.")
    return int(text)


async def _run(
    prepared: Preparation, reporter: PlainServeReporter | JsonServeReporter, front: FrontService | None
) -> int:
    options = prepared.options
    with _log_file(options.log_file, reporter.handle) as write_log, front or contextlib.nullcontext():

        def take(record: LogRecord) -> None:
            write_log(record)
            reporter.log(record)

        def handle(event: ServeEvent) -> None:
            reporter.handle(event)
            if front is not None:
                front.tell(supervisor.status())

        supervisor = Supervisor(
            prepared.command,
            options.watch,
            model=options.served_name,
            api_key=None if options.api_key is None else options.api_key.get_secret_value(),
            on_event=handle,
            on_record=take,
        )
        stop = supervisor.request_stop if front is None else front.stop_before(supervisor.request_stop)
        loop = asyncio.get_running_loop()
        for name in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(name, stop)
        if front is None:
            in_order = await supervisor.run()
        else:
            in_order = await front.run_with(supervisor)
    return ExitCode.SUCCESS if in_order else ExitCode.INTERRUPTED


@contextlib.contextmanager
def _log_file(path: Path | None, on_event: ServeEventHandler) -> Iterator[RecordHandler]:
    if path is None:
        yield lambda _record: None
        return
    try:
        # Unbuffered, so that a line that could not be written is not tried again at the end.
        file = path.open("ab", buffering=0)
    except OSError as error:
        raise OutputError(f"{path} cannot be written ({error.strerror or error}).", "Check --log-file.") from error
    broken = False

    def write(record: LogRecord) -> None:
        nonlocal broken
        try:
            file.write(json.dumps(record.as_json(), ensure_ascii=False).encode() + b"\n")
            broken = False
        except OSError as error:
            if not broken:
                on_event(Note(f"{path} cannot be written ({error.strerror or error}); the server goes on."))
            broken = True

    with file:
        yield write


class PlainServeReporter:
    """A line for each change, and the server's warnings and errors: for people and journals."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._notes = ServerNotes(console)
        self._options: ServeOptions | None = None
        self._seen: set[tuple[str, str]] = set()

    def prepared(self, prepared: Preparation) -> None:
        """Tells what will be run."""
        self._options = prepared.options
        installed = prepared.installed
        self._say(f"vLLM {installed.vllm}, transformers {installed.transformers}: {prepared.command.argv[0]}")
        for gpu in prepared.gpus:
            self._say(f"GPU {gpu.index}: {gpu.name}, {gpu.memory_mib:,} MiB, {gpu.used_mib:,} in use")
        for note in prepared.notes:
            self._say(f"Note: {note}", "yellow")
        self._say("Runs: " + shlex.join(prepared.command.argv))

    def handle(self, event: ServeEvent) -> None:
        """Takes an event."""
        if isinstance(event, StateChanged):
            if event.state is State.READY and event.url is not None:
                self._ready(event.url)
            elif event.state is not State.WAITING:
                self._say(f"{event.state.value.capitalize()}{f': {event.detail}' if event.detail else ''}")
        else:
            self._notes.handle(event)

    def log(self, record: LogRecord) -> None:
        """Shows a warning of the server, each only once; errors come as events."""
        key = (record.source, record.message)
        if record.level == "WARNING" and key not in self._seen:
            self._seen.add(key)
            self._say(f"  vLLM: {record.message}", "dim")

    def _ready(self, url: str) -> None:
        self._say(f"Ready: {url}", "green")
        options = self._options
        assert options is not None
        key = "" if options.api_key is None else 'PAGEMILL_ENGINE__OPTIONS=\'{"api_key": "..."}\' '
        self._say(f"Convert with: {key}pagemill convert FILES -o out --endpoint {url}")

    def _say(self, text: str, style: str | None = None) -> None:
        self._console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


class JsonServeReporter:
    """An object a line: for programs."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def prepared(self, prepared: Preparation) -> None:
        """Tells what will be run."""
        self._write(
            {
                "event": "prepared",
                "vllm": prepared.installed.vllm,
                "transformers": prepared.installed.transformers,
                "gpus": [gpu.name for gpu in prepared.gpus],
                "argv": list(prepared.command.argv),
                "url": prepared.command.base_url,
                "notes": list(prepared.notes),
            }
        )

    def handle(self, event: ServeEvent) -> None:
        """Takes an event."""
        self._write(event_to_json(event))

    def log(self, record: LogRecord) -> None:
        """Takes a record of the server's log: left to --log-file."""

    def _write(self, data: dict[str, Any]) -> None:
        print(json.dumps(data), file=self._stream, flush=True)
