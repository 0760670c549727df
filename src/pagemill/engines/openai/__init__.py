"""The engine for servers that speak the OpenAI chat API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pagemill.engines.protocol import Engine


def create_engine(options: Mapping[str, Any]) -> Engine:
    """Makes the engine; the entry point of the group `pagemill.engines`.

    Args:
        options: See `OpenAIOptions`; `endpoints` is needed.

    Raises:
        ConfigurationError: An option is missing, unknown or out of range.
    """
    # Only here, so that naming the engines of an installation does not load an HTTP client.
    from pagemill.engines.openai.engine import OpenAIEngine  # noqa: PLC0415
    from pagemill.engines.openai.options import parse_options  # noqa: PLC0415

    return OpenAIEngine(parse_options(options))
