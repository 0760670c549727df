"""The parent's side of one render process: start it, ask it, kill it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pagemill.documents import wire
from pagemill.documents.options import RenderOptions
from pagemill.domain.errors import ConfigurationError
from pagemill.telemetry import get_logger

_START_TIMEOUT_S = 60.0
_EXIT_GRACE_S = 1.0
_STDERR_TAIL = 4000
_LIMIT = 2**20
# The child needs no secrets: what a hostile document could reach is kept small.
_INHERITED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT", "LD_LIBRARY_PATH")
_OWN_ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}
# Started by -c and a handed-over path rather than -m or multiprocessing: neither the caller's __main__ nor its
# working directory nor site customisation is imported, and a script needs no `if __name__` guard.
_BOOT = "import sys; sys.path[:] = sys.argv[1:]; from pagemill.documents.worker import run; run()"

_log = get_logger(__name__)


class ProcessDiedError(Exception):
    """The process ended or broke the protocol in the middle of a request."""


class RenderProcess:
    """A running render process; use `RenderProcess.start`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._stderr = bytearray()
        self._drain = asyncio.create_task(self._drain_stderr())
        self.pages = 0
        self.rss = 0

    @classmethod
    async def start(cls, options: RenderOptions) -> RenderProcess:
        """Starts a process and waits until it is ready.

        Raises:
            ConfigurationError: It does not come up.
        """
        # The package's own folder comes last: it is on the path already unless an import hook found it.
        path = [*(entry for entry in sys.path if entry), str(Path(__file__).parents[2])]
        environment = {key: os.environ[key] for key in _INHERITED if key in os.environ} | _OWN_ENVIRONMENT
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-I", "-S", "-B", "-X", "utf8", "-c", _BOOT, *path),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=_LIMIT,
                env=environment,
                start_new_session=True,  # Ctrl-C in the terminal is the parent's business
            )
        except OSError as error:
            raise ConfigurationError(
                f"The render process cannot be started: {error}.", "Check the limits on processes and memory."
            ) from error
        self = cls(process)
        try:
            await asyncio.wait_for(
                self._exchange({"options": asdict(options), "parent": os.getpid()}), _START_TIMEOUT_S
            )
        except (ProcessDiedError, asyncio.TimeoutError) as error:
            await self.kill()
            raise ConfigurationError(
                f"The render process does not start: {self.last_words() or error}.",
                "If memory_limit_bytes was lowered, raise it; else reinstall pagemill.",
            ) from error
        except BaseException:
            await self.kill()
            raise
        return self

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    async def ask(self, request: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        """Sends a request and waits for its answer, without a time limit.

        Raises:
            ProcessDiedError: The process ended instead.
        """
        message, data = await self._exchange(request)
        self.pages += request["do"] == "render"
        rss = message.get("rss", 0)
        self.rss = rss if isinstance(rss, int) else 0
        return message, data

    async def kill(self) -> None:
        """Ends it at once, even when it is stopped or stuck in native code."""
        if self._process.returncode is None:
            # Not Process.kill: it polls first, and where it collects the exit status, asyncio gets none.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        await self._reap()

    async def close(self) -> None:
        """Lets it end by itself, and kills it if it does not."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), _EXIT_GRACE_S)
        except asyncio.TimeoutError:
            await self.kill()
        else:
            await self._reap()

    def last_words(self) -> str:
        """The last line it wrote to standard error, and the signal that ended it."""
        lines = self._stderr.decode("utf-8", "replace").strip().splitlines()
        words = lines[-1:]
        code = self._process.returncode
        if code is not None and code < 0:
            with contextlib.suppress(ValueError):
                words.append(signal.Signals(-code).name)
        return ", ".join(words)

    async def _reap(self) -> None:
        await self._process.wait()
        self._drain.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._drain
        if self._process.stdin is not None:
            self._process.stdin.close()
            with contextlib.suppress(OSError):
                await self._process.stdin.wait_closed()

    async def _exchange(self, request: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            stdin.write(wire.pack(request))
            await stdin.drain()
            json_length, data_length = wire.unpack_head(await stdout.readexactly(wire.HEAD.size))
            message = wire.unpack_json(await stdout.readexactly(json_length))
            return message, await stdout.readexactly(data_length)
        except (asyncio.IncompleteReadError, OSError, wire.WireError) as error:
            raise ProcessDiedError(str(error)) from error

    async def _drain_stderr(self) -> None:
        stderr = self._process.stderr
        assert stderr is not None
        while chunk := await stderr.read(65536):
            self._stderr += chunk
            del self._stderr[:-_STDERR_TAIL]
            _log.debug("render_process_stderr", pid=self.pid, text=chunk[-500:].decode("utf-8", "replace").strip())
