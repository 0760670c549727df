"""One run of a server: its processes, its log, and its end."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from pagemill.domain.errors import ConfigurationError
from pagemill.serving import guard
from pagemill.serving.command import ServeCommand
from pagemill.serving.logs import LogParser, LogRecord, split_lines
from pagemill.telemetry import get_logger

RecordHandler = Callable[[LogRecord], None]

_log = get_logger("pagemill.serving")

_CHUNK = 65536
_QUIET_S = 0.3
_POLL_S = 0.05
_KILL_TIMEOUT_S = 10.0


class ServerProcess:
    """A running server in a session of its own; use `ServerProcess.start`."""

    def __init__(
        self, process: asyncio.subprocess.Process, guardian: asyncio.subprocess.Process, on_record: RecordHandler
    ) -> None:
        self._process = process
        self._guardian = guardian
        self._on_record = on_record
        self._lost = 0
        self._reader = asyncio.create_task(self._read_log())

    @classmethod
    async def start(cls, command: ServeCommand, on_record: RecordHandler, orphan_grace_s: float) -> ServerProcess:
        """Starts a server.

        Args:
            command: What to run.
            on_record: Gets each record of its log.
            orphan_grace_s: Seconds that the server has to end by itself when this process dies.

        Raises:
            ConfigurationError: It cannot be run.
        """
        guardian = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-I", "-S", "-B", str(Path(guard.__file__))),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            process = await asyncio.create_subprocess_exec(
                *command.argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                env=command.environment,
                start_new_session=True,  # one group to kill, out of reach of the terminal's Ctrl-C
            )
        except OSError as error:
            await _release(guardian)
            raise ConfigurationError(
                f"{command.argv[0]} cannot be run ({error.strerror or error}).", "Check --vllm."
            ) from error
        await _tell(guardian, f"watch {process.pid} {orphan_grace_s}\n")
        return cls(process, guardian, on_record)

    @property
    def pid(self) -> int:
        """The server's process id, which is its group's as well."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """Its exit status; None while it runs."""
        return self._process.returncode

    async def exited(self) -> int:
        """Waits until the server ends by itself; call `kill` then, for what is left of it and the last of its log."""
        return await self._process.wait()

    async def stop(self, timeout_s: float) -> bool:
        """Ends it in good order, or by force after `timeout_s`.

        A server whose drain runs over its own time may hang for minutes, so there is always a bound.

        Returns:
            Whether it ended by itself.
        """
        with contextlib.suppress(ProcessLookupError):
            # To the server alone: it tells its engine in turn, once pages in flight are done.
            os.kill(self.pid, signal.SIGTERM)
        in_order = True
        try:
            await asyncio.wait_for(self._process.wait(), timeout_s)
        except asyncio.TimeoutError:
            in_order = False
        await self.kill()
        return in_order

    async def kill(self) -> None:
        """Ends all its processes at once, stopped or stuck ones too: an engine left over holds the GPU's memory."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._process.wait(), _KILL_TIMEOUT_S)
        await self._outlive_group()
        await asyncio.wait({self._reader}, timeout=_KILL_TIMEOUT_S)
        self._reader.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)
        await _release(self._guardian)

    async def _outlive_group(self) -> None:
        """Waits until none of the group is left, within a bound: a process in the driver may not die at once."""
        deadline = asyncio.get_running_loop().time() + _KILL_TIMEOUT_S
        with contextlib.suppress(ProcessLookupError, PermissionError):
            while asyncio.get_running_loop().time() < deadline:
                # As process 1 of a container we inherit the server's children, and must collect them.
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(-self.pid, os.WNOHANG)  # noqa: ASYNC222 - does not wait
                os.killpg(self.pid, signal.SIGKILL)
                await asyncio.sleep(_POLL_S)

    async def _read_log(self) -> None:
        stdout = self._process.stdout
        assert stdout is not None
        parser, decoder, rest = LogParser(), codecs.getincrementaldecoder("utf-8")("replace"), ""
        pending: asyncio.Task[bytes] | None = None
        try:
            while True:
                pending = pending or asyncio.create_task(stdout.read(_CHUNK))
                done, _ = await asyncio.wait({pending}, timeout=_QUIET_S)
                if not done:
                    self._hand_on(parser.flush())
                    continue
                data = pending.result()
                pending = None
                if not data:
                    break
                whole, newline, tail = (rest + decoder.decode(data)).rpartition("\n")
                rest = tail[-_CHUNK:]
                if newline:
                    for line in split_lines(whole):
                        self._hand_on(parser.feed(line))
            for line in split_lines(rest):
                self._hand_on(parser.feed(line))
            self._hand_on(parser.flush())
        finally:
            if pending is not None:
                pending.cancel()

    def _hand_on(self, records: list[LogRecord]) -> None:
        for record in records:
            try:
                self._on_record(record)
            except Exception as error:  # noqa: BLE001 - a log that nobody reads any more would block the server
                if not self._lost:
                    _log.error("records of the server's log are lost", error=repr(error))
                self._lost += 1


async def _tell(guardian: asyncio.subprocess.Process, text: str) -> None:
    assert guardian.stdin is not None
    with contextlib.suppress(OSError):
        guardian.stdin.write(text.encode())
        await guardian.stdin.drain()


async def _release(guardian: asyncio.subprocess.Process) -> None:
    assert guardian.stdin is not None
    if guardian.returncode is None and not guardian.stdin.is_closing():
        await _tell(guardian, "done\n")
        guardian.stdin.close()
    with contextlib.suppress(OSError):
        await guardian.stdin.wait_closed()
    await guardian.wait()
