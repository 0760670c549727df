"""`pagemill serve` with a real vLLM on the CPU and the tiny model, as a process of its own."""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pagemill.serving.client import CANARY_LINES, draw_page

ROOT = Path(__file__).resolve().parent
FLAGS = ("--enforce-eager", "--kv-cache-memory-bytes", "268435456")
ENVIRONMENT = {
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
    "PAGEMILL_SERVE__GATEWAY": "false",
    "PAGEMILL_SERVE__WATCH__LIVENESS_INTERVAL_S": "1",
    "PAGEMILL_SERVE__WATCH__PROBE_TIMEOUT_S": "15",
    "PAGEMILL_SERVE__WATCH__IDLE_PROBE_S": "0",
    "PAGEMILL_SERVE__WATCH__BACKOFF_FIRST_S": "0.1",
}


@pytest.fixture(scope="session")
def vllm() -> Path:
    """The vllm executable that PAGEMILL_VLLM names."""
    named = os.environ.get("PAGEMILL_VLLM")
    if not named:
        pytest.skip("PAGEMILL_VLLM names no vllm executable: see tests/vllm/install.sh")
    return Path(named)


@pytest.fixture(scope="session")
def tiny_model(vllm: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of LightOnOCR's architecture that answers every page alike."""
    return make_tiny_model(vllm, tmp_path_factory.mktemp("tiny") / "LightOnOCR-2-1B")


def make_tiny_model(vllm: Path, folder: Path, *title: str) -> Path:
    """Writes a tiny model; with another title its pages can be told from those of others."""
    subprocess.run([vllm.parent / "python", ROOT / "vllm" / "make_tiny_model.py", folder, *title], check=True)
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

    def wait_restarted(self, times: int) -> None:
        """Waits until it has been restarted so many times and is ready again."""
        self.wait(lambda: self.count("restarting") == times and self.events[-1].get("state") == "ready")

    def wait_ready(self, times: int) -> None:
        """Waits until it has become ready so many times."""
        self.wait(lambda: self.count("state_changed", state="ready") == times)

    @property
    def url(self) -> str:
        """Where clients find it."""
        return str(next(event["url"] for event in self.events if event.get("state") == "ready"))

    def engine_pid(self) -> int:
        """Process id of the engine that runs now."""
        return self._pid_of("EngineCore")

    def server_pid(self) -> int:
        """Process id of the server that runs now, which is that of its group."""
        return self._pid_of("APIServer")

    def _pid_of(self, name: str) -> int:
        records = [json.loads(line) for line in self.log.read_text().splitlines()]
        return int([record["pid"] for record in records if record.get("process") == name][-1])

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

    def running(self) -> float:
        """Pages that the engine works on, as its metrics say."""
        with urllib.request.urlopen(f"{self.url.removesuffix('/v1')}/metrics", timeout=60) as response:
            text = response.read().decode()
        return sum(map(float, re.findall(r"^vllm:num_requests_(?:running|waiting)\{.*\} (\S+)$", text, re.MULTILINE)))

    def close(self) -> None:
        """Stops it at once."""
        self.process.send_signal(signal.SIGINT)
        self.process.send_signal(signal.SIGINT)
        self.process.wait(60)
        self.reader.join(10)
        assert self.process.stdout is not None
        self.process.stdout.close()
