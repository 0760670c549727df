"""The table at the end: what was made, what failed, what to do."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pagemill.cli.progress import shorten
from pagemill.domain import ConversionResult, ConversionStatus

_SHOWN_PROBLEMS = 50
_SHOWN_PAGES = 10


@dataclass
class RunSummary:
    """Adds up results; holds only what the table shows, so that it stays small for millions of documents."""

    statuses: Counter[ConversionStatus] = field(default_factory=Counter)
    pages: int = 0
    pages_failed: int = 0
    pages_reused: int = 0
    problems: list[tuple[str, str, str]] = field(default_factory=list)
    problems_left_out: int = 0
    failed_pages_retryable: bool = False

    def add(self, result: ConversionResult) -> None:
        """Adds a document."""
        self.statuses[result.status] += 1
        self.pages += len(result.pages)
        self.pages_reused += result.reused_pages
        bad = [page for page in result.pages if not page.ok]
        self.pages_failed += len(bad)
        self.failed_pages_retryable |= bool(bad)
        if result.error is not None:
            self._problem(result.source.name, "-", str(result.error))
        by_message: dict[str, list[int]] = {}
        for page in bad:
            message = page.error.message if page.error else f"The page is incomplete ({page.finish_reason.value})."
            by_message.setdefault(message, []).append(page.index + 1)
        for message, numbers in by_message.items():
            self._problem(result.source.name, _page_list(numbers), message)

    def _problem(self, name: str, pages: str, message: str) -> None:
        if len(self.problems) < _SHOWN_PROBLEMS:
            self.problems.append((name, pages, message))
        else:
            self.problems_left_out += 1

    def print(self, console: Console, seconds: float, output: str | None) -> None:
        """Prints the table."""
        done = self.pages - self.pages_reused
        rate = f", {done / seconds:.2f} pages/s" if done and seconds > 0 else ""
        reused = f" ({self.pages_reused} from an earlier run)" if self.pages_reused else ""
        line = (
            f"{self.statuses.total()} documents: {self.statuses[ConversionStatus.SUCCESS]} good, "
            f"{self.statuses[ConversionStatus.PARTIAL_SUCCESS]} partial, "
            f"{self.statuses[ConversionStatus.FAILURE]} failed; "
            f"{self.pages} pages{reused}, {self.pages_failed} failed; {seconds:.1f} s{rate}"
        )
        if self.problems:
            table = Table(title="What failed, and what to do", title_justify="left", expand=True)
            table.add_column("Document", overflow="fold", ratio=2)
            table.add_column("Pages", no_wrap=True)
            table.add_column("Reason", overflow="fold", ratio=4)
            for name, pages, message in self.problems:
                table.add_row(Text(shorten(name)), pages, Text(message))
            console.print(table)
            if self.problems_left_out:
                console.print(f"... and {self.problems_left_out} more.")
            if self.failed_pages_retryable:
                console.print("Failed pages are not tried again by themselves: add --retry-failed.")
        console.print(line, highlight=False)
        if output is not None:
            console.print(f"Output: {output}", highlight=False, markup=False)


def _page_list(numbers: list[int]) -> str:
    shown = ", ".join(str(number) for number in numbers[:_SHOWN_PAGES])
    return shown if len(numbers) <= _SHOWN_PAGES else f"{shown}, ... ({len(numbers)})"
