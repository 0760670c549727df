from __future__ import annotations

import asyncio
import json
import os
import socket
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from pagemill.api import EngineChoice
from pagemill.cli.local_engine import EnginePlan, engine_options, plan_engine
from pagemill.domain.errors import ConfigurationError, EngineUnavailableError, MissingDependencyError
from pagemill.serving import Preparation, ServeEvent, WatchOptions
from pagemill.serving.command import ServeCommand
from pagemill.serving.events import Note, State, StateChanged
from pagemill.serving.hardware import Gpu
from pagemill.serving.versions import Installed
from pagemill.settings import load_settings

FAKE = Path(__file__).resolve().parents[2] / "fake_vllm.py"
A10 = Gpu(0, "GPU-1", "NVIDIA A10", 23_028, 0)


def settings_of(**engine: Any) -> Any:
    return load_settings(None, {"engine": engine})


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """A machine with a GPU and vLLM, as far as those who look can tell; change it to take something away."""
    executable = tmp_path / "vllm"
    executable.write_text("#!/bin/sh\n")
    executable.chmod(executable.stat().st_mode | stat.S_IXUSR)
    found: dict[str, Any] = {
        "gpus": [A10],
        "vllm": executable,
        "installed": Installed("0.30.0", "5.16.1", "2.11.0", None),
    }

    def find(_wanted: Path | None, _environment: object) -> Path:
        if found["vllm"] is None:
            raise MissingDependencyError("vLLM is not installed.")
        return found["vllm"]

    for module in ("pagemill.cli.local_engine", "pagemill.serving.serve"):
        monkeypatch.setattr(f"{module}.find_gpus", lambda _environment: found["gpus"])
        monkeypatch.setattr(f"{module}.find_executable", find)
        monkeypatch.setattr(f"{module}.read_installed", lambda _executable: found["installed"])
    return found


def test_an_endpoint_comes_first(machine: dict[str, Any]) -> None:
    plan = plan_engine(settings_of(endpoints=["http://user:hunter2@gpu:8000"]))
    assert plan.choice.name == "openai"
    assert plan.server is None
    assert "gpu:8000" in plan.choice.reason
    assert "hunter2" not in plan.choice.reason


def test_a_gpu_with_vllm_comes_next_and_the_line_says_so(machine: dict[str, Any]) -> None:
    plan = plan_engine(settings_of(model="lightonai/LightOnOCR-1B-1025"))
    assert plan.choice.name == "openai"
    assert plan.server is not None
    assert "lightonai/LightOnOCR-1B-1025" in plan.server.command.argv
    assert plan.choice.reason == (
        "Engine: lightonai/LightOnOCR-1B-1025 on vLLM 0.30.0 (NVIDIA A10), because it is installed and there is a GPU."
    )


@pytest.mark.parametrize(
    ("lacking", "words"),
    [
        ({"gpus": []}, "this machine has no GPU"),
        ({"vllm": None}, "vLLM is not installed"),
        ({"installed": Installed("0.32.0+cpu", "5.19.0", "2.13.0", None)}, "is one for CPUs"),
    ],
)
def test_else_the_embedded_engine_and_why(machine: dict[str, Any], lacking: dict[str, Any], words: str) -> None:
    machine |= lacking
    plan = plan_engine(settings_of())
    assert plan.choice.name == "embedded"
    assert plan.server is None
    assert words in plan.choice.reason


def test_a_server_that_was_asked_for_by_name_must_be_possible(machine: dict[str, Any]) -> None:
    machine["gpus"] = []
    with pytest.raises(ConfigurationError, match="no GPU"):
        plan_engine(settings_of(name="vllm"))


def test_a_server_here_and_endpoints_contradict_each_other(machine: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="endpoints are given as well"):
        plan_engine(settings_of(name="vllm", endpoints=["http://gpu:8000"]))


def test_a_bad_pair_of_versions_is_not_hidden_behind_a_weaker_engine(machine: dict[str, Any]) -> None:
    machine["installed"] = Installed("0.27.1", "5.16.1", "2.11.0", None)
    with pytest.raises(ConfigurationError, match=r"0\.27\.1"):
        plan_engine(settings_of())


def test_an_engine_that_is_named_is_taken(machine: dict[str, Any]) -> None:
    assert plan_engine(settings_of(name="embedded")).choice.name == "embedded"


def server(tmp_path: Path, behaviour: dict[str, Any]) -> EnginePlan:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = ServeCommand(
        (sys.executable, str(FAKE), "--host", "127.0.0.1", "--port", str(port), "--shutdown-timeout", "5"),
        {**os.environ, "FAKE_VLLM": json.dumps(behaviour), "FAKE_VLLM_RUNS": str(tmp_path / "runs")},
        f"http://127.0.0.1:{port}/v1",
    )
    watch = WatchOptions(poll_interval_s=0.05, start_attempts=1, backoff_first_s=0.05)
    options = load_settings().serve.model_copy(update={"watch": watch, "api_key": SecretStr("hunter2")})
    prepared = Preparation(options, command, Installed("0.30.0", "5.16.1", "2.11.0", None), (A10,), ("a note",))
    return EnginePlan(EngineChoice("openai", "for a test"), prepared)


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}/exe").exists()


@pytest.mark.slow
async def test_the_server_runs_as_long_as_it_is_needed(tmp_path: Path) -> None:
    plan = server(tmp_path, {})
    events: list[ServeEvent] = []
    async with engine_options(settings_of(options={"stall_timeout_s": 7}), plan, events.append) as options:
        assert plan.server is not None
        assert options == {
            "stall_timeout_s": 7,
            "endpoints": [plan.server.command.base_url],
            "model": "lightonocr",
            "api_key": "hunter2",
        }
        (pid,) = map(int, (tmp_path / "runs").read_text().split())
        assert is_alive(pid)
    assert not is_alive(pid)
    assert events[0] == Note("a note")
    assert events[-1] == StateChanged(State.STOPPED)


@pytest.mark.slow
async def test_a_server_that_does_not_go_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pagemill.cli.local_engine._STOP_S", 0.2)
    events: list[ServeEvent] = []
    async with engine_options(settings_of(), server(tmp_path, {"ignore_sigterm": True}), events.append):
        pid = int((tmp_path / "runs").read_text())
    assert not is_alive(pid)
    assert events[-1] == StateChanged(State.STOPPED, "pages in flight were cut off")


@pytest.mark.slow
async def test_the_server_ends_when_the_work_fails_or_is_stopped(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="the work"):
        async with engine_options(settings_of(), server(tmp_path, {}), lambda _event: None):
            raise ValueError("the work")
    assert not is_alive(int((tmp_path / "runs").read_text()))

    async def work() -> None:
        async with engine_options(settings_of(), server(tmp_path, {}), lambda _event: None):
            begun.set()
            await asyncio.sleep(60)

    begun = asyncio.Event()
    task = asyncio.create_task(work())
    await asyncio.wait_for(begun.wait(), 60)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled()
    assert not any(map(is_alive, map(int, (tmp_path / "runs").read_text().split())))


@pytest.mark.slow
async def test_a_server_that_does_not_start_is_an_error_with_its_words(tmp_path: Path) -> None:
    events: list[ServeEvent] = []
    oom = "(Worker pid=7) ERROR 12-01 00:00:00 [w.py:1] torch.OutOfMemoryError: CUDA out of memory."
    with pytest.raises(EngineUnavailableError, match="CUDA out of memory"):
        async with engine_options(settings_of(), server(tmp_path, {"log": [oom], "exit": 1}), events.append):
            raise AssertionError("not reached")
    assert events
