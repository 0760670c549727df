"""Several processes of the service behind one socket: started, started again when they die, and stopped in order."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from pagemill.gateway.metrics import MULTIPROCESS, forget_process
from pagemill.telemetry import get_logger

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0
_STEADY_S = 60.0
_GRACE_S = 15.0
_AT_ONCE_S = 5.0

_log = get_logger("pagemill.gateway")


class ProcessGroup:
    """Keeps a number of processes running.

    Each gets a pipe as its standard input: when this process is killed, the pipe ends, and they stop by themselves.

    Args:
        commands: Command line of each process.
        shared: Descriptors that they inherit.
        stop_s: Seconds that a process may take for a graceful stop.
        fatal_status: An exit status after which starting again makes no sense.
        environment: Variables that they get besides those of this process.
    """

    def __init__(
        self,
        commands: Sequence[Sequence[str]],
        *,
        shared: Sequence[int],
        stop_s: float,
        fatal_status: int,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._commands = commands
        self._environment = dict(environment or {})
        self._shared = tuple(shared)
        self._stop_s = stop_s
        self._fatal_status = fatal_status
        self._processes: set[asyncio.subprocess.Process] = set()
        self._stopping = asyncio.Event()
        self._at_once = asyncio.Event()
        self._status = 0

    @property
    def in_order(self) -> bool:
        """Whether the stop was not asked for twice."""
        return not self._at_once.is_set()

    def request_stop(self) -> None:
        """Ends all processes in order; called once more, at once: they still hand back what they work on."""
        if self._stopping.is_set():
            self._at_once.set()
        self._stopping.set()
        self._signal(signal.SIGTERM)

    async def run(self) -> int:
        """Runs until `request_stop`, or until a process says that it can never start.

        Returns:
            The exit status: 0, the fatal one, or 1 where a process did not stop as it should.
        """
        with tempfile.TemporaryDirectory(prefix="pagemill-metrics-") as folder:
            keepers = [asyncio.create_task(self._keep(command, Path(folder))) for command in self._commands]
            try:
                await self._stopping.wait()
                await self._wait_for(keepers)
            finally:
                self._stopping.set()
                self._signal(signal.SIGKILL)
                await asyncio.gather(*keepers, return_exceptions=True)
        return self._status

    async def _wait_for(self, keepers: Sequence[asyncio.Task[None]]) -> None:
        stopped = asyncio.create_task(_all(keepers))
        at_once = asyncio.create_task(self._at_once.wait())
        await asyncio.wait({stopped, at_once}, timeout=self._stop_s + _GRACE_S, return_when=asyncio.FIRST_COMPLETED)
        if self._at_once.is_set():
            await asyncio.wait({stopped}, timeout=_AT_ONCE_S)
        at_once.cancel()
        if not stopped.done():
            _log.warning("processes did not stop in time and are killed")
            self._signal(signal.SIGKILL)
        await stopped

    def _signal(self, number: signal.Signals) -> None:
        for process in self._processes:
            if process.returncode is None:
                _send(process, number)

    async def _keep(self, command: Sequence[str], folder: Path) -> None:
        pause = _FIRST_PAUSE_S
        while not self._stopping.is_set():
            started = time.monotonic()
            status = await self._run_one(command, folder)
            if self._stopping.is_set():
                # One that was told before it listened to signals had nothing in hand.
                if status not in (0, -signal.SIGTERM):
                    self._status = self._status or 1
                return
            if status == self._fatal_status:
                self._status = status
                self.request_stop()
                return
            pause = _FIRST_PAUSE_S if time.monotonic() - started > _STEADY_S else min(_LONGEST_PAUSE_S, pause * 2)
            _log.error("a process has ended and is started again", status=status, pause_s=pause)
            await self._pause(pause)

    async def _pause(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._stopping.wait(), seconds)
        except asyncio.TimeoutError:
            return

    async def _run_one(self, command: Sequence[str], folder: Path) -> int:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            pass_fds=self._shared,
            # Ctrl-C in a terminal goes to all of a group; they are told by us, once.
            start_new_session=True,
            env={**os.environ, **self._environment, MULTIPROCESS: str(folder)},
        )
        self._processes.add(process)
        if self._stopping.is_set():
            # It was started while the others were told to stop.
            _send(process, signal.SIGTERM)
        try:
            return await process.wait()
        finally:
            if process.returncode is not None:
                self._processes.discard(process)
                forget_process(process.pid, folder)


async def _all(tasks: Sequence[asyncio.Task[None]]) -> None:
    await asyncio.gather(*tasks)


def _send(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    # Not its own send_signal, which polls first: where that collects the exit status, asyncio gets none.
    with contextlib.suppress(ProcessLookupError):
        os.kill(process.pid, number)
