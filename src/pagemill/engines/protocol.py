"""What every engine is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from pagemill.domain import PageImage, PageResult, SamplingParams


@dataclass(frozen=True, slots=True)
class EngineCapabilities:
    """What an engine tells about itself.

    Attributes:
        version: Version of the engine or of what it runs; shown to people.
        fingerprint: Changes whenever the same page may give another result (engine version, weights, options);
            part of the key under which page results are kept.
        max_in_flight: How many pages it wants at once.
        media_types: Encodings of page images that it takes, the preferred one first.
        wants_text_layer: Whether pages should carry their text layer.
        max_long_side: Pixels on the long side of an image beyond which it would scale it down; 0 for no bound. Longer
            pages reach it in pieces.
        generative: Whether it writes text token by token, so that it may loop, or invent text on blank pages.
    """

    version: str
    fingerprint: str
    max_in_flight: int = 1
    media_types: tuple[str, ...] = ("image/png",)
    wants_text_layer: bool = False
    max_long_side: int = 0
    generative: bool = False


@dataclass(frozen=True, slots=True)
class EngineHealth:
    """Whether an engine can work now, and if not, why."""

    ready: bool
    detail: str = ""


@runtime_checkable
class Engine(Protocol):
    """A recogniser of pages.

    `recognize` raises `pagemill.domain.errors.EngineError` for what concerns the engine or the request; it never
    returns a cut page as good: `finish_reason` says so.
    """

    @property
    def name(self) -> str:
        """Short name, as in `--engine`."""
        ...

    @property
    def capabilities(self) -> EngineCapabilities:
        """What it tells about itself; stable once `start` has returned."""
        ...

    async def start(self) -> None:
        """Loads what it needs. Safe to call twice."""
        ...

    async def recognize(self, page: PageImage, params: SamplingParams) -> PageResult:
        """Reads one page. May be called concurrently up to `capabilities.max_in_flight`."""
        ...

    async def health(self) -> EngineHealth:
        """Whether it can work now."""
        ...

    async def aclose(self) -> None:
        """Frees what `start` took. Safe to call twice."""
        ...
