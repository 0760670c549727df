from __future__ import annotations

import sys

import numpy as np
import psutil
import pytest

from pagemill.engines.embedded.memory import release_unused_memory


def resident() -> int:
    return int(psutil.Process().memory_info().rss)


def test_it_is_safe_everywhere() -> None:
    release_unused_memory()


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc keeps freed memory that long")
def test_freed_memory_goes_back_to_the_system() -> None:
    # Blocks too small to be mapped one by one, with a few kept among them, so that the heap cannot shrink by itself.
    blocks = [np.ones(8_000) for _ in range(3_000)]
    kept = blocks[::100]
    del blocks
    before = resident()
    release_unused_memory()
    assert before - resident() > 100_000_000
    assert len(kept) == 30
