"""`pagemill serve` as a user runs it, with a fake vllm in an environment that looks like a CPU build's."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

Cli = Callable[..., subprocess.CompletedProcess[str]]

FAKE = Path(__file__).resolve().parents[1] / "fake_vllm.py"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    return folder


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Environment variables with which a process finds vllm 0.32.0 (CPU) and no GPU."""
    return fake_environment(tmp_path, "0.32.0+cpu", "5.19.0")


def fake_environment(folder: Path, vllm: str, transformers: str) -> dict[str, str]:
    for name, version in (("vllm", vllm), ("transformers", transformers)):
        info = folder / f"site-{vllm}" / f"{name}-{version}.dist-info"
        info.mkdir(parents=True, exist_ok=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    script = folder / "bin" / "vllm"
    script.parent.mkdir(exist_ok=True)
    script.write_text(f"#!{sys.executable}\nimport runpy\nrunpy.run_path({str(FAKE)!r}, run_name='__main__')\n")
    script.chmod(0o755)
    return {
        "PYTHONPATH": str(folder / f"site-{vllm}"),
        "PATH": f"{script.parent}:/usr/bin:/bin",
        "PAGEMILL_SERVE__GATEWAY": "false",
        "PAGEMILL_SERVE__WATCH__POLL_INTERVAL_S": "0.05",
        "PAGEMILL_SERVE__WATCH__BACKOFF_FIRST_S": "0.05",
    }


@contextmanager
def serving(environment: dict[str, str], *arguments: str | Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-m", "pagemill", "serve", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def read_until(process: subprocess.Popen[str], word: str) -> list[str]:
    stream = process.stderr
    assert stream is not None
    lines = []
    for line in stream:
        lines.append(line.rstrip())
        if word in line:
            return lines
    raise AssertionError(f"no {word!r} in {lines}")


def test_it_says_when_it_is_ready_and_how_to_use_it_and_stops_in_good_order(
    model: Path, environment: dict[str, str]
) -> None:
    with serving(environment, "--model", model, "--port", "auto") as process:
        lines = read_until(process, "Convert with")
        process.send_signal(signal.SIGTERM)
        rest = process.communicate(timeout=60)[1]
    assert process.returncode == 0
    url = next(line.split()[1] for line in lines if line.startswith("Ready:"))
    assert lines[-1].endswith(f"pagemill convert FILES -o out --endpoint {url}")
    assert lines[0].startswith("vLLM 0.32.0+cpu, transformers 5.19.0")
    assert [line.split(":")[0] for line in rest.splitlines()] == ["Draining", "Stopped"]


def test_ctrl_c_twice_stops_at_once(model: Path, environment: dict[str, str]) -> None:
    behaviour = {"FAKE_VLLM": json.dumps({"ignore_sigterm": True})}
    with serving(environment | behaviour, "--model", model, "--port", "auto") as process:
        read_until(process, "Convert with")
        process.send_signal(signal.SIGINT)
        read_until(process, "Draining")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 130


def test_json_events_and_the_log_as_json_lines(model: Path, environment: dict[str, str], tmp_path: Path) -> None:
    log = tmp_path / "server.jsonl"
    warning = "(APIServer pid=1) WARNING 12-01 00:00:00 [x.py:1] odd"
    behaviour = {"FAKE_VLLM": json.dumps({"log": [warning]})}
    arguments = ("--model", model, "--port", "auto", "--json", "--log-file", log)
    events = []
    with serving(environment | behaviour, *arguments) as process:
        assert process.stdout is not None
        for line in process.stdout:
            events.append(json.loads(line))
            if events[-1].get("state") == "ready":
                break
        process.send_signal(signal.SIGTERM)
        events += [json.loads(line) for line in process.communicate(timeout=60)[0].splitlines()]
    assert [event.get("state", event["event"]) for event in events if event["event"] != "note"] == [
        *("prepared", "starting", "ready", "draining", "stopped")
    ]
    assert events[0]["vllm"] == "0.32.0+cpu"
    first = json.loads(log.read_text().splitlines()[0])
    assert (first["level"], first["message"], first["pid"]) == ("warning", "odd", 1)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_costs_the_log_and_not_the_service(model: Path, environment: dict[str, str]) -> None:
    with serving(environment, "--model", model, "--port", "auto", "--log-file", "/dev/full") as process:
        lines = read_until(process, "Convert with")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode == 0
    assert sum("cannot be written" in line for line in lines) == 1


def test_a_key_is_neither_shown_nor_among_the_arguments(model: Path, environment: dict[str, str]) -> None:
    with serving(environment | {"PAGEMILL_SERVE__API_KEY": "hunter2"}, "--model", model, "--port", "auto") as process:
        lines = read_until(process, "Convert with")
        arguments = Path(f"/proc/{process.pid}/cmdline").read_text()
        process.send_signal(signal.SIGTERM)
        lines += process.communicate(timeout=60)[1].splitlines()
    assert "hunter2" not in "\n".join(lines) + arguments
    assert "api_key" in "\n".join(lines)


def test_a_taken_port_says_by_whom(model: Path, environment: dict[str, str], run_cli: Cli) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        done = run_cli("serve", "--model", model, "--port", str(port), **environment)
    assert done.returncode == 2
    assert f"(pid {os.getpid()})" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--port", "high"], "--port is 'high'"),
        (["--port", "70000"], "a port is from 1 to 65535"),
        (["--model", "missing/folder/x"], "no hub id"),
        (["--vllm", "nowhere"], "no vllm executable at nowhere"),
        (["--gpus", "2", "--", "--disable-log-stats"], "removes every metric"),
        (["--", "--request-rate-limit", "5"], "no such flag"),
        (["--source", "modelscope"], "needs the package modelscope"),
    ],
)
def test_mistakes_get_one_clear_line(
    environment: dict[str, str], run_cli: Cli, tmp_path: Path, arguments: list[str], message: str
) -> None:
    done = run_cli("serve", *arguments, cwd=tmp_path, **environment)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_without_a_gpu_it_says_so_and_names_the_alternatives(model: Path, tmp_path: Path, run_cli: Cli) -> None:
    environment = fake_environment(tmp_path, "0.30.0", "5.16.1")
    environment["PATH"] = str(tmp_path / "bin")
    done = run_cli("serve", "--model", model, **environment)
    assert done.returncode == 2
    text = " ".join(done.stderr.split())
    for words in ("no GPU", "--engine embedded", "--endpoint", "llama.cpp", "--device cpu"):
        assert words in text


def test_a_pair_that_is_known_to_fail_is_refused(model: Path, tmp_path: Path, run_cli: Cli) -> None:
    done = run_cli("serve", "--model", model, **fake_environment(tmp_path, "0.27.1", "5.16.1"))
    assert done.returncode == 2
    assert "over and over" in " ".join(done.stderr.split())


def test_without_vllm_it_says_how_to_get_it(model: Path, tmp_path: Path, run_cli: Cli) -> None:
    done = run_cli("serve", "--model", model, PATH=str(tmp_path))
    assert done.returncode == 2
    assert "vLLM is not installed" in done.stderr


def test_a_server_that_does_not_start_shows_its_first_error(
    model: Path, environment: dict[str, str], run_cli: Cli
) -> None:
    log = ["ValueError: the first thing", "vllm: error: unrecognized arguments: --nonesuch"]
    behaviour = {"FAKE_VLLM": json.dumps({"log": log, "exit": 2})}
    done = run_cli("serve", "--model", model, "--port", "auto", **environment, **behaviour)
    assert done.returncode == 2
    assert "unrecognized arguments: --nonesuch" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=30) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_the_document_service_stands_before_the_server_and_stops_first(
    model: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    port = free_port()
    settings = {"PAGEMILL_SERVE__GATEWAY": "true", "PAGEMILL_GATEWAY__DATA": str(tmp_path / "data")}
    arguments = ("--model", model, "--port", "auto", "--gateway-port", str(port))
    with serving(environment | settings, *arguments) as process:
        lines = read_until(process, "Convert with")
        lines += read_until(process, f"Ready: http://127.0.0.1:{port}") if str(port) not in "".join(lines) else []
        service = f"http://127.0.0.1:{port}"
        for _ in range(600):
            if (answer := get(f"{service}/health/ready"))[0] == 200:
                break
            time.sleep(0.1)
        assert answer[0] == 200, answer
        metrics = get(f"{service}/metrics")[1]
        assert 'pagemill_server_state{state="ready"} 1.0' in metrics
        assert "pagemill_server_restarts 0.0" in metrics
        process.send_signal(signal.SIGTERM)
        rest = process.communicate(timeout=60)[1]
    assert process.returncode == 0, rest
    assert [line.split(":")[0] for line in rest.splitlines()][-2:] == ["Draining", "Stopped"]
    with pytest.raises(OSError, match="refused"):
        get(f"{service}/health/live")


def test_a_port_in_use_is_said_before_the_server_starts(model: Path, environment: dict[str, str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        arguments = ("--model", model, "--port", "auto", "--gateway", "--gateway-port", str(port))
        with serving(environment, *arguments) as process:
            _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert f"127.0.0.1:{port} cannot be listened on" in " ".join(errors.split())
    assert "Starting" not in errors


def test_a_killed_serve_takes_the_document_service_with_it(
    model: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    port = free_port()
    settings = {"PAGEMILL_SERVE__GATEWAY": "true", "PAGEMILL_GATEWAY__DATA": str(tmp_path / "data")}
    with serving(environment | settings, "--model", model, "--port", "auto", "--gateway-port", str(port)) as process:
        read_until(process, f"Ready: http://127.0.0.1:{port}")
        process.kill()
        process.communicate(timeout=60)
    for _ in range(600):
        try:
            get(f"http://127.0.0.1:{port}/health/live")
        except OSError:
            return
        time.sleep(0.1)
    raise AssertionError("the document service goes on")
