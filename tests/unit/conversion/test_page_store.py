from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pagemill.conversion.page_store import DirectoryPageStore, DocumentKey, MemoryPageStore
from pagemill.domain import (
    Block,
    BlockKind,
    BoundingBox,
    Figure,
    FinishReason,
    PageError,
    PageFlag,
    PageResult,
    TextLine,
    Usage,
)

KEY = DocumentKey.of("d" * 64, "engine", "options")

FULL = PageResult(
    index=4,
    markdown="# Ünïcode 中文\n",
    finish_reason=FinishReason.LENGTH,
    usage=Usage(10, 20),
    attempts=2,
    error=PageError("degenerate_output", "It loops.", retryable=True),
    blocks=(
        Block(
            BlockKind.TITLE, "# x", BoundingBox(1, 2, 3.5, 4), 0.75, 1, (TextLine("x", BoundingBox(1, 2, 3, 4), 0.5),)
        ),
    ),
    figures=(Figure("p0005-figure-1.png", b"\x89PNG", "image/png", BoundingBox(0, 0, 9, 9)),),
    confidence=0.5,
    flags=(PageFlag.ROTATED, PageFlag.MIXED),
    warnings=("cut short",),
    duration_s=1.5,
    width=100,
    height=200,
)


@pytest.mark.parametrize("kind", ["memory", "directory"])
def test_a_page_comes_back_as_it_was_kept(tmp_path: Path, kind: str) -> None:
    store = MemoryPageStore() if kind == "memory" else DirectoryPageStore(tmp_path)
    assert store.load(KEY, 4) is None
    store.save(KEY, FULL)
    assert store.load(KEY, 4) == FULL
    assert store.load(DocumentKey.of("d" * 64, "other engine"), 4) is None


def test_recipes_do_not_run_into_each_other() -> None:
    assert DocumentKey.of("d", "ab", "c") != DocumentKey.of("d", "a", "bc")


def test_a_page_without_its_picture_counts_as_absent(tmp_path: Path) -> None:
    store = DirectoryPageStore(tmp_path)
    store.save(KEY, FULL)
    next(tmp_path.rglob("*.png")).unlink()
    assert store.load(KEY, 4) is None


def test_a_claim_keeps_other_claims_out_until_it_ends(tmp_path: Path) -> None:
    first, second = DirectoryPageStore(tmp_path), DirectoryPageStore(tmp_path)
    with first.claim(KEY, 0) as granted:
        assert granted
        with second.claim(KEY, 0) as again:
            assert not again
        with second.claim(KEY, 1) as other_page:
            assert other_page
    with second.claim(KEY, 0) as later:
        assert later
    assert list((tmp_path / "locks").iterdir()) == []


def test_a_claim_dies_with_its_process(tmp_path: Path) -> None:
    script = (
        "import os, sys; from pathlib import Path\n"
        "from pagemill.conversion.page_store import DirectoryPageStore, DocumentKey\n"
        "key = DocumentKey.of('d' * 64, 'engine', 'options')\n"
        "with DirectoryPageStore(Path(sys.argv[1])).claim(key, 0) as granted:\n"
        "    print(granted, flush=True)\n"
        "    sys.stdin.read()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "True"
    store = DirectoryPageStore(tmp_path)
    with store.claim(KEY, 0) as granted:
        assert not granted
    process.kill()
    process.communicate()
    with store.claim(KEY, 0) as granted:
        assert granted
