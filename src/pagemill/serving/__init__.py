"""`vllm serve` for LightOnOCR, started and supervised."""

from __future__ import annotations

from pagemill.serving.events import ServeEvent, State
from pagemill.serving.options import ServeOptions, WatchOptions
from pagemill.serving.serve import Preparation, prepare
from pagemill.serving.status import SupervisorStatus, write_status
from pagemill.serving.supervisor import Supervisor

__all__ = [
    "Preparation",
    "ServeEvent",
    "ServeOptions",
    "State",
    "Supervisor",
    "SupervisorStatus",
    "WatchOptions",
    "prepare",
    "write_status",
]
