"""`pagemill serve` with a real vLLM on the CPU and a tiny model.

tests/vllm/install.sh makes the environment whose executable PAGEMILL_VLLM names.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from vllm_server import ENVIRONMENT, FLAGS, Serve

pytestmark = [pytest.mark.slow, pytest.mark.vllm, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def serve(vllm: Path, tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """One server for the tests of this file, which stand in the order in which they use it."""
    server = Serve(vllm, tiny_model, tmp_path_factory.mktemp("serve") / "log.jsonl")
    try:
        yield server
    finally:
        server.close()


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
