"""How a conversion is followed: a live display, plain lines, JSON lines, or nothing."""

from __future__ import annotations

import json
import time
from collections import deque
from typing import Any, Protocol, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from pagemill.conversion import DocumentFinished, DocumentStarted, Event, PageFinished, RunStarted
from pagemill.domain import ConversionStatus

_RATE_WINDOW_S = 60.0
_PLAIN_INTERVAL_S = 10.0
_SHOWN_NAME = 48


class Reporter(Protocol):
    """Follows a conversion."""

    def handle(self, event: Event) -> None:
        """Takes an event."""
        ...

    def close(self) -> None:
        """Ends the display; nothing follows."""
        ...


class Tally:
    """Counts what was done, and tells the speed and the time left."""

    def __init__(self) -> None:
        self.documents = 0
        self.documents_opened = 0
        self.documents_done = 0
        self.pages_known = 0
        self.pages_done = 0
        self.pages_failed = 0
        self._made: deque[float] = deque()
        self._started = time.monotonic()

    def add(self, event: Event) -> None:
        """Counts an event."""
        if isinstance(event, RunStarted):
            self.documents = event.documents
        elif isinstance(event, DocumentStarted):
            self.documents_opened += 1
            self.pages_known += event.pages
            self.pages_done += event.reused
        elif isinstance(event, PageFinished):
            self.pages_done += 1
            self.pages_failed += not event.result.ok
            self._made.append(time.monotonic())
        else:
            self.documents_done += 1
            # Documents that another run helped with, or that could not be opened, gave no event for some pages.
            if event.result.info is None:
                self.documents_opened += 1

    def pages_per_second(self) -> float:
        """Pages made in the last minute, a second; 0 before the first."""
        now = time.monotonic()
        while self._made and now - self._made[0] > _RATE_WINDOW_S:
            self._made.popleft()
        span = min(now - self._started, _RATE_WINDOW_S)
        return len(self._made) / span if span > 0 else 0.0

    def pages_expected(self) -> int:
        """Pages in all; documents that are not open yet count with the mean of the others."""
        if not self.documents_opened:
            return self.pages_known
        unopened = max(0, self.documents - self.documents_opened)
        return self.pages_known + round(unopened * self.pages_known / self.documents_opened)

    def seconds_left(self) -> float | None:
        """Estimate of the time to the end; None before the first page."""
        rate = self.pages_per_second()
        return max(0, self.pages_expected() - self.pages_done) / rate if rate > 0 else None

    def describe(self) -> str:
        """One line for people."""
        left = self.seconds_left()
        parts = [
            f"{self.documents_done}/{self.documents} documents",
            f"{self.pages_done}/{self.pages_expected()} pages",
            f"{self.pages_per_second():.2f} pages/s",
            f"ETA {format_seconds(left)}",
        ]
        if self.pages_failed:
            parts.append(f"{self.pages_failed} pages failed")
        return ", ".join(parts)


def format_seconds(seconds: float | None) -> str:
    """`h:mm:ss`, or `m:ss` below an hour; `-:--` where unknown."""
    if seconds is None:
        return "-:--"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


class QuietReporter:
    """Says nothing."""

    def handle(self, event: Event) -> None:
        """Takes an event."""

    def close(self) -> None:
        """Ends the display."""


class PlainReporter:
    """A line for each document, and one for the whole every ten seconds: for logs and pipes."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._tally = Tally()
        self._last = time.monotonic()

    def handle(self, event: Event) -> None:
        """Takes an event."""
        self._tally.add(event)
        if isinstance(event, DocumentFinished):
            self._say(describe_document(event))
        elif time.monotonic() - self._last >= _PLAIN_INTERVAL_S:
            self._say(self._tally.describe())

    def close(self) -> None:
        """Ends the display."""

    def _say(self, line: str) -> None:
        self._last = time.monotonic()
        print(line, file=self._stream, flush=True)


def describe_document(event: DocumentFinished) -> str:
    """A finished document in one line."""
    result = event.result
    if result.error is not None:
        return f"failed   {result.source.name}: {result.error}"
    bad = sum(not page.ok for page in result.pages)
    word = {"success": "done", "partial_success": "partial", "failure": "failed"}[result.status.value]
    text = f"{word:8} {result.source.name}: {len(result.pages)} pages in {result.duration_s:.1f} s"
    if result.reused_pages:
        text += f", {result.reused_pages} from an earlier run"
    return text + (f", {bad} failed" if bad else "")


class JsonReporter:
    """An object a line: for programs."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._tally = Tally()

    def handle(self, event: Event) -> None:
        """Takes an event."""
        self._tally.add(event)
        self._write(_event_to_json(event, self._tally))

    def close(self) -> None:
        """Ends the display."""

    def _write(self, data: dict[str, Any]) -> None:
        print(json.dumps(data), file=self._stream, flush=True)


def _event_to_json(event: Event, tally: Tally) -> dict[str, Any]:
    if isinstance(event, RunStarted):
        return {"event": "run_started", "documents": event.documents}
    if isinstance(event, DocumentStarted):
        return {
            "event": "document_started",
            "document": event.name,
            "pages": event.pages,
            "reused": event.reused,
        }
    if isinstance(event, PageFinished):
        page = event.result
        return {
            "event": "page_finished",
            "document": event.name,
            "page": page.index + 1,
            "ok": page.ok,
            "flags": [flag.value for flag in page.flags],
            "error": None if page.error is None else {"code": page.error.code, "message": page.error.message},
            "duration_s": round(page.duration_s, 3),
            "pages_done": tally.pages_done,
            "pages_expected": tally.pages_expected(),
            "pages_per_second": round(tally.pages_per_second(), 3),
            "seconds_left": tally.seconds_left(),
        }
    result = event.result
    return {
        "event": "document_finished",
        "document": result.source.name,
        "status": result.status.value,
        "pages": len(result.pages),
        "pages_failed": sum(not page.ok for page in result.pages),
        "reused": result.reused_pages,
        "outputs": [str(path) for path in result.outputs],
        "error": None
        if result.error is None
        else {"code": getattr(result.error, "code", "error"), "message": str(result.error)},
        "duration_s": round(result.duration_s, 3),
    }


class LiveReporter:
    """Bars on a terminal: one for the whole, one for each document that is open."""

    def __init__(self, console: Console) -> None:
        self._tally = Tally()
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            console=console,
            expand=True,
            transient=True,
        )
        self._total = self._progress.add_task("All pages", total=None, note="")
        self._bars: dict[str, TaskID] = {}
        self._progress.start()

    def handle(self, event: Event) -> None:
        """Takes an event."""
        self._tally.add(event)
        if isinstance(event, DocumentStarted):
            self._bars[event.name] = self._progress.add_task(
                f"  {shorten(event.name)}", total=event.pages, completed=event.reused, note=""
            )
        elif isinstance(event, PageFinished) and event.name in self._bars:
            self._progress.advance(self._bars[event.name])
        elif isinstance(event, DocumentFinished):
            if (bar := self._bars.pop(event.result.source.name, None)) is not None:
                self._progress.remove_task(bar)
            if event.result.status is not ConversionStatus.SUCCESS:
                self._progress.console.print(describe_document(event), markup=False, highlight=False)
        tally = self._tally
        note = f"{tally.pages_per_second():.2f} pages/s  ETA {format_seconds(tally.seconds_left())}"
        if tally.pages_failed:
            note += f"  {tally.pages_failed} failed"
        self._progress.update(self._total, total=tally.pages_expected() or None, completed=tally.pages_done, note=note)

    def close(self) -> None:
        """Ends the display."""
        self._progress.stop()


def shorten(name: str, width: int = _SHOWN_NAME) -> str:
    """A name that fits, with its end, where file names differ."""
    return name if len(name) <= width else "..." + name[-(width - 3) :]
