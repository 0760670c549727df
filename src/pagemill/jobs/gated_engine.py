"""An engine behind the gate."""

from __future__ import annotations

import contextlib

from pagemill.domain import PageImage, PageResult, SamplingParams
from pagemill.domain.errors import EngineOverloadedError, QueueFullError
from pagemill.engines import Engine, EngineCapabilities, EngineHealth
from pagemill.engines.openai.tokens import image_tokens
from pagemill.engines.page_clock import waiting
from pagemill.jobs.gate import Gate

_FIRST_GUESS = 1000
_SMOOTHING = 0.05


class GatedEngine:
    """Passes pages on to an engine, each after its turn at the gate.

    Args:
        engine: The engine.
        gate: The gate.
    """

    def __init__(self, engine: Engine, gate: Gate) -> None:
        self._engine = engine
        self._gate = gate
        self._answer_tokens = float(_FIRST_GUESS)

    @property
    def name(self) -> str:
        """That of the engine."""
        return self._engine.name

    @property
    def capabilities(self) -> EngineCapabilities:
        """Those of the engine."""
        return self._engine.capabilities

    @property
    def answer_tokens(self) -> int:
        """Tokens of an answer, as they have been of late."""
        return round(self._answer_tokens)

    async def start(self) -> None:
        """Starts the engine."""
        await self._engine.start()

    async def recognize(self, page: PageImage, params: SamplingParams) -> PageResult:
        """Reads a page once its turn has come.

        Raises:
            EngineError: As the engine, and `EngineOverloadedError` where too many wait.
        """
        expected = image_tokens(page.width, page.height) + min(self.answer_tokens, params.max_tokens)
        async with contextlib.AsyncExitStack() as stack:
            with waiting():
                try:
                    await stack.enter_async_context(self._gate.enter(expected))
                except QueueFullError as error:
                    # To those who use engines the gate is part of one.
                    raise EngineOverloadedError(str(error), retry_after=error.retry_after) from error
            result = await self._engine.recognize(page, params)
        self.note_answer(result.usage.completion_tokens)
        return result

    def note_answer(self, tokens: int) -> None:
        """Learns how long answers are; engines that do not count tokens say 0."""
        if tokens > 0:
            self._answer_tokens += _SMOOTHING * (tokens - self._answer_tokens)

    async def health(self) -> EngineHealth:
        """That of the engine."""
        return await self._engine.health()

    async def aclose(self) -> None:
        """Closes the engine."""
        await self._engine.aclose()
