"""A package of someone else that brings engines; what `pip install otherocr` would put on the path.

It reads nothing. Every page that it finishes is written to the file named by OTHEROCR_LOG, so that tests can count.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent))

from fakes import FakeEngine
from pagemill.domain import PageImage, PageResult, SamplingParams


class _QuotingEngine(FakeEngine):
    """Adds a text to each page."""

    def __init__(self, text: str, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._text = text

    async def recognize(self, page: PageImage, params: SamplingParams) -> PageResult:
        result = await super().recognize(page, params)
        return replace(result, markdown=result.markdown + self._text)


def create_engine(options: Mapping[str, Any]) -> FakeEngine:
    log = os.environ.get("OTHEROCR_LOG")

    def count(page: PageImage) -> None:
        if page.index + 1 == int(options.get("fail_page", 0)):
            raise RuntimeError("a bug in someone else's engine")
        if log:
            with open(log, "a") as file:
                file.write(f"{page.index}\n")

    return _QuotingEngine(
        str(options.get("text", "")),
        count,
        delay_s=float(options.get("delay_s", 0.0)),
        max_in_flight=int(options.get("max_in_flight", 2)),
    )


def create_broken(options: Mapping[str, Any]) -> FakeEngine:
    import package_that_is_not_there  # type: ignore[import-not-found]

    return package_that_is_not_there.Engine(options)  # type: ignore[no-any-return]


def create_unfinished(options: Mapping[str, Any]) -> object:
    del options
    return object()
