"""Structured logging."""

from __future__ import annotations

import logging
import sys
from typing import Literal, TextIO, cast

import structlog

LogFormat = Literal["console", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]

_REDACTED = "[redacted]"
_SECRET_WORDS = ("password", "secret", "token", "authorization", "api_key")


def _redact_secrets(_logger: object, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Blanks values whose names say that they are secret, whoever logged them."""
    return {
        key: _REDACTED if any(word in key.lower() for word in _SECRET_WORDS) else value for key, value in event.items()
    }


def configure_logging(
    level: LogLevel = "warning", log_format: LogFormat = "console", stream: TextIO | None = None
) -> None:
    """Sets up logging for a whole process; only entry points call it.

    Args:
        level: The least severe level that is shown.
        log_format: `console` for people, `json` for one object a line.
        stream: Where it goes; standard error by default, so that standard output carries results alone.
    """
    target = stream or sys.stderr
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer(ensure_ascii=False)
        if log_format == "json"
        else structlog.dev.ConsoleRenderer(colors=target.isatty())
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _redact_secrets,
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        logger_factory=structlog.WriteLoggerFactory(file=target),
        cache_logger_on_first_use=False,
    )


def get_logger(name: str) -> structlog.typing.FilteringBoundLogger:
    """A logger that carries `name` in every line."""
    return cast("structlog.typing.FilteringBoundLogger", structlog.get_logger(component=name))
