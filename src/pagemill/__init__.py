"""pagemill: PDFs and scans to Markdown.

>>> from pagemill import convert
>>> results = convert("report.pdf")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pagemill._version import __version__

if TYPE_CHECKING:
    from pagemill.api import convert, convert_async, convert_stream
    from pagemill.conversion import ConversionOptions
    from pagemill.documents import RenderOptions

__all__ = ["ConversionOptions", "RenderOptions", "__version__", "convert", "convert_async", "convert_stream"]

_HOMES = {
    "convert": "pagemill.api",
    "convert_async": "pagemill.api",
    "convert_stream": "pagemill.api",
    "ConversionOptions": "pagemill.conversion",
    "RenderOptions": "pagemill.documents",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any public name
    """Imports public names when they are first used, so that render processes start light."""
    if name not in _HOMES:
        raise AttributeError(f"module 'pagemill' has no attribute '{name}'")
    from importlib import import_module  # noqa: PLC0415 - only where a name is looked up

    return getattr(import_module(_HOMES[name]), name)
