"""The supervisor with a fake server, in real processes: what it does when a server dies, hangs, or will not go."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from pagemill.domain.errors import ConfigurationError, EngineUnavailableError
from pagemill.serving.command import ServeCommand
from pagemill.serving.errors import ErrorClass
from pagemill.serving.events import Restarting, ServeEvent, State, StateChanged
from pagemill.serving.logs import LogRecord
from pagemill.serving.options import WatchOptions
from pagemill.serving.supervisor import Supervisor

pytestmark = pytest.mark.slow

FAKE = Path(__file__).resolve().parents[2] / "fake_vllm.py"
OOM = "(Worker pid=7) ERROR 12-01 00:00:00 [w.py:1] torch.OutOfMemoryError: CUDA out of memory."
FAST = {
    "poll_interval_s": 0.05,
    "liveness_interval_s": 0.1,
    "liveness_misses": 3,
    "probe_timeout_s": 0.5,
    "idle_probe_s": 0,
    "backoff_first_s": 0.05,
    "start_timeout_s": 30,
    "drain_timeout_s": 20,
    "stop_grace_s": 10,
}


class Watched:
    """A supervisor of a fake server, with all that it told."""

    def __init__(self, folder: Path, behaviour: dict[str, Any], **watch: Any) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}/v1"
        self.runs = folder / "runs"
        options = WatchOptions(**(FAST | watch))
        command = ServeCommand(
            (
                *(sys.executable, str(FAKE), "--host", "127.0.0.1", "--port", str(port)),
                *("--shutdown-timeout", str(options.drain_timeout_s)),
            ),
            {**os.environ, "FAKE_VLLM": json.dumps(behaviour), "FAKE_VLLM_RUNS": str(self.runs)},
            self.url,
        )
        self.events: list[ServeEvent] = []
        self.records: list[LogRecord] = []
        self.supervisor = Supervisor(
            command, options, model="lightonocr", on_event=self.events.append, on_record=self.records.append
        )

    @property
    def states(self) -> list[State]:
        return [event.state for event in self.events if isinstance(event, StateChanged)]

    @property
    def restarts(self) -> list[Restarting]:
        return [event for event in self.events if isinstance(event, Restarting)]

    def server_pids(self) -> list[int]:
        return [int(pid) for pid in self.runs.read_text().split()]

    def engine_pid(self) -> int:
        return [record.pid for record in self.records if record.message == "engine pid"][-1] or 0

    async def until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline, self.events
            await asyncio.sleep(0.02)

    async def page(self, max_tokens: int = 4096) -> int:
        """Has a page read; gives the status, 0 for a broken connection or an answer that was cut off."""
        async with aiohttp.ClientSession() as session:
            try:
                async with session.post(f"{self.url}/chat/completions", json={"max_tokens": max_tokens}) as response:
                    answer = await response.json(content_type=None)
                    return response.status if answer["choices"][0]["finish_reason"] == "stop" else 0
            except aiohttp.ClientError:
                return 0


@asynccontextmanager
async def running(folder: Path, behaviour: dict[str, Any] | None = None, **watch: Any) -> AsyncIterator[Watched]:
    """A supervisor at work, stopped at the end whatever the test did."""
    watched = Watched(folder, behaviour or {}, **watch)
    task = asyncio.create_task(watched.supervisor.run())
    try:
        await watched.until(lambda: State.READY in watched.states or task.done())
        if task.done():
            await task
        yield watched
    finally:
        if not task.done():
            watched.supervisor.request_stop()
            watched.supervisor.request_stop()
        await asyncio.gather(task, return_exceptions=True)
    for pid in watched.server_pids():
        assert not group_lives(pid)


def group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


async def give_up(folder: Path, behaviour: dict[str, Any], **watch: Any) -> tuple[Watched, Exception]:
    watched = Watched(folder, behaviour, **watch)
    with pytest.raises((ConfigurationError, EngineUnavailableError)) as caught:
        await asyncio.wait_for(watched.supervisor.run(), 60)
    assert watched.states[-1] is State.FAILED
    for pid in watched.server_pids():
        assert not group_lives(pid)
    return watched, caught.value


async def test_it_is_ready_once_the_canary_page_is_good_and_stops_in_good_order(tmp_path: Path) -> None:
    watched = Watched(tmp_path, {"start_s": 0.3})
    task = asyncio.create_task(watched.supervisor.run())
    await watched.until(lambda: State.READY in watched.states)
    watched.supervisor.request_stop()
    assert await task is True
    assert watched.states == [State.STARTING, State.READY, State.DRAINING, State.STOPPED]
    assert watched.restarts == []


async def test_a_dead_engine_is_restarted_though_the_server_ends_with_status_0(tmp_path: Path) -> None:
    async with running(tmp_path) as watched:
        os.kill(watched.engine_pid(), signal.SIGKILL)
        await watched.until(lambda: watched.states.count(State.READY) == 2)
        assert await watched.page() == 200
        (restart,) = watched.restarts
        assert "status 0" in restart.reason
        assert restart.error is not None
        assert restart.error.kind is ErrorClass.MODEL_ERROR
        assert watched.supervisor.errors[ErrorClass.MODEL_ERROR] == 1
        assert len(watched.server_pids()) == 2


async def test_a_server_that_ends_slowly_after_its_engine_is_dead_rather_than_hung(tmp_path: Path) -> None:
    async with running(tmp_path, {"linger_s": 1.5}, probe_timeout_s=30) as watched:
        os.kill(watched.engine_pid(), signal.SIGKILL)
        await watched.until(lambda: watched.states.count(State.READY) == 2)
        assert "status 0" in watched.restarts[0].reason


async def test_a_killed_server_takes_its_engine_along_and_is_restarted(tmp_path: Path) -> None:
    async with running(tmp_path, {"orphan_ignores_sigterm": True}) as watched:
        first = watched.server_pids()[0]
        os.kill(first, signal.SIGKILL)
        await watched.until(lambda: watched.states.count(State.READY) == 2)
        assert not group_lives(first)
        assert "signal 9" in watched.restarts[0].reason


async def test_a_hung_engine_with_a_page_in_flight_is_found_and_restarted(tmp_path: Path) -> None:
    async with running(tmp_path) as watched:
        os.kill(watched.engine_pid(), signal.SIGSTOP)
        page = asyncio.create_task(watched.page())
        await watched.until(lambda: watched.states.count(State.READY) == 2)
        assert await page == 0
        assert "hung" in watched.restarts[0].reason
        assert watched.supervisor.errors[ErrorClass.TIMEOUT] == 1
        assert await watched.page() == 200


async def test_a_hung_engine_without_pages_is_found_by_a_probe_page(tmp_path: Path) -> None:
    async with running(tmp_path, idle_probe_s=0.2) as watched:
        os.kill(watched.engine_pid(), signal.SIGSTOP)
        await watched.until(lambda: watched.states.count(State.READY) == 2)


async def test_a_hung_server_is_found_too(tmp_path: Path) -> None:
    async with running(tmp_path) as watched:
        os.kill(watched.server_pids()[0], signal.SIGSTOP)
        await watched.until(lambda: watched.states.count(State.READY) == 2)


async def test_one_hung_engine_is_found_though_another_works(tmp_path: Path) -> None:
    async with running(tmp_path, {"runs": [{"second_engine_hangs": True}, {}]}) as watched:
        await watched.until(lambda: watched.states.count(State.READY) == 2)
        assert "Engine 1 is hung" in watched.restarts[0].reason


async def test_a_slow_engine_is_left_alone(tmp_path: Path) -> None:
    behaviour = {"page_s": 3.0, "tokens_every_s": 0.45}
    async with running(tmp_path, behaviour, probe_timeout_s=0.6) as watched:
        # Its tokens come later than three looks, and it reads no probe page before this one is done.
        assert await watched.page() == 200
        assert watched.restarts == []


async def test_wrong_flags_end_it_at_once_with_the_first_error(tmp_path: Path) -> None:
    log = ["vllm: error: unrecognized arguments: --nonesuch", "RuntimeError: something later"]
    watched, error = await give_up(tmp_path, {"log": log, "exit": 2})
    assert isinstance(error, ConfigurationError)
    assert "unrecognized arguments: --nonesuch" in str(error)
    assert len(watched.server_pids()) == 1


async def test_a_start_that_keeps_failing_is_given_up_after_some_attempts(tmp_path: Path) -> None:
    watched, error = await give_up(tmp_path, {"log": [OOM], "exit": 1}, start_attempts=2)
    assert isinstance(error, EngineUnavailableError)
    assert "CUDA out of memory" in str(error)
    assert "[oom]" in str(error)
    assert len(watched.server_pids()) == 2
    assert watched.supervisor.errors == {ErrorClass.OOM: 2}


async def test_a_start_that_fails_once_is_tried_again(tmp_path: Path) -> None:
    async with running(tmp_path, {"runs": [{"log": [OOM], "exit": 1}, {}]}) as watched:
        assert [restart.error.kind for restart in watched.restarts if restart.error] == [ErrorClass.OOM]


async def test_what_has_worked_once_is_never_given_up(tmp_path: Path) -> None:
    broken = {"log": ["vllm: error: unrecognized arguments: --x"], "exit": 2}
    runs = [{"die_after_s": 1.5}, broken, broken, broken, broken, {}]
    async with running(tmp_path, {"runs": runs}, start_attempts=2, backoff_most_s=0.1) as watched:
        await watched.until(lambda: watched.states.count(State.READY) == 2)
        assert len(watched.restarts) == 5


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        ({"answer": "the same line again\n" * 60}, "repeats itself"),
        ({"finish_reason": "length"}, "did not end"),
        ({"answer": ""}, "empty"),
        ({"canary_s": 60}, "no answer in 0.5 s"),
    ],
)
async def test_a_bad_canary_page_is_a_failed_start(tmp_path: Path, behaviour: dict[str, Any], words: str) -> None:
    _, error = await give_up(tmp_path, behaviour, start_attempts=1, canary_timeout_s=0.5)
    assert words in str(error)
    assert "[model_error]" in str(error)


async def test_a_start_has_a_time_limit(tmp_path: Path) -> None:
    watched, error = await give_up(tmp_path, {"start_s": 600}, start_attempts=1, start_timeout_s=0.5)
    assert "not up after 0.5 s" in str(error)
    assert watched.supervisor.errors == {ErrorClass.TIMEOUT: 1}


async def test_a_stop_lets_pages_in_flight_finish(tmp_path: Path) -> None:
    async with running(tmp_path, {"page_s": 0.5}) as watched:
        page = asyncio.create_task(watched.page())
        await asyncio.sleep(0.1)
        watched.supervisor.request_stop()
        assert await page == 200
        await watched.until(lambda: watched.states[-1] is State.STOPPED)


async def test_pages_that_are_being_prepared_at_a_stop_finish_as_well(tmp_path: Path) -> None:
    async with running(tmp_path, {"prepare_s": 0.7}) as watched:
        page = asyncio.create_task(watched.page())
        await asyncio.sleep(0.2)
        watched.supervisor.request_stop()
        assert await page == 200
        await watched.until(lambda: watched.states[-1] is State.STOPPED)


async def test_a_server_that_will_not_go_is_killed_after_its_time(tmp_path: Path) -> None:
    watched = Watched(tmp_path, {"ignore_sigterm": True}, drain_timeout_s=0, stop_grace_s=0.3)
    task = asyncio.create_task(watched.supervisor.run())
    await watched.until(lambda: State.READY in watched.states)
    watched.supervisor.request_stop()
    assert await task is False
    assert not group_lives(watched.server_pids()[0])


async def test_a_second_request_stops_at_once(tmp_path: Path) -> None:
    watched = Watched(tmp_path, {"runs": [{}], "page_s": 0})
    task = asyncio.create_task(watched.supervisor.run())
    await watched.until(lambda: State.READY in watched.states)
    os.kill(watched.engine_pid(), signal.SIGSTOP)
    page = asyncio.create_task(watched.page())
    await asyncio.sleep(0.1)
    watched.supervisor.request_stop()
    await watched.until(lambda: watched.states[-1] is State.DRAINING)
    watched.supervisor.request_stop()
    assert await asyncio.wait_for(task, 15) is False
    assert await page == 0


async def test_it_can_be_stopped_while_it_starts_and_while_it_waits(tmp_path: Path) -> None:
    watched = Watched(tmp_path, {"start_s": 600})
    task = asyncio.create_task(watched.supervisor.run())
    await watched.until(lambda: any(record.message == "engine pid" for record in watched.records))
    watched.supervisor.request_stop()
    assert await task is True
    watched = Watched(tmp_path, {"exit": 1}, backoff_first_s=60, start_attempts=5)
    task = asyncio.create_task(watched.supervisor.run())
    await watched.until(lambda: State.WAITING in watched.states)
    watched.supervisor.request_stop()
    assert await asyncio.wait_for(task, 15) is True


@pytest.mark.parametrize("stubborn", [False, True])
def test_the_server_does_not_outlive_a_supervisor_that_was_killed(tmp_path: Path, stubborn: bool) -> None:
    script = """
import asyncio, os, sys
from pagemill.serving.command import ServeCommand
from pagemill.serving.process import ServerProcess

async def main():
    argv = (sys.executable, sys.argv[1], "--host", "127.0.0.1", "--port", "0", "--shutdown-timeout", "0")
    command = ServeCommand(argv, dict(os.environ), "")
    server = await ServerProcess.start(command, lambda record: print(server.pid, record.message, flush=True), 0.5)
    await server.exited()

asyncio.run(main())
"""
    behaviour = {"ignore_sigterm": stubborn, "orphan_ignores_sigterm": stubborn}
    with subprocess.Popen(
        [sys.executable, "-c", script, str(FAKE)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "FAKE_VLLM": json.dumps(behaviour)},
    ) as parent:
        assert parent.stdout is not None
        line = parent.stdout.readline()
        parent.kill()
    match = re.match(r"(\d+) engine pid", line)
    assert match is not None
    group = int(match[1])
    deadline = time.monotonic() + 30
    while group_lives(group) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not group_lives(group)


async def test_a_log_that_cannot_be_handed_on_does_not_block_the_server(tmp_path: Path) -> None:
    def refuse(_record: LogRecord) -> None:
        raise BrokenPipeError

    watched = Watched(tmp_path, {"log": ["x" * 100] * 900})
    watched.supervisor._on_record = refuse
    task = asyncio.create_task(watched.supervisor.run())
    await watched.until(lambda: State.READY in watched.states)
    watched.supervisor.request_stop()
    assert await task is True
