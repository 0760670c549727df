"""Giving memory back to the system."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import lru_cache


def release_unused_memory() -> None:
    """Hands freed memory back to the system, where the C library would keep it (glibc); elsewhere, does nothing.

    Each line has another width, and the buffers of one do not fit the next: without this, a process that reads pages
    for hours holds three times what it needs. Costs about 20 ms after a page of OCR.
    """
    trim = _trimmer()
    if trim is not None:
        trim(0)


@lru_cache(maxsize=1)
def _trimmer() -> Callable[[int], int] | None:
    if sys.platform != "linux":
        return None
    trim: Callable[[int], int] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return trim
