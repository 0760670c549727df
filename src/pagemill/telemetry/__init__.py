"""Logs and traces. Nothing here is set up at import: entry points call `configure_logging` and `configure_tracing`."""

from pagemill.telemetry.logs import LogFormat, LogLevel, configure_logging, get_logger
from pagemill.telemetry.tracing import (
    TraceContext,
    configure_tracing,
    current_context,
    outgoing_headers,
    shutdown_tracing,
    span,
)

__all__ = [
    "LogFormat",
    "LogLevel",
    "TraceContext",
    "configure_logging",
    "configure_tracing",
    "current_context",
    "get_logger",
    "outgoing_headers",
    "shutdown_tracing",
    "span",
]
