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
from collections.abc import AsyncGenerator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypedDict

from typing_extensions import Unpack

from pagemill.conversion import ConversionOptions, Converter, EventHandler
from pagemill.documents import PasswordBook, RenderOptions, RenderPool, resolve_sources
from pagemill.domain import ConversionResult
from pagemill.engines import Engine, available_engines, create_engine
from pagemill.engines.openai.options import without_userinfo

Inputs = str | Path | Sequence[str | Path]

AUTO = "auto"
_EMBEDDED = "embedded"
_OPENAI = "openai"


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """Which engine is used, and why.

    Attributes:
        name: Its name.
        reason: One sentence for people.
    """

    name: str
    reason: str


def choose_engine(name: str = AUTO, endpoints: Sequence[str] = ()) -> EngineChoice:
    """Settles `auto`: a server that was named, else the embedded engine.

    Args:
        name: Name of an engine, or `auto`.
        endpoints: Base URLs of OpenAI-compatible servers.
    """
    if name != AUTO:
        return EngineChoice(name, f"Engine: {name}, as asked for.")
    if endpoints:
        shown = ", ".join(map(without_userinfo, endpoints))
        return EngineChoice(_OPENAI, f"Engine: openai (the model at {shown}).")
    return EngineChoice(
        _EMBEDDED,
        "Engine: embedded (OCR on this machine's CPU), because no endpoint is given. LightOnOCR on vLLM reads better, "
        "above all formulas, complex tables, handwriting and poor scans: start it and give --endpoint.",
    )


class ConvertArguments(TypedDict, total=False):
    """What `convert` and `convert_async` take besides inputs and output; all optional.

    Attributes:
        engine: Name of an engine, `auto`, or an engine of your own, which is left running.
        engine_options: Options of an engine given by name; with `endpoints` among them `auto` takes `openai`.
        options: How documents are converted.
        render: How pages are rendered, and the limits on it.
        passwords: For encrypted PDFs: one password, or a book of them.
        on_event: Called for each event while the conversion runs.
    """

    engine: str | Engine
    engine_options: Mapping[str, Any] | None
    options: ConversionOptions | None
    render: RenderOptions | None
    passwords: PasswordBook | str | None
    on_event: EventHandler | None


def convert(
    inputs: Inputs, output: str | Path | None = None, **arguments: Unpack[ConvertArguments]
) -> list[ConversionResult]:
    """Converts documents and waits for all of them.

    Works in scripts, in notebooks and in threads: where an event loop is running already, the conversion gets a thread
    and a loop of its own. See `convert_async` for arguments, results and errors.
    """
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="pagemill-convert") as executor:
        return executor.submit(lambda: asyncio.run(convert_async(inputs, output, **arguments))).result()


async def convert_async(
    inputs: Inputs, output: str | Path | None = None, **arguments: Unpack[ConvertArguments]
) -> list[ConversionResult]:
    """Converts documents and gives all results, in the order in which they were completed.

    Args:
        inputs: Files, folders and glob patterns; `-` is standard input.
        output: Folder for the files; without it nothing is written and everything is in the results.
        **arguments: See `ConvertArguments`.

    Returns:
        A result for each document, failed ones too: look at `status`, and at `pages[i].error`.

    Raises:
        InputError: An input does not exist.
        ConfigurationError: The engine does not exist or cannot run here; options contradict each other.
        EngineError: The engine cannot start.
    """
    return [result async for result in convert_stream(inputs, output, **arguments)]


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
) -> AsyncGenerator[ConversionResult, None]:
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
        chosen = engine if isinstance(engine, Engine) else _create(engine, engine_options)
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


def _create(name: str, options: Mapping[str, Any] | None) -> Engine:
    return create_engine(choose_engine(name, (options or {}).get("endpoints", ())).name, options)


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
