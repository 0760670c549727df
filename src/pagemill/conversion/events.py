"""What a conversion tells while it runs: for progress bars, JSON lines and logs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from pagemill.domain import ConversionResult, PageResult


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A conversion begins.

    Attributes:
        documents: How many documents it has.
    """

    documents: int


@dataclass(frozen=True, slots=True)
class DocumentStarted:
    """A document was opened.

    Attributes:
        name: Name of its source.
        pages: How many of its pages are to be converted.
        reused: How many of them an earlier run has done.
    """

    name: str
    pages: int
    reused: int


@dataclass(frozen=True, slots=True)
class PageFinished:
    """A page was recognised, or failed. Pages of earlier runs give no event."""

    name: str
    result: PageResult


@dataclass(frozen=True, slots=True)
class DocumentFinished:
    """A document is complete, with whatever could be made of it."""

    result: ConversionResult


Event: TypeAlias = RunStarted | DocumentStarted | PageFinished | DocumentFinished
EventHandler: TypeAlias = Callable[[Event], None]
