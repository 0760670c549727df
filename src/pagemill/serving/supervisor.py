"""Keeps one server at work: starts it, checks it, watches it, and starts it again."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from pagemill.domain.errors import ConfigurationError, EngineUnavailableError
from pagemill.serving.backoff import Backoff
from pagemill.serving.client import ServerClient
from pagemill.serving.command import ServeCommand
from pagemill.serving.errors import ErrorClass, ServerError
from pagemill.serving.events import (
    ErrorSeen,
    Note,
    Restarting,
    ServeEventHandler,
    StartProgress,
    State,
    StateChanged,
)
from pagemill.serving.liveness import LivenessWatch, Look
from pagemill.serving.logs import ErrorLog, LogRecord, phase_of
from pagemill.serving.options import WatchOptions
from pagemill.serving.process import RecordHandler, ServerProcess
from pagemill.serving.status import SupervisorStatus

_PROBE_TIMEOUT_S = 60.0
_TAKE_UP_S = 10.0
_TAKE_UP_POLL_S = 0.1


class _RunOver(Exception):  # noqa: N818 - no error, but the end of a run
    """This run of the server must end."""

    def __init__(self, reason: str, error: ServerError) -> None:
        super().__init__(reason)
        self.error = error


@dataclass
class _Run:
    """One run of the server, from its start to its end."""

    process: ServerProcess
    log: ErrorLog
    ready_at: float | None = None

    def served_s(self, now: float) -> float:
        return 0.0 if self.ready_at is None else now - self.ready_at


class Supervisor:
    """Runs a server until it is asked to stop.

    Args:
        command: What to run.
        watch: When it counts as started, hung or failed.
        model: Name of the served model.
        api_key: Key that the server wants.
        on_event: Told of each change.
        on_record: Gets each record of the server's log.
        clock: Seconds, monotonic.

    Attributes:
        state: Where the server stands.
        restarts: Restarts so far.
        errors: Errors so far by class, those of the log and those that the supervisor found.
    """

    def __init__(
        self,
        command: ServeCommand,
        watch: WatchOptions,
        *,
        model: str,
        api_key: str | None = None,
        on_event: ServeEventHandler = lambda _event: None,
        on_record: RecordHandler = lambda _record: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._command = command
        self._watch = watch
        self._client = ServerClient(command.base_url, model, api_key)
        self._on_event = on_event
        self._on_record = on_record
        self._clock = clock
        self._stop = asyncio.Event()
        self._stop_now = asyncio.Event()
        self._has_worked = False
        self.state = State.STOPPED
        self._since = time.time()
        self.restarts = 0
        self.errors: Counter[ErrorClass] = Counter()

    def request_stop(self) -> None:
        """Asks for the end: the first time in good order, the second time at once."""
        (self._stop_now if self._stop.is_set() else self._stop).set()

    def status(self) -> SupervisorStatus:
        """How the server fares now."""
        errors = {kind.value: count for kind, count in sorted(self.errors.items())}
        return SupervisorStatus(self.state, self._since, self._command.base_url, self.restarts, errors)

    async def run(self) -> bool:
        """Keeps the server at work until `request_stop`.

        Returns:
            Whether it ended in good order: pages in flight were finished.

        Raises:
            ConfigurationError: It cannot be started with these options; the message has the first error of its log.
            EngineUnavailableError: It failed at several starts and has never worked.
        """
        backoff = Backoff(self._watch.backoff_first_s, self._watch.backoff_most_s, self._watch.backoff_reset_s)
        failed_starts = 0
        async with self._client:
            while True:
                run = await self._start()
                end = await self._until_over(run)
                if end is None:
                    return await self._drain(run)
                await run.process.kill()
                error = run.log.first if run.log.first is not None else end.error
                if end.error.kind is not ErrorClass.OTHER or run.log.first is None:
                    self.errors[end.error.kind] += 1
                failed_starts += not self._has_worked
                if not self._has_worked and (error.permanent or failed_starts >= self._watch.start_attempts):
                    self._give_up(str(end), error, run.log)
                self.restarts += 1
                wait_s = backoff.next_wait(run.served_s(self._clock()))
                self._change(State.WAITING, str(end))
                self._on_event(Restarting(str(end), error, self.restarts, wait_s))
                if await self._is_stopped_within(wait_s):
                    self._change(State.STOPPED)
                    return True

    async def _start(self) -> _Run:
        log = ErrorLog()
        started = self._clock()
        phase = ""

        def take(record: LogRecord) -> None:
            nonlocal phase
            self._on_record(record)
            error = log.add(record)
            if error is not None:
                self.errors[error.kind] += 1
                self._on_event(ErrorSeen(error))
            new = phase_of(record) if self.state is State.STARTING else None
            if new is not None and new != phase:
                phase = new
                self._on_event(StartProgress(new, self._clock() - started))

        self._change(State.STARTING)
        return _Run(await ServerProcess.start(self._command, take, self._watch.stop_grace_s), log)

    async def _until_over(self, run: _Run) -> _RunOver | None:
        """Waits for the end of a run: why it is over, or None where it is to be stopped."""
        exited = asyncio.create_task(run.process.exited())
        work = asyncio.create_task(self._bring_up_and_watch(run))
        stop = asyncio.create_task(self._stop.wait())
        tasks = (exited, work, stop)
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if stop.done():
                return None
            if exited.done():
                return _exit_of(exited.result())
            return work.result()
        except BaseException:
            await run.process.kill()
            raise
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _bring_up_and_watch(self, run: _Run) -> _RunOver:
        try:
            await self._bring_up()
            self._has_worked = True
            run.ready_at = self._clock()
            self._change(State.READY, url=self._command.base_url)
            await self._watch_tokens()
        except _RunOver as over:
            return over
        raise AssertionError("watching does not end by itself")

    async def _bring_up(self) -> None:
        try:
            await asyncio.wait_for(self._until_healthy(), self._watch.start_timeout_s)
        except asyncio.TimeoutError:
            reason = f"It was not up after {self._watch.start_timeout_s:g} s."
            raise _RunOver(
                reason, ServerError(ErrorClass.TIMEOUT, reason, "Raise serve.watch.start_timeout_s for slow networks.")
            ) from None
        verdict = await self._client.canary(self._watch.canary_timeout_s)
        if not verdict.ok:
            reason = f"The canary page failed: {verdict.detail}."
            remedy = "vLLM and transformers may not fit together: known to be good are vllm==0.30.0 with 5.16.1."
            raise _RunOver(reason, ServerError(ErrorClass.MODEL_ERROR, reason, remedy))
        if not verdict.reads:
            shown = " ".join(verdict.text.split())[:80]
            self._on_event(Note(f"The canary page was read as other text than it holds: {shown}"))

    async def _until_healthy(self) -> None:
        while not await self._client.healthy():  # noqa: ASYNC110 - the server is asked, not an event
            await asyncio.sleep(self._watch.poll_interval_s)

    async def _watch_tokens(self) -> None:
        """Looks at the engines again and again; ends only by `_RunOver`."""
        watch = LivenessWatch(self._watch.liveness_misses, self._watch.idle_probe_s)
        while True:
            await asyncio.sleep(self._watch.liveness_interval_s)
            samples = await self._client.samples(self._watch.liveness_interval_s)
            look = watch.look(self._clock(), samples)
            if look is Look.SUSPECT:
                await self._clear(watch, watch.suspects())
            elif look is Look.IDLE_FOR_LONG:
                await self._clear(watch, list(watch.quiet(self._clock())))

    async def _clear(self, watch: LivenessWatch, engines: list[str]) -> None:
        """Gives each engine a probe page, and ends the run where one gets no token while nothing else moves."""
        for engine in engines:
            if not await self._answers(watch, engine):
                limit = self._probe_timeout_s
                reason = f"Engine {engine} is hung: no token though pages are in flight, and none for a probe page."
                raise _RunOver(
                    reason,
                    ServerError(ErrorClass.TIMEOUT, reason, f"It is restarted ({limit:g} s, watch.probe_timeout_s)."),
                )
            watch.cleared(self._clock(), engine)

    @property
    def _probe_timeout_s(self) -> float:
        return self._watch.probe_timeout_s or _PROBE_TIMEOUT_S

    async def _answers(self, watch: LivenessWatch, engine: str) -> bool:
        """Whether an engine gives a token, to a probe page or to any other page, within the time for a probe."""
        addressee = engine if watch.engines > 1 else None
        before = watch.progress(engine)
        deadline = self._clock() + self._probe_timeout_s
        while (left := deadline - self._clock()) > 0:
            probe = asyncio.create_task(self._client.probe(left, addressee))
            try:
                while not (await asyncio.wait({probe}, timeout=self._watch.liveness_interval_s))[0]:
                    samples = await self._client.samples(self._watch.liveness_interval_s)
                    if samples is not None and engine in samples and samples[engine].progress != before:
                        return True
                if probe.result():
                    return True
            finally:
                probe.cancel()
                await asyncio.gather(probe, return_exceptions=True)
            # Refused at once: a server whose engine has died is about to end, which says more than that it is hung.
            await asyncio.sleep(self._watch.poll_interval_s)
        return False

    async def _drain(self, run: _Run) -> bool:
        was_ready = run.ready_at is not None
        self._change(State.DRAINING, "pages in flight are finished" if was_ready else "")
        limit = self._watch.stop_grace_s + (self._watch.drain_timeout_s if was_ready else 0)
        stopping = asyncio.create_task(self._stop_in_order(run.process, limit, was_ready=was_ready))
        now = asyncio.create_task(self._stop_now.wait())
        await asyncio.wait({stopping, now}, return_when=asyncio.FIRST_COMPLETED)
        in_order = stopping.result() if stopping.done() else False
        for task in (stopping, now):
            task.cancel()
        await asyncio.gather(stopping, now, return_exceptions=True)
        await run.process.kill()
        self._change(State.STOPPED, "" if in_order or not was_ready else "pages in flight were cut off")
        return in_order or not was_ready

    async def _stop_in_order(self, process: ServerProcess, limit_s: float, *, was_ready: bool) -> bool:
        if was_ready:
            # vLLM lets those pages finish that its engine has; those that are still being prepared for it come back
            # empty, as aborted (measured on 0.32.0). So they get a moment to reach it.
            deadline = self._clock() + min(_TAKE_UP_S, self._watch.drain_timeout_s)
            while self._clock() < deadline and await self._client.not_taken_up(_TAKE_UP_S) > 0:  # noqa: ASYNC110
                await asyncio.sleep(_TAKE_UP_POLL_S)
        return await process.stop(limit_s)

    def _give_up(self, reason: str, error: ServerError, log: ErrorLog) -> None:
        self._change(State.FAILED, reason)
        message = f"vLLM does not start: {error.message}"
        if error.kind is ErrorClass.OTHER and log.tail and log.first is None:
            message += f" Its last line: {log.tail[-1].strip()}"
        kind = ConfigurationError if error.permanent else EngineUnavailableError
        raise kind(f"{message} [{error.kind.value}]", error.remedy)

    async def _is_stopped_within(self, seconds: float) -> bool:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._stop.wait(), seconds)
        return self._stop.is_set()

    def _change(self, state: State, detail: str = "", url: str | None = None) -> None:
        self.state = state
        self._since = time.time()
        self._on_event(StateChanged(state, detail, url))


def _exit_of(code: int) -> _RunOver:
    """Why a server that ended by itself did so; vLLM ends with status 0 when its engine has died."""
    if code < 0:
        reason = f"The server was killed by signal {-code}."
        remedy = "If nobody did, the kernel may have, for memory: see dmesg."
    else:
        reason = f"The server ended by itself with status {code}."
        remedy = "Look at its log."
    return _RunOver(reason, ServerError(ErrorClass.OTHER, reason, remedy, permanent=code == 2))
