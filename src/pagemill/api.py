"""The Python API: `convert`, `convert_async` and `convert_stream`. The command line is built on it.

Example:
    >>> from pagemill import convert
    >>> result = convert("report.pdf")[0]
    >>> print(result.markdown)
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from pagemill.conversion import ConversionOptions, Converter, EventHandler
from pagemill.documents import PasswordBook, RenderOptions, RenderPool, resolve_sources
from pagemill.domain import ConversionResult
from pagemill.engines import Engine, available_engines, create_engine

Inputs = str | Path | Sequence[str | Path]

AUTO = "auto"
_EMBEDDED = "embedded"


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """Which engine is used, and why.

    Attributes:
        name: Its name.
        reason: One sentence for people.
    """

    name: str
    reason: str


def choose_engine(name: str = AUTO) -> EngineChoice:
    """Settles `auto`.

    Args:
        name: Name of an engine, or `auto`.
    """
    if name != AUTO:
        return EngineChoice(name, f"Engine: {name}, as asked for.")
    return EngineChoice(
        _EMBEDDED,
        "Engine: embedded (OCR on this machine's CPU). LightOnOCR on vLLM reads better, above all formulas, "
        "complex tables, handwriting and poor scans.",
    )


def convert(inputs: Inputs, output: str | Path | None = None, **arguments: Any) -> list[ConversionResult]:
    """Converts documents and waits for all of them.

    Works in scripts, in notebooks and in threads; where an event loop is running already, it works in a thread of its
    own. See `convert_async` for the arguments.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(convert_async(inputs, output, **arguments))
    outcome: list[ConversionResult] = []
    failure: list[BaseException] = []

    def work() -> None:
        try:
            outcome.extend(asyncio.run(convert_async(inputs, output, **arguments)))
        except BaseException as error:  # noqa: BLE001 - handed to the caller's thread below
            failure.append(error)

    thread = threading.Thread(target=work, name="pagemill-convert")
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return outcome


async def convert_async(
    inputs: Inputs,
    output: str | Path | None = None,
    *,
    engine: str | Engine = AUTO,
    engine_options: Mapping[str, Any] | None = None,
    options: ConversionOptions | None = None,
    render: RenderOptions | None = None,
    passwords: PasswordBook | str | None = None,
    on_event: EventHandler | None = None,
) -> list[ConversionResult]:
    """Converts documents and gives all results, in the order in which they were completed.

    Args:
        inputs: Files, folders and glob patterns; `-` is standard input.
        output: Folder for the files; without it nothing is written and everything is in the results.
        engine: Name of an engine, `auto`, or an engine of your own, which is left running.
        engine_options: Options of an engine given by name.
        options: How documents are converted.
        render: How pages are rendered, and the limits on it.
        passwords: For encrypted PDFs: one password, or a book of them.
        on_event: Called for each event while the conversion runs.

    Returns:
        A result for each document, failed ones too: look at `status`, and at `pages[i].error`.

    Raises:
        InputError: An input does not exist.
        ConfigurationError: The engine does not exist or cannot run here; options contradict each other.
        EngineError: The engine cannot start.
    """
    stream = convert_stream(
        inputs,
        output,
        engine=engine,
        engine_options=engine_options,
        options=options,
        render=render,
        passwords=passwords,
        on_event=on_event,
    )
    return [result async for result in stream]


async def convert_stream(
    inputs: Inputs,
    output: str | Path | None = None,
    *,
    engine: str | Engine = AUTO,
    engine_options: Mapping[str, Any] | None = None,
    options: ConversionOptions | None = None,
    render: RenderOptions | None = None,
    passwords: PasswordBook | str | None = None,
    on_event: EventHandler | None = None,
    keep_pages: bool = True,
    stdin: BinaryIO | None = None,
) -> AsyncIterator[ConversionResult]:
    """Converts documents and yields each result as it is complete.

    Takes what `convert_async` takes, and:

    Args:
        inputs: As there.
        output: As there.
        engine: As there.
        engine_options: As there.
        options: As there.
        render: As there.
        passwords: As there.
        on_event: As there.
        keep_pages: False leaves Markdown, blocks and pictures out of the results (they are in the files), so that
            memory does not grow with the documents.
        stdin: What the input `-` reads; standard input by default.

    Yields:
        Results in the order in which documents are completed.
    """
    names = [str(item) for item in ([inputs] if isinstance(inputs, str | Path) else inputs)]
    book = PasswordBook(common=(passwords,)) if isinstance(passwords, str) else passwords
    async with contextlib.AsyncExitStack() as stack:
        spool = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pagemill-")))
        sources = resolve_sources(names, stdin=stdin, spool_folder=spool, passwords=book)
        chosen = create_engine(choose_engine(engine).name, engine_options) if isinstance(engine, str) else engine
        if isinstance(engine, str):
            stack.push_async_callback(chosen.aclose)
        pool = await stack.enter_async_context(
            RenderPool(render or RenderOptions(), workers=options.render_workers if options else None)
        )
        converter = Converter(
            chosen,
            pool,
            None if output is None else Path(output),
            options,
            on_event=on_event,
            keep_pages=keep_pages,
        )
        async with contextlib.aclosing(converter.run(sources)) as results:
            async for result in results:
                yield result


__all__ = [
    "AUTO",
    "EngineChoice",
    "Inputs",
    "available_engines",
    "choose_engine",
    "convert",
    "convert_async",
    "convert_stream",
]
