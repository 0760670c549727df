"""Options of the embedded engine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pagemill.domain.errors import ConfigurationError


class EmbeddedOptions(BaseModel):
    """Options of the embedded engine; unknown ones are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    threads: int = Field(0, ge=0, le=256, description="Threads that read lines; 0: one for each core.")
    pages_in_flight: int = Field(0, ge=0, le=256, description="Pages read at once; 0: one for each thread.")
    min_confidence: float = Field(0.6, ge=0, le=1, description="Lines read with less are left out as noise.")

    @property
    def line_threads(self) -> int:
        """Threads that read lines, those of all pages together."""
        return self.threads or usable_cores()

    @property
    def page_threads(self) -> int:
        """Pages read at once."""
        return self.pages_in_flight or self.line_threads


def usable_cores() -> int:
    """Cores that this process may run on, which containers and `taskset` make fewer than the machine has."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def parse_options(options: Mapping[str, Any]) -> EmbeddedOptions:
    """Checks options.

    Raises:
        ConfigurationError: An option is unknown or out of range.
    """
    try:
        return EmbeddedOptions.model_validate(dict(options))
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        known = ", ".join(EmbeddedOptions.model_fields)
        raise ConfigurationError(
            f"Option '{name}' of the embedded engine: {first['msg']}.", f"Its options are: {known}."
        ) from error
