"""The embedded engine: OCR and layout on the CPU with small models, no server and no network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pagemill.engines.protocol import Engine


def create_engine(options: Mapping[str, Any]) -> Engine:
    """Makes the embedded engine; the entry point of the group `pagemill.engines`.

    Args:
        options: See `EmbeddedOptions`.

    Raises:
        ImportError: onnxruntime or scipy is not installed.
        MissingDependencyError: A package with weights is not installed.
        ConfigurationError: An option is unknown or out of range.
    """
    # Only here, so that naming the engines of an installation does not load a runtime.
    from pagemill.engines.embedded.engine import EmbeddedEngine  # noqa: PLC0415
    from pagemill.engines.embedded.options import parse_options  # noqa: PLC0415

    return EmbeddedEngine(parse_options(options))
