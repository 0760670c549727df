"""Fixtures of the documents tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pagemill.documents import RenderOptions, RenderPool


@pytest.fixture
async def pool() -> AsyncIterator[RenderPool]:
    """A pool of one process."""
    async with RenderPool(RenderOptions(long_side=400), workers=1) as started:
        yield started


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    folder = tmp_path / "spool"
    folder.mkdir()
    return folder
