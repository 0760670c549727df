"""`pagemill serve` with a real vLLM on the CPU and a tiny model.

tests/vllm/install.sh makes the environment whose executable PAGEMILL_VLLM names.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pagemill.serving.client import CANARY_LINES, draw_page

pytestmark = [pytest.mark.slow, pytest.mark.vllm, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[1]
FLAGS = ("--enforce-eager", "--kv-cache-memory-bytes", "268435456")
ENVIRONMENT = {
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
    "PAGEMILL_SERVE__WATCH__LIVENESS_INTERVAL_S": "1",
    "PAGEMILL_SERVE__WATCH__PROBE_TIMEOUT_S": "15",
    "PAGEMILL_SERVE__WATCH__IDLE_PROBE_S": "0",
    "PAGEMILL_SERVE__WATCH__BACKOFF_FIRST_S": "0.1",
}


@pytest.fixture(scope="module")
def vllm() -> Path:
    """The vllm executable that PAGEMILL_VLLM names."""
    named = os.environ.get("PAGEMILL_VLLM")
    if named is None:
        pytest.skip("PAGEMILL_VLLM names no vllm executable: see tests/vllm/install.sh")
    return Path(named)


@pytest.fixture(scope="module")
def tiny_model(vllm: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of LightOnOCR's architecture that answers every page alike."""
    folder = tmp_path_factory.mktemp("tiny") / "LightOnOCR-2-1B"
    subprocess.run([vllm.parent / "python", ROOT / "vllm" / "make_tiny_model.py", folder], check=True)
    return folder


class Serve:
    """A running `pagemill serve --json`, and what it has told so far."""

    def __init__(self, vllm: Path, model: Path, log: Path) -> None:
        self.log = log
        self.events: list[dict[str, Any]] = []
        arguments = ["--model", model, "--vllm", vllm, "--device", "cpu", "--port", "auto", "--log-file", log, "--json"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pagemill", "serve", *arguments, "--", *FLAGS],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **ENVIRONMENT},
        )
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.events.append(json.loads(line))

    def count(self, name: str, **fields: Any) -> int:
        """How many events of a kind there were."""
        return sum(e["event"] == name and all(e[k] == v for k, v in fields.items()) for e in self.events)

    def wait(self, condition: Callable[[], bool], seconds: float = 400) -> None:
        """Waits for something to happen."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert self.process.poll() is None, self.events
            assert time.monotonic() < deadline, self.events
            time.sleep(0.1)

    def wait_ready(self, times: int) -> None:
        """Waits until it has become ready so many times."""
        self.wait(lambda: self.count("state_changed", state="ready") == times)

    @property
    def url(self) -> str:
        """Where clients find it."""
        return str(next(event["url"] for event in self.events if event.get("state") == "ready"))

    def engine_pid(self) -> int:
        """Process id of the engine that runs now."""
        records = [json.loads(line) for line in self.log.read_text().splitlines()]
        return int([record["pid"] for record in records if record.get("process") == "EngineCore"][-1])

    def page(self) -> tuple[int, str]:
        """Has a page read; gives the status and why the answer ended. Status 0 is a broken connection."""
        url = "data:image/png;base64," + base64.b64encode(draw_page(CANARY_LINES, 1190, 1540)).decode()
        content = [{"type": "image_url", "image_url": {"url": url}}]
        body = {"model": "lightonocr", "messages": [{"role": "user", "content": content}], "max_tokens": 1000}
        request = urllib.request.Request(
            f"{self.url}/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=300) as response:
                return response.status, json.load(response)["choices"][0]["finish_reason"]
        except urllib.error.HTTPError as error:
            with error:
                return error.code, ""
        except OSError:
            return 0, ""


@pytest.fixture(scope="module")
def serve(vllm: Path, tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """One server for the tests of this file, which stand in the order in which they use it."""
    server = Serve(vllm, tiny_model, tmp_path_factory.mktemp("serve") / "log.jsonl")
    try:
        yield server
    finally:
        server.process.send_signal(signal.SIGINT)
        server.process.send_signal(signal.SIGINT)
        server.process.wait(60)
        server.reader.join(10)
        assert server.process.stdout is not None
        server.process.stdout.close()


def test_it_becomes_ready_and_reads_pages(serve: Serve) -> None:
    serve.wait_ready(1)
    assert serve.page() == (200, "stop")
    phases = [event["phase"] for event in serve.events if event["event"] == "start_progress"]
    assert "model found (LightOnOCRForConditionalGeneration)" in phases
    assert serve.count("restarting") == 0


def test_a_killed_engine_is_restarted_and_reads_again(serve: Serve) -> None:
    with ThreadPoolExecutor() as pool:
        page = pool.submit(serve.page)
        time.sleep(0.5)
        os.kill(serve.engine_pid(), signal.SIGKILL)
        assert page.result()[0] in (0, 500)
    serve.wait_ready(2)
    restart = next(event for event in serve.events if event["event"] == "restarting")
    assert "status 0" in restart["reason"]
    assert restart["error"]["kind"] == "model_error"
    assert serve.page() == (200, "stop")


def test_a_hung_engine_is_found_and_restarted(serve: Serve) -> None:
    with ThreadPoolExecutor() as pool:
        engine = serve.engine_pid()
        os.kill(engine, signal.SIGSTOP)
        page = pool.submit(serve.page)
        serve.wait(lambda: serve.count("restarting") == 2)
        assert page.result()[0] in (0, 500)
    assert "hung" in [event for event in serve.events if event["event"] == "restarting"][-1]["reason"]
    serve.wait_ready(3)
    assert serve.page() == (200, "stop")
    assert not Path(f"/proc/{engine}/exe").exists()


def test_sigterm_lets_pages_in_flight_finish(serve: Serve) -> None:
    with ThreadPoolExecutor() as pool:
        pages = [pool.submit(serve.page) for _ in range(4)]
        time.sleep(1.0)
        serve.process.send_signal(signal.SIGTERM)
        assert [page.result() for page in pages] == [(200, "stop")] * 4
    assert serve.process.wait(120) == 0
    serve.reader.join(10)
    assert serve.events[-1]["state"] == "stopped"


def test_a_folder_without_weights_shows_the_first_error(
    vllm: Path, tiny_model: Path, tmp_path: Path, run_cli: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    for file in tiny_model.iterdir():
        if file.suffix != ".safetensors":
            (tmp_path / file.name).write_bytes(file.read_bytes())
    arguments = ("--model", tmp_path, "--vllm", vllm, "--device", "cpu", "--port", "auto", "--", *FLAGS)
    done = run_cli("serve", *arguments, **ENVIRONMENT)
    assert done.returncode == 2
    last = " ".join(done.stderr.splitlines()[-3:])
    assert "Cannot find any model weights" in last
    assert "[load]" in last
    assert "Traceback" not in last
