from __future__ import annotations

import io
import json
from pathlib import Path

from rich.console import Console

from pagemill.cli.progress import JsonReporter, LiveReporter, PlainReporter, Tally, format_seconds, shorten
from pagemill.cli.summary import RunSummary
from pagemill.conversion import DocumentFinished, DocumentStarted, Event, PageFinished, RunStarted
from pagemill.domain import (
    ConversionResult,
    ConversionStatus,
    DocumentInfo,
    DocumentSource,
    FinishReason,
    PageError,
    PageResult,
)
from pagemill.domain.errors import EncryptedDocumentError

GOOD = PageResult(0, "x")
BAD = PageResult(1, "", FinishReason.ERROR, error=PageError("render_failed", "It hung. Raise the limit."))
INFO = DocumentInfo("a", "pdf", ())


def document(name: str, status: ConversionStatus, *pages: PageResult) -> ConversionResult:
    return ConversionResult(DocumentSource(Path(name), name), status, pages, info=INFO)


PARTIAL = document("[a].pdf", ConversionStatus.PARTIAL_SUCCESS, GOOD, BAD)
EVENTS: list[Event] = [
    RunStarted(3),
    DocumentStarted("[a].pdf", 2, 0),
    PageFinished("[a].pdf", GOOD),
    PageFinished("[a].pdf", BAD),
    DocumentFinished(PARTIAL),
]


def test_tally_expects_pages_of_documents_that_are_not_open_yet() -> None:
    tally = Tally()
    for event in EVENTS:
        tally.add(event)
    assert (tally.documents_done, tally.pages_done, tally.pages_failed) == (1, 2, 1)
    assert tally.pages_expected() == 6
    assert tally.seconds_left() is not None


def test_documents_that_could_not_be_opened_do_not_raise_the_expectation() -> None:
    tally = Tally()
    tally.add(RunStarted(2))
    tally.add(DocumentStarted("a", 10, 0))
    failed = ConversionResult(
        DocumentSource(Path("b"), "b"), ConversionStatus.FAILURE, error=EncryptedDocumentError("b")
    )
    tally.add(DocumentFinished(failed))
    assert tally.pages_expected() == 5 + 5


def test_json_lines_are_objects_with_the_facts() -> None:
    stream = io.StringIO()
    reporter = JsonReporter(stream)
    for event in EVENTS:
        reporter.handle(event)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["event"] for line in lines] == [
        "run_started",
        "document_started",
        "page_finished",
        "page_finished",
        "document_finished",
    ]
    assert lines[3]["error"] == {"code": "render_failed", "message": "It hung. Raise the limit."}
    assert lines[4]["pages_failed"] == 1


def test_plain_lines_name_the_document_and_its_failures() -> None:
    stream = io.StringIO()
    reporter = PlainReporter(stream)
    for event in EVENTS:
        reporter.handle(event)
    assert stream.getvalue().startswith("partial  [a].pdf: 2 pages in ")
    assert "1 failed" in stream.getvalue()


def test_live_display_takes_names_that_look_like_markup() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    reporter = LiveReporter(console)
    for event in EVENTS:
        reporter.handle(event)
    reporter.close()
    assert "[a].pdf" in console.file.getvalue()  # type: ignore[attr-defined]


def test_summary_says_what_failed_and_what_to_do() -> None:
    console = Console(file=io.StringIO(), width=140)
    summary = RunSummary()
    summary.add(PARTIAL)
    encrypted = EncryptedDocumentError("b.pdf is encrypted.", "Give --password.")
    summary.add(ConversionResult(DocumentSource(Path("b"), "b"), ConversionStatus.FAILURE, error=encrypted))
    summary.print(console, 2.0, "out")
    text = console.file.getvalue()  # type: ignore[attr-defined]
    for part in (
        "[a].pdf",
        "It hung. Raise the limit.",
        "Give --password.",
        "--retry-failed",
        "1 partial, 1 failed",
        "Output: out",
    ):
        assert part in text


def test_summary_stays_short() -> None:
    console = Console(file=io.StringIO(), width=140)
    summary = RunSummary()
    for number in range(200):
        summary.add(document(f"{number}.pdf", ConversionStatus.PARTIAL_SUCCESS, BAD))
    summary.print(console, 2.0, None)
    assert "... and 150 more." in console.file.getvalue()  # type: ignore[attr-defined]


def test_times_and_names_are_short() -> None:
    assert [format_seconds(value) for value in (None, 5, 65, 3725)] == ["-:--", "0:05", "1:05", "1:02:05"]
    assert shorten("x" * 100).endswith("x")
    assert len(shorten("x" * 100)) == 48
