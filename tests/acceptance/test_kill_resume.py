"""Killed at random moments, again and again: every page is there, once, as if nothing had happened."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

KILLS = 30
DOCUMENTS = 4
PAGES = 80
IN_FLIGHT = 2
MOST_PAGES = 6  # between two kills

MakePdf = Callable[..., Path]

pytestmark = pytest.mark.slow


class Runs:
    """Starts the command line on one input folder and counts what its engine finished."""

    def __init__(self, tmp_path: Path, plugin_path: Path, source: Path, delay_s: float) -> None:
        self.source = source
        self.log = tmp_path / "recognised.log"
        self.log.touch()
        self._env = {
            **os.environ,
            "PYTHONPATH": str(plugin_path),
            "OTHEROCR_LOG": str(self.log),
            "PAGEMILL_ENGINE__OPTIONS": f'{{"delay_s": {delay_s}, "max_in_flight": {IN_FLIGHT}}}',
        }

    def start(self, out: Path) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "pagemill", "convert", str(self.source), "-o", str(out), "--engine", "fake", "-q"],
            env=self._env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            # Shells start background jobs, a test run among them, with SIGINT ignored, and children inherit that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
        )

    def finish(self, out: Path) -> None:
        process = self.start(out)
        _, errors = process.communicate(timeout=240)
        assert process.returncode == 0, errors.decode()

    def recognised(self) -> int:
        return len(self.log.read_text().split())


def outputs(out: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in sorted(out.rglob("*"))
        if path.is_file() and ".pagemill" not in path.parts
    }


@pytest.fixture
def runs(tmp_path: Path, plugin_path: Path, make_pdf: MakePdf) -> Runs:
    for number in range(DOCUMENTS):
        make_pdf(tmp_path / "in" / f"{number}.pdf", PAGES, text=f"document {number}")
    return Runs(tmp_path, plugin_path, tmp_path / "in", delay_s=0.05)


@pytest.mark.timeout(600)
def test_kill_nine_at_random_moments_loses_and_doubles_nothing(tmp_path: Path, runs: Runs) -> None:
    dice = random.Random(20261201)
    out = tmp_path / "out"
    kills = 0
    while kills < KILLS:
        # By pages and not by the clock alone: how many are read in a second depends on the machine.
        enough = runs.recognised() + dice.randrange(MOST_PAGES + 1)
        process = runs.start(out)
        time.sleep(dice.uniform(0.0, 0.6))
        while runs.recognised() < enough and process.poll() is None:
            time.sleep(0.005)
        assert process.poll() is None, "the run ended before it could be killed: more pages are needed"
        process.send_signal(signal.SIGKILL)
        process.communicate()
        kills += 1
    assert runs.recognised() > KILLS
    runs.finish(out)
    # A page that was recognised and not yet stored when the kill came is done again; no other is.
    assert runs.recognised() <= DOCUMENTS * PAGES + KILLS * IN_FLIGHT
    undisturbed = tmp_path / "undisturbed"
    runs.finish(undisturbed)
    assert outputs(out) == outputs(undisturbed)
    for number in range(DOCUMENTS):
        text = (out / f"{number}.md").read_text()
        positions = [text.find(f"<!-- page {page} -->") for page in range(1, PAGES + 1)]
        assert -1 not in positions
        assert positions == sorted(positions)
        assert text.count("<!-- page ") == PAGES


@pytest.mark.timeout(600)
def test_two_runs_at_once_recognise_each_page_once(tmp_path: Path, runs: Runs) -> None:
    out = tmp_path / "out"
    both = [runs.start(out) for _ in range(2)]
    for process in both:
        _, errors = process.communicate(timeout=240)
        assert process.returncode == 0, errors.decode()
    assert runs.recognised() == DOCUMENTS * PAGES
    undisturbed = tmp_path / "undisturbed"
    runs.finish(undisturbed)
    assert outputs(out) == outputs(undisturbed)


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_stopped_in_good_order_says_how_to_go_on(tmp_path: Path, runs: Runs, stop: signal.Signals) -> None:
    process = runs.start(tmp_path / "out")
    while not runs.recognised():
        time.sleep(0.05)
    process.send_signal(stop)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"run the same command again" in errors
    assert b"Traceback" not in errors
