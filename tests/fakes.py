"""A fake engine, for tests only: it reads nothing, but its answer tells which image it was given."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from pagemill.domain import Block, BlockKind, BoundingBox, Figure, PageImage, PageResult, SamplingParams, TextLine
from pagemill.engines import EngineCapabilities, EngineHealth

Behaviour = Callable[[PageImage], None]


class FakeEngine:
    """Answers with the image's hash; `behaviour` may raise, block or count before it does."""

    def __init__(
        self, behaviour: Behaviour | None = None, *, delay_s: float = 0.0, max_in_flight: int = 2, version: str = "1"
    ) -> None:
        self.behaviour = behaviour or (lambda _page: None)
        self.delay_s = delay_s
        self.seen: list[int] = []
        self.in_flight = 0
        self.most_in_flight = 0
        self.starts = 0
        self.closed = 0
        self._capabilities = EngineCapabilities(
            version=version, fingerprint=f"fake-{version}", max_in_flight=max_in_flight
        )

    @property
    def name(self) -> str:
        return "fake"

    @property
    def capabilities(self) -> EngineCapabilities:
        return self._capabilities

    async def start(self) -> None:
        self.starts += 1

    async def recognize(self, page: PageImage, params: SamplingParams) -> PageResult:
        del params
        self.seen.append(page.index)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(self.delay_s)
            self.behaviour(page)
        finally:
            self.in_flight -= 1
        digest = hashlib.sha256(page.data).hexdigest()[:12]
        box = BoundingBox(0, 0, page.width, page.height)
        picture = f"p{page.index + 1:04d}-figure-1.png"
        return PageResult(
            index=page.index,
            markdown=f"# Page {page.index + 1}\n\nImage {digest}\n\n![figure]({picture})\n",
            blocks=(
                Block(BlockKind.HEADER, "Running head", box),
                Block(BlockKind.TITLE, f"# Page {page.index + 1}", box, 0.9, 1, (TextLine("Page", box, 0.9),)),
                Block(BlockKind.FOOTER, f"{page.index + 1}", box),
            ),
            figures=(Figure(picture, page.data[:64], "image/png", box),),
            confidence=0.9,
            duration_s=self.delay_s,
            width=page.width,
            height=page.height,
        )

    async def health(self) -> EngineHealth:
        return EngineHealth(ready=True)

    async def aclose(self) -> None:
        self.closed += 1


def create_engine(options: Mapping[str, Any]) -> FakeEngine:
    """Entry point of the fake, as another package would offer it."""
    return FakeEngine(delay_s=float(options.get("delay_s", 0.0)), max_in_flight=int(options.get("max_in_flight", 2)))
