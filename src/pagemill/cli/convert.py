"""`pagemill convert`: documents to files."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from pagemill.api import convert_stream
from pagemill.cli.exit_codes import ExitCode, exit_code_of_results
from pagemill.cli.local_engine import ServerNotes, engine_options, plan_engine
from pagemill.cli.progress import JsonReporter, LiveReporter, PlainReporter, QuietReporter, Reporter
from pagemill.cli.summary import RunSummary
from pagemill.conversion import Enhancement, FurniturePolicy, OutputFormat, ReusePolicy
from pagemill.documents import PasswordBook
from pagemill.domain.errors import ConfigurationError
from pagemill.settings import Settings, load_settings
from pagemill.telemetry import LogLevel, configure_logging

_INPUT = "Input"
_OUTPUT = "Output"
_PAGES = "Pages"
_RUN = "Run"


def convert_command(
    inputs: Annotated[list[str], typer.Argument(help="Files, folders, patterns; - reads standard input.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the files.", rich_help_panel=_OUTPUT)
    ] = Path("out"),
    formats: Annotated[
        str | None,
        typer.Option(
            "--format", "-f", help="Files to write: md,json,html,txt.  [default: md,json]", rich_help_panel=_OUTPUT
        ),
    ] = None,
    stdout: Annotated[
        bool, typer.Option("--stdout", help="Print Markdown and write no files.", rich_help_panel=_OUTPUT)
    ] = False,
    furniture: Annotated[
        FurniturePolicy | None,
        typer.Option(help="Headers, footers, page numbers.  [default: drop]", rich_help_panel=_OUTPUT),
    ] = None,
    page_markers: Annotated[
        bool | None,
        typer.Option(help="Start each page with a comment.  [default: page-markers]", rich_help_panel=_OUTPUT),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine", "-e", help="auto, embedded, openai, vllm (started here), or another.  [default: auto]"
        ),
    ] = None,
    endpoint: Annotated[
        list[str] | None,
        typer.Option(help="URL of an OpenAI-compatible server with LightOnOCR; may be given several times."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="Name of the served model, where there are several; hub id or folder for a server here."),
    ] = None,
    lang: Annotated[
        str | None, typer.Option(help="Languages of the documents, e.g. zh,ja; servers with language routes go by it.")
    ] = None,
    pages: Annotated[
        str | None, typer.Option("--pages", "-p", help="Page ranges, e.g. 1-3,7,10-.", rich_help_panel=_PAGES)
    ] = None,
    long_side: Annotated[
        int | None,
        typer.Option(min=64, help="Pixels on the long side of a page.  [default: 1540]", rich_help_panel=_PAGES),
    ] = None,
    enhance: Annotated[
        Enhancement | None,
        typer.Option(help="Mend faint scans for engines that write text.  [default: auto]", rich_help_panel=_PAGES),
    ] = None,
    page_timeout: Annotated[
        float | None,
        typer.Option(min=0.1, help="Seconds for recognising a page.  [default: 600]", rich_help_panel=_PAGES),
    ] = None,
    password: Annotated[
        str | None,
        typer.Option(help="Password of encrypted PDFs; seen by others in process lists.", rich_help_panel=_INPUT),
    ] = None,
    password_file: Annotated[
        Path | None,
        typer.Option(help="File with a password a line, or: name TAB password.", rich_help_panel=_INPUT),
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Try failed pages of earlier runs again.", rich_help_panel=_RUN)
    ] = False,
    force: Annotated[
        bool,
        typer.Option("--force", help="Do every page anew and overwrite edited outputs.", rich_help_panel=_RUN),
    ] = False,
    render_workers: Annotated[
        int | None, typer.Option(min=1, help="Render processes.  [default: cores]", rich_help_panel=_RUN)
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="Settings file.  [default: pagemill.toml]", rich_help_panel=_RUN)
    ] = None,
    log_level: Annotated[
        LogLevel | None, typer.Option(help="debug, info, warning, error.", rich_help_panel=_RUN)
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.", rich_help_panel=_RUN)] = False,
    json_events: Annotated[
        bool, typer.Option("--json", help="Print events as JSON lines.", rich_help_panel=_RUN)
    ] = False,
) -> None:
    """Converts PDFs and images to Markdown.

    Run the same command again after an interruption: finished pages are not done twice.

    Exit status: 0 all good, 1 nothing converted, 2 wrong usage, 3 partly converted, 130 interrupted.
    """
    if stdout and json_events:
        raise ConfigurationError("--stdout and --json both want standard output.", "Choose one.")
    settings = load_settings(
        config, _overrides(engine=engine, endpoints=endpoint, model=model, lang=lang, log_level=log_level)
    )
    settings = _apply(
        settings,
        conversion={
            "pages": pages,
            "formats": None if formats is None else _parse_formats(formats),
            "furniture": furniture,
            "page_markers": page_markers,
            "enhance": enhance,
            "page_timeout_s": page_timeout,
            "reuse": ReusePolicy.NONE if force else ReusePolicy.GOOD if retry_failed else None,
            "overwrite_changed": True if force else None,
            "render_workers": render_workers,
        },
        render={"long_side": long_side},
    )
    configure_logging(settings.log.level, settings.log.format)
    passwords = _passwords(password, password_file)
    run = _run(inputs, None if stdout else output, settings, passwords, quiet=quiet, json_events=json_events)
    raise typer.Exit(_run_until_stopped(run))


def _run_until_stopped(run: Coroutine[Any, Any, int]) -> int:
    """Runs to the end, or until Ctrl-C or SIGTERM; what is under way is then put down in good order."""

    async def stoppable() -> int:
        task = asyncio.current_task()
        if task is not None and sys.platform != "win32":
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await run

    try:
        return asyncio.run(stoppable())
    except (KeyboardInterrupt, asyncio.CancelledError):
        Console(stderr=True).print("Stopped. Finished pages are kept: run the same command again to go on.")
        return ExitCode.INTERRUPTED


def _overrides(
    engine: str | None, endpoints: list[str] | None, model: str | None, lang: str | None, log_level: LogLevel | None
) -> dict[str, Any]:
    languages = [code.strip() for code in lang.split(",") if code.strip()] if lang else None
    given = {"name": engine, "endpoints": endpoints or None, "model": model, "languages": languages}
    overrides: dict[str, Any] = {"engine": {name: value for name, value in given.items() if value is not None}}
    if log_level is not None:
        overrides["log"] = {"level": log_level}
    return overrides


def _apply(settings: Settings, conversion: dict[str, Any], render: dict[str, Any]) -> Settings:
    """The settings with what the command line sets; None leaves a value as it is."""

    def given(values: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in values.items() if value is not None}

    return settings.model_copy(
        update={
            "conversion": replace(settings.conversion, **given(conversion)),
            "render": replace(settings.render, **given(render)),
        }
    )


def _parse_formats(text: str) -> tuple[OutputFormat, ...]:
    names = [name.strip().lower() for name in text.split(",") if name.strip()]
    known = {item.value: item for item in OutputFormat}
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        raise ConfigurationError(
            f"--format does not know '{', '.join(unknown) or text}'.", f"Known: {', '.join(known)}."
        )
    return tuple(dict.fromkeys(known[name] for name in names))


def _passwords(password: str | None, file: Path | None) -> PasswordBook | None:
    if password is not None and file is not None:
        raise ConfigurationError("--password and --password-file are both given.", "Use one of them.")
    if file is not None:
        return PasswordBook.from_file(file)
    return None if password is None else PasswordBook(common=(password,))


def _reporter(console: Console, *, quiet: bool, json_events: bool) -> Reporter:
    if json_events:
        return JsonReporter(sys.stdout)
    if quiet:
        return QuietReporter()
    return LiveReporter(console) if console.is_terminal else PlainReporter(sys.stderr)


async def _run(
    inputs: list[str],
    output: Path | None,
    settings: Settings,
    passwords: PasswordBook | None,
    *,
    quiet: bool,
    json_events: bool,
) -> int:
    console = Console(stderr=True)
    plan = plan_engine(settings)
    told = not quiet and not json_events
    if told:
        console.print(plan.choice.reason, highlight=False, markup=False)
    summary = RunSummary()
    notes = ServerNotes(console) if told else None
    async with engine_options(settings, plan, notes.handle if notes else lambda _event: None) as options:
        started = time.monotonic()
        reporter = _reporter(console, quiet=quiet, json_events=json_events)
        try:
            stream = convert_stream(
                list(inputs),
                output,
                engine=plan.choice.name,
                engine_options=options,
                options=settings.conversion,
                render=settings.render,
                passwords=passwords,
                on_event=reporter.handle,
                keep_pages=output is None,
            )
            async for result in stream:
                summary.add(result)
                if output is None and result.markdown:
                    sys.stdout.write(result.markdown)
                    sys.stdout.flush()
        finally:
            reporter.close()
        seconds = time.monotonic() - started
    if not json_events and (not quiet or summary.problems):
        summary.print(console, seconds, None if output is None else str(output))
    return exit_code_of_results(summary.statuses)
