"""Source -> pages -> page images: finding inputs, opening documents, rendering pages in limited processes.

Names are loaded on first use, so that a render process, which lives in this package too, imports only what it needs.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pagemill.documents.options import RenderOptions
    from pagemill.documents.passwords import PasswordBook
    from pagemill.documents.pool import RenderPool
    from pagemill.documents.selection import PageSelection
    from pagemill.documents.source import resolve_sources

__all__ = ["PageSelection", "PasswordBook", "RenderOptions", "RenderPool", "resolve_sources"]

_HOMES = {
    "PageSelection": "selection",
    "PasswordBook": "passwords",
    "RenderOptions": "options",
    "RenderPool": "pool",
    "resolve_sources": "source",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the name stands for
    """Loads a public name from its module."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
