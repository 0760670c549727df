"""Finding engines by name, those of other packages too.

A package offers an engine through the entry-point group `pagemill.engines`: a callable that takes a mapping of
options (possibly empty) and returns an `Engine`.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from pagemill.domain.errors import ConfigurationError, MissingDependencyError
from pagemill.engines.protocol import Engine

ENTRY_POINT_GROUP = "pagemill.engines"


def available_engines() -> dict[str, EntryPoint]:
    """All engines that are installed, by name; nothing is imported."""
    return {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}


def create_engine(name: str, options: Mapping[str, Any] | None = None) -> Engine:
    """Makes an engine by its name.

    Raises:
        ConfigurationError: There is no engine of that name, or it does not keep to the protocol.
        MissingDependencyError: It needs a package that is not installed.
    """
    engines = available_engines()
    if name not in engines:
        known = ", ".join(sorted(engines)) or "none"
        raise ConfigurationError(
            f"There is no engine named '{name}'.",
            f"Installed engines: {known}. A package adds one through the entry-point group '{ENTRY_POINT_GROUP}'.",
        )
    try:
        engine = engines[name].load()(dict(options or {}))
    except ImportError as error:
        raise MissingDependencyError(
            f"The engine '{name}' needs a package that is not installed ({error}).",
            f"Install it: pip install 'pagemill[{name}]'.",
        ) from error
    if not isinstance(engine, Engine):
        raise ConfigurationError(
            f"The engine '{name}' of {engines[name].value} does not keep to pagemill.engines.Engine.",
            "Tell its authors.",
        )
    return engine
