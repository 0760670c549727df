"""The gateway and its keys from the command line, as processes of their own."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from gateway_process import PLUGINS, GatewayProcess, free_port

pytestmark = pytest.mark.slow

MakePdf = Callable[..., Path]


@pytest.fixture
def pdf(make_pdf: MakePdf, tmp_path: Path) -> bytes:
    return make_pdf(tmp_path / "a.pdf", pages=4).read_bytes()


@contextlib.contextmanager
def started(folder: Path, *arguments: str, **settings: str) -> Iterator[tuple[GatewayProcess, subprocess.Popen[bytes]]]:
    """A gateway that is ready, with its process; killed at the end unless it has ended."""
    port = free_port()
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(PLUGINS), os.environ.get("PYTHONPATH", "")]),
        "PAGEMILL_ENGINE__NAME": "fake",
        "PAGEMILL_CONVERSION__RENDER_WORKERS": "1",
        "PAGEMILL_GATEWAY__DATA": str(folder / "data"),
        **{f"PAGEMILL_{name}": value for name, value in settings.items()},
    }
    service = GatewayProcess(folder, environment, port)
    command = [sys.executable, "-m", "pagemill", "gateway", "--port", str(port), *arguments]
    with (
        service.log.open("ab") as log,
        subprocess.Popen(command, stdout=log, stderr=log, env=environment) as process,
    ):
        try:
            wait_for(lambda: process.poll() is not None or is_ready(service))
            assert process.poll() is None, service.log.read_text()
            yield service, process
        finally:
            below = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
            process.kill()
            for child in below:
                with contextlib.suppress(psutil.NoSuchProcess):
                    child.kill()


def is_ready(service: GatewayProcess) -> bool:
    with contextlib.suppress(OSError):
        return service.call("GET", "/health/ready").status == 200
    return False


def wait_for(condition: Callable[[], object]) -> None:
    while not condition():
        time.sleep(0.05)


def workers_of(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    return [child for child in psutil.Process(process.pid).children() if "gateway" in child.cmdline()]


def test_one_line_says_where_it_is_with_what_and_for_whom(tmp_path: Path) -> None:
    with started(tmp_path) as (service, _):
        wait_for(lambda: "Ready: " in service.log.read_text())
        line = service.log.read_text().splitlines()[0]
        assert f"http://127.0.0.1:{service.port}" in line
        assert "Engine: fake" in line
        assert "keys: not asked for" in line


def test_keys_are_made_listed_used_and_withdrawn(tmp_path: Path) -> None:
    with started(tmp_path, GATEWAY__AUTH="required") as (service, _):
        key = service.make_key("alice")
        admin = service.make_key("root", "--admin")
        assert service.call("GET", "/v1/jobs").status == 401
        assert service.call("GET", "/v1/jobs", key=key).status == 200
        listed = service.cli("keys", "list")
        assert re.search(r"^key_[0-9a-f]{16} +alice ", listed, re.MULTILINE), listed
        assert "root" in listed
        assert key not in listed
        service.cli("keys", "revoke", "alice")
        assert service.call("GET", "/v1/jobs", key=key).status == 401
        assert service.call("GET", "/v1/jobs", key=admin).status == 200


def test_a_port_that_is_taken_is_told_and_nothing_else(tmp_path: Path) -> None:
    with started(tmp_path) as (service, _):
        done = subprocess.run(
            [sys.executable, "-m", "pagemill", "gateway", "--port", str(service.port)],
            env=service.environment,
            capture_output=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 2
        assert str(service.port).encode() in done.stderr
        assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("processes", ["1", "2"])
def test_sigterm_ends_it_in_order_and_the_next_one_goes_on(tmp_path: Path, pdf: bytes, processes: str) -> None:
    slow = {"ENGINE__OPTIONS": '{"delay_s": 1000}', "GATEWAY__DRAIN_S": "0"}
    with started(tmp_path, "--processes", processes, **slow) as (service, process):
        job = service.upload(pdf).json
        wait_for(lambda: service.call("GET", job["links"]["self"]).json["status"] == "running")
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    # With an hour until the lease runs out, only work that was handed back is done now.
    with started(tmp_path, GATEWAY__STORE__LEASE_S="3600") as (service, _):
        assert service.ended(job["id"])["outcome"] == "success"


def test_a_second_signal_does_not_wait_for_work(tmp_path: Path, pdf: bytes) -> None:
    slow = {"ENGINE__OPTIONS": '{"delay_s": 1000}', "GATEWAY__DRAIN_S": "1000"}
    with started(tmp_path, **slow) as (service, process):
        job = service.upload(pdf).json
        wait_for(lambda: service.call("GET", job["links"]["self"]).json["status"] == "running")
        process.send_signal(signal.SIGINT)
        wait_for(lambda: service.call("GET", "/health/ready").status == 503)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    with started(tmp_path, GATEWAY__STORE__LEASE_S="3600") as (service, _):
        assert service.ended(job["id"])["outcome"] == "success"


def test_processes_share_everything_and_one_that_is_killed_is_replaced(tmp_path: Path, pdf: bytes) -> None:
    with started(tmp_path, "--processes", "2", "--log-level", "error", GATEWAY__STORE__LEASE_S="2") as (
        service,
        parent,
    ):
        wait_for(lambda: len(workers_of(parent)) == 2)
        jobs = [service.upload(pdf).json["id"] for _ in range(6)]
        victim = workers_of(parent)[0]
        victim.kill()
        for job in jobs:
            with contextlib.suppress(OSError):
                assert service.call("GET", f"/v1/jobs/{job}").status == 200
        wait_for(lambda: len(workers_of(parent)) == 2 and victim.pid not in [one.pid for one in workers_of(parent)])
        assert [service.ended(job)["outcome"] for job in jobs] == ["success"] * 6
        seen = [service.call("GET", "/metrics").body.decode() for _ in range(4)]
        assert all("pagemill_pages_total" in text for text in seen)
        parent.send_signal(signal.SIGTERM)
        assert parent.wait(60) == 0


def test_when_the_first_process_is_killed_the_others_stop_by_themselves(tmp_path: Path) -> None:
    with started(tmp_path, "--processes", "2") as (_, parent):
        wait_for(lambda: len(workers_of(parent)) == 2)
        workers = workers_of(parent)
        parent.kill()
        _, alive = psutil.wait_procs(workers, timeout=60)
        assert not alive


def test_wrong_settings_end_all_processes(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pagemill", "gateway", "--port", "0", "--processes", "2"],
        env={
            **os.environ,
            "PAGEMILL_GATEWAY__DATA": str(tmp_path / "data"),
            "PAGEMILL_GATEWAY__DATABASE": "mysql://somewhere/else",
            "PAGEMILL_ENGINE__NAME": "fake",
            "PYTHONPATH": os.pathsep.join([str(PLUGINS), os.environ.get("PYTHONPATH", "")]),
        },
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2
    assert b"mysql" in done.stderr
