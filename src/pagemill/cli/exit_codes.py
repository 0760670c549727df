"""What the process's exit status says: one table."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from pagemill.domain import ConversionStatus
from pagemill.domain.errors import (
    ConfigurationError,
    EngineError,
    InputError,
    JobError,
    OutputError,
    PagemillError,
    RequestError,
    StoreUnavailableError,
)


class ExitCode(IntEnum):
    """Exit statuses of every command."""

    SUCCESS = 0
    """Everything is good."""
    FAILURE = 1
    """Nothing could be converted."""
    USAGE = 2
    """Arguments or settings are wrong; nothing was tried."""
    PARTIAL = 3
    """Some pages or documents failed, the rest is there."""
    INTERRUPTED = 130
    """Stopped by Ctrl-C; run again to go on."""


_BY_ERROR: tuple[tuple[type[PagemillError], ExitCode], ...] = (
    (ConfigurationError, ExitCode.USAGE),
    (InputError, ExitCode.FAILURE),
    (EngineError, ExitCode.FAILURE),
    (OutputError, ExitCode.FAILURE),
    (JobError, ExitCode.FAILURE),
    (RequestError, ExitCode.FAILURE),
    (StoreUnavailableError, ExitCode.FAILURE),
)


def exit_code_of_error(error: PagemillError) -> ExitCode:
    """The status for an error that ended the command.

    Raises:
        LookupError: The error's branch of the tree is missing in the table.
    """
    for kind, code in _BY_ERROR:
        if isinstance(error, kind):
            return code
    raise LookupError(f"no exit code for {type(error).__name__}")


def exit_code_of_results(results: Iterable[ConversionStatus]) -> ExitCode:
    """The status for a run that ended by itself."""
    statuses = set(results)
    if statuses <= {ConversionStatus.SUCCESS}:
        return ExitCode.SUCCESS
    if statuses == {ConversionStatus.FAILURE}:
        return ExitCode.FAILURE
    return ExitCode.PARTIAL
