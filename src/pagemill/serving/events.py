"""What the supervisor tells while it works."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from pagemill.serving.errors import ServerError


class State(str, Enum):
    """Where a supervised server stands."""

    STARTING = "starting"
    READY = "ready"
    WAITING = "waiting"
    """It has died or was ended, and will be started again after a pause."""
    DRAINING = "draining"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class StateChanged:
    """The server has another state.

    Attributes:
        state: The new one.
        detail: More, in words.
        url: Where clients find it, once it is ready.
    """

    state: State
    detail: str = ""
    url: str | None = None


@dataclass(frozen=True, slots=True)
class StartProgress:
    """A starting server has come a step further."""

    phase: str
    elapsed_s: float


@dataclass(frozen=True, slots=True)
class ErrorSeen:
    """The server's log has an error."""

    error: ServerError


@dataclass(frozen=True, slots=True)
class Restarting:
    """The server has died or was ended, with all pages in flight; clients must send those again.

    Attributes:
        reason: What happened.
        error: The first error of that run, where there was one.
        restart: Number of the restart, from 1.
        wait_s: Seconds until it is started.
    """

    reason: str
    error: ServerError | None
    restart: int
    wait_s: float


@dataclass(frozen=True, slots=True)
class Note:
    """Something that people should know."""

    text: str


ServeEvent = StateChanged | StartProgress | ErrorSeen | Restarting | Note
ServeEventHandler = Callable[[ServeEvent], None]


def event_to_json(event: ServeEvent) -> dict[str, Any]:
    """An event as one JSON object; its kind stands under `event`, in snake case."""
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", type(event).__name__).lower()
    fields = {
        key: value.value if isinstance(value, Enum) else value for key, value in dataclasses.asdict(event).items()
    }
    if fields.get("error") is not None:
        fields["error"]["kind"] = fields["error"]["kind"].value
    return {"event": name, **fields}
