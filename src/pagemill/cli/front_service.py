"""The document service in front of a server that the same command supervises."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from typing_extensions import Self

from pagemill.cli.exit_codes import ExitCode
from pagemill.domain.errors import ConfigurationError, MissingDependencyError
from pagemill.serving import Preparation, Supervisor, SupervisorStatus, write_status
from pagemill.settings import Settings
from pagemill.telemetry import get_logger

if TYPE_CHECKING:
    from pagemill.gateway.processes import ProcessGroup

_log = get_logger("pagemill.cli")


class FrontService:
    """`pagemill gateway` as processes of its own: what ends one of the two does not end the other.

    Its port is taken at once, so that a port in use is said before the minutes in which the server starts.

    Args:
        settings: All settings.
        prepared: The server behind it.
        config: The settings file that was named.

    Raises:
        MissingDependencyError: The packages of the service are not installed.
        ConfigurationError: Its address cannot be had.
    """

    def __init__(self, settings: Settings, prepared: Preparation, config: Path | None) -> None:
        try:
            from pagemill.gateway.processes import ProcessGroup  # noqa: PLC0415 - an extra
            from pagemill.gateway.server import listen  # noqa: PLC0415 - an extra
        except ModuleNotFoundError as error:
            raise MissingDependencyError(
                f"The document service needs a package that is not installed ({error}).",
                "pip install 'pagemill[gateway]', or give --no-gateway.",
            ) from error
        self._listener: socket.socket = listen(settings.gateway.host, settings.gateway.port)
        self._folder = tempfile.TemporaryDirectory(prefix="pagemill-serve-")
        self._status = Path(self._folder.name) / "server.json"
        self._group: ProcessGroup = ProcessGroup(
            self._commands(settings, prepared, config),
            shared=[self._listener.fileno()],
            stop_s=settings.gateway.drain_s,
            fatal_status=ExitCode.USAGE,
            environment=self._environment(settings, prepared),
        )
        self._stopping = False

    def _commands(self, settings: Settings, prepared: Preparation, config: Path | None) -> list[list[str]]:
        command = [sys.executable, "-m", "pagemill", "gateway", "--socket-fd", str(self._listener.fileno())]
        command += ["--host", settings.gateway.host, "--engine", "openai"]
        command += ["--endpoint", prepared.command.base_url, "--model", prepared.options.served_name]
        if config is not None:
            command += ["--config", str(config)]
        return [[*command, "--announce"], *[command] * (settings.gateway.processes - 1)]

    def _environment(self, settings: Settings, prepared: Preparation) -> dict[str, str]:
        options = dict(settings.engine.options)
        if prepared.options.api_key is not None:
            options["api_key"] = prepared.options.api_key.get_secret_value()
        return {
            "PAGEMILL_ENGINE__OPTIONS": json.dumps(options),
            "PAGEMILL_GATEWAY__ENGINE_STATUS": str(self._status),
        }

    def __enter__(self) -> Self:
        """Holds its port and its folder."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Gives them back."""
        self._listener.close()
        self._folder.cleanup()

    def tell(self, status: SupervisorStatus) -> None:
        """Lets the service know how the server fares."""
        try:
            write_status(self._status, status)
        except OSError as error:
            _log.warning("the state of the server cannot be told", error=str(error))

    def stop_before(self, stop_server: Callable[[], None]) -> Callable[[], None]:
        """What a signal does: the first stops the service, after which the server stops; the second stops both now."""

        def stop() -> None:
            self._group.request_stop()
            if self._stopping:
                stop_server()
                stop_server()
            self._stopping = True

        return stop

    async def run_with(self, supervisor: Supervisor) -> bool:
        """Runs both until they are stopped; the service first lets go of its pages, then the server is stopped.

        Returns:
            Whether both ended in good order.

        Raises:
            ConfigurationError: The service cannot start.
            ConfigurationError, EngineUnavailableError: As `Supervisor.run`.
        """
        serving = asyncio.create_task(supervisor.run())
        fronting = asyncio.create_task(self._group.run())
        try:
            await asyncio.wait({serving, fronting}, return_when=asyncio.FIRST_COMPLETED)
            if fronting.done() and not serving.done():
                supervisor.request_stop()
            in_order = await serving
        finally:
            if not self._stopping:
                self._group.request_stop()
            serving.cancel()
            await asyncio.wait({serving, fronting})
        with contextlib.suppress(asyncio.CancelledError):
            if fronting.result() == ExitCode.USAGE:
                raise ConfigurationError("The document service cannot start.", "See its message above.")
        return in_order and self._group.in_order
