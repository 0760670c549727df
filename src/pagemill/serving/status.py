"""How a supervised server fares, in a form that other processes can read."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from pagemill.serving.events import State


@dataclass(frozen=True, slots=True)
class SupervisorStatus:
    """A server's state.

    Attributes:
        state: Where it stands.
        since: Since when, in seconds since the epoch.
        url: Its base URL.
        restarts: Restarts so far.
        errors: Errors so far by class.
    """

    state: State
    since: float
    url: str
    restarts: int
    errors: Mapping[str, int]


def write_status(path: Path, status: SupervisorStatus) -> None:
    """Writes a status as JSON; a reader sees the old one or the new one, never a part.

    Raises:
        OSError: It cannot be written.
    """
    scratch = path.with_name(f"{path.name}.{os.getpid()}")
    scratch.write_text(json.dumps({**asdict(status), "state": status.state.value}), encoding="utf-8")
    scratch.replace(path)
