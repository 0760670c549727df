from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from pagemill.gateway.processes import ProcessGroup

# Says that it runs, and for which time; ends by SIGTERM, or when its standard input ends.
CHILD = """
import os, pathlib, select, signal, sys
folder = pathlib.Path(sys.argv[1])
def stop(*_):
    (folder / f"stopped-{os.getpid()}").touch()
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
(folder / f"run-{os.getpid()}").write_text(os.environ["PROMETHEUS_MULTIPROC_DIR"])
sys.stdin.read()
"""


def group(tmp_path: Path, code: str = CHILD, count: int = 2, stop_s: float = 30.0) -> ProcessGroup:
    command = [sys.executable, "-c", code, str(tmp_path)]
    return ProcessGroup([command] * count, shared=(), stop_s=stop_s, fatal_status=2)


def pids(tmp_path: Path, word: str = "run") -> set[int]:
    return {int(path.name.partition("-")[2]) for path in tmp_path.glob(f"{word}-*") if path.exists()}


async def until(tmp_path: Path, count: int, word: str = "run") -> set[int]:
    while len(pids(tmp_path, word)) < count:
        await asyncio.sleep(0.01)
    return pids(tmp_path, word)


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_process_that_dies_is_started_again_and_all_are_stopped_in_order(tmp_path: Path) -> None:
    processes = group(tmp_path)
    running = asyncio.create_task(processes.run())
    first = await until(tmp_path, 2)
    victim = min(first)
    os.kill(victim, signal.SIGKILL)
    all_of_them = await until(tmp_path, 3)
    processes.request_stop()
    assert await running == 0
    assert processes.in_order
    assert pids(tmp_path, "stopped") == all_of_them - {victim}
    folders = {(tmp_path / f"run-{pid}").read_text() for pid in all_of_them}
    assert len(folders) == 1
    assert not Path(folders.pop()).exists()


async def test_wrong_settings_end_all_at_once(tmp_path: Path) -> None:
    good, bad = [sys.executable, "-c", CHILD, str(tmp_path)], [sys.executable, "-c", "raise SystemExit(2)"]
    processes = ProcessGroup([good, bad], shared=(), stop_s=30.0, fatal_status=2)
    assert await processes.run() == 2
    assert not any(map(is_there, pids(tmp_path)))


async def test_one_that_does_not_stop_in_time_is_killed(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("pagemill.gateway.processes._GRACE_S", 0.0)
    deaf = CHILD.replace("signal.signal(signal.SIGTERM, stop)", "signal.signal(signal.SIGTERM, signal.SIG_IGN)")
    processes = group(tmp_path, deaf, count=1, stop_s=0.1)
    running = asyncio.create_task(processes.run())
    (pid,) = await until(tmp_path, 1)
    processes.request_stop()
    assert await running == 1
    assert not is_there(pid)


async def test_a_second_signal_does_not_wait(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("pagemill.gateway.processes._AT_ONCE_S", 0.1)
    deaf = CHILD.replace("signal.signal(signal.SIGTERM, stop)", "signal.signal(signal.SIGTERM, signal.SIG_IGN)")
    processes = group(tmp_path, deaf, count=1, stop_s=3600)
    running = asyncio.create_task(processes.run())
    (pid,) = await until(tmp_path, 1)
    processes.request_stop()
    processes.request_stop()
    await running
    assert not processes.in_order
    assert not is_there(pid)


async def test_when_the_group_is_cancelled_nobody_is_left(tmp_path: Path) -> None:
    running = asyncio.create_task(group(tmp_path).run())
    there = await until(tmp_path, 2)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert not any(map(is_there, there))
