"""`pagemill convert` on a real vLLM: many pages at once; engines that are killed, hang, stop, or are one of two."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from vllm_server import ENVIRONMENT, FLAGS, Serve

pytestmark = [pytest.mark.slow, pytest.mark.vllm, pytest.mark.timeout(600)]

MakePdf = Callable[..., Path]


@pytest.fixture(scope="module")
def serve(vllm: Path, tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """One server for the tests of this file, which stand in the order in which they use it."""
    server = Serve(vllm, tiny_model, tmp_path_factory.mktemp("serve") / "log.jsonl")
    server.wait_ready(1)
    try:
        yield server
    finally:
        server.close()


class Convert:
    """A running `pagemill convert --json`."""

    def __init__(self, source: Path, output: Path, *urls: str, **options: Any) -> None:
        endpoints = [word for url in urls for word in ("--endpoint", url)]
        self.output = output
        self.errors = ""
        self.pages: list[dict[str, Any]] = []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pagemill", "convert", source, "-o", output, *endpoints, "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PAGEMILL_ENGINE__OPTIONS": json.dumps(options)},
        )

    def read(self, until: int | None = None) -> None:
        """Reads events until so many pages are done, or to the end."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            event = json.loads(line)
            if event["event"] == "page_finished":
                self.pages.append(event)
                if len(self.pages) == until:
                    return

    def finish(self) -> int:
        """Waits for the end; gives the exit status."""
        self.read()
        _, self.errors = self.process.communicate()
        return self.process.returncode

    def check(self, pages: int) -> None:
        """Every page was delivered, whole and once."""
        assert self.finish() == 0, self.errors
        assert sorted(page["page"] for page in self.pages) == list(range(1, pages + 1))
        assert all(page["ok"] for page in self.pages)
        (markdown,) = self.output.glob("*.md")
        text = markdown.read_text()
        assert text.count("# Tiny Page 1") == pages
        assert text.count("Signed in Kraków, 2 May 2024.") == pages


def test_many_pages_at_once_come_back_whole(serve: Serve, make_pdf: MakePdf, tmp_path: Path) -> None:
    Convert(make_pdf(tmp_path / "a.pdf", 24), tmp_path / "out", serve.url).check(24)
    assert serve.count("restarting") == 0


def test_who_stops_a_conversion_frees_the_server(serve: Serve, make_pdf: MakePdf, tmp_path: Path) -> None:
    run = Convert(make_pdf(tmp_path / "a.pdf", 40), tmp_path / "out", serve.url)
    run.read(until=2)
    run.process.send_signal(signal.SIGINT)
    assert run.finish() == 130
    serve.wait(lambda: serve.running() == 0, 30)
    again = Convert(tmp_path / "a.pdf", tmp_path / "out", serve.url)
    assert again.finish() == 0
    assert len(again.pages) <= 40 - 2  # what was done is not done again


def test_an_engine_killed_in_mid_document_costs_no_page(serve: Serve, make_pdf: MakePdf, tmp_path: Path) -> None:
    run = Convert(make_pdf(tmp_path / "a.pdf", 30), tmp_path / "out", serve.url)
    run.read(until=4)
    os.kill(serve.engine_pid(), signal.SIGKILL)
    run.check(30)
    assert serve.count("restarting") == 1


def test_a_server_killed_in_mid_document_costs_no_page(serve: Serve, make_pdf: MakePdf, tmp_path: Path) -> None:
    serve.wait_restarted(1)
    run = Convert(make_pdf(tmp_path / "a.pdf", 30), tmp_path / "out", serve.url)
    run.read(until=4)
    os.kill(serve.server_pid(), signal.SIGKILL)
    run.check(30)
    assert serve.count("restarting") == 2


def test_an_engine_that_hangs_in_mid_document_costs_no_page(serve: Serve, make_pdf: MakePdf, tmp_path: Path) -> None:
    serve.wait_restarted(2)
    run = Convert(make_pdf(tmp_path / "a.pdf", 30), tmp_path / "out", serve.url)
    run.read(until=4)
    os.kill(serve.engine_pid(), signal.SIGSTOP)
    run.check(30)
    assert serve.count("restarting") == 3


def test_of_two_replicas_one_may_die(
    serve: Serve, vllm: Path, tiny_model: Path, make_pdf: MakePdf, tmp_path: Path
) -> None:
    serve.wait_restarted(3)
    other = Serve(vllm, tiny_model, tmp_path / "log.jsonl")
    try:
        other.wait_ready(1)
        run = Convert(make_pdf(tmp_path / "a.pdf", 30), tmp_path / "out", serve.url, other.url)
        run.read(until=4)
        # Its guardian ends what its supervisor leaves behind.
        other.process.send_signal(signal.SIGKILL)
        run.check(30)
        assert serve.count("restarting") == 3
    finally:
        other.close()


def test_a_server_that_is_stopped_finishes_its_pages_and_cuts_none(
    serve: Serve, make_pdf: MakePdf, tmp_path: Path
) -> None:
    run = Convert(make_pdf(tmp_path / "a.pdf", 40), tmp_path / "out", serve.url, outage_timeout_s=3)
    run.read(until=4)
    serve.process.send_signal(signal.SIGTERM)
    assert run.finish() == 3
    assert serve.process.wait(120) == 0
    done = [page for page in run.pages if page["ok"]]
    assert 4 <= len(done) < 40
    assert {page["error"]["code"] for page in run.pages if not page["ok"]} == {"engine_unavailable"}
    text = (tmp_path / "out" / "a.md").read_text()
    assert text.count("# Tiny Page 1") == text.count("Signed in Kraków, 2 May 2024.") == len(done)


def test_a_server_of_ones_own_is_started_and_stopped(
    vllm: Path, tiny_model: Path, make_pdf: MakePdf, tmp_path: Path, run_cli: Callable[..., Any]
) -> None:
    settings = {
        **ENVIRONMENT,
        "PAGEMILL_SERVE__DEVICE": "cpu",
        "PAGEMILL_SERVE__VLLM": str(vllm),
        "PAGEMILL_SERVE__EXTRA_ARGS": json.dumps(FLAGS),
    }
    pdf = make_pdf(tmp_path / "a.pdf", 3)
    done = run_cli("convert", pdf, "-o", tmp_path / "out", "--engine", "vllm", "--model", tiny_model, **settings)
    assert done.returncode == 0, done.stderr
    assert f"Engine: {tiny_model} on vLLM" in done.stderr
    assert "the server is up" in done.stderr
    assert (tmp_path / "out" / "a.md").read_text().count("# Tiny Page 1") == 3
    listing = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert not any(str(tiny_model) in line and str(vllm) in line for line in listing.splitlines())
