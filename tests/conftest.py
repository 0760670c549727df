"""Fixtures for all tests."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

# Fixtures of several folders of tests.
from postgres import postgres  # noqa: F401
from stores import clock, database, open_store, store, store_url  # noqa: F401
from trace_collector import collector  # noqa: F401
from vllm_server import tiny_model, vllm  # noqa: F401

# On a busy machine an example may take any time.
settings.register_profile("pagemill", deadline=None)
settings.load_profile("pagemill")

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def examples() -> Path:
    """The example documents of the repository."""
    return ROOT / "examples"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The collection of real documents; tests that need it are skipped where it is absent."""
    folder = Path(os.environ.get("PAGEMILL_SHARED_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no collection of real documents at {folder}")
    return folder


@pytest.fixture(scope="session")
def make_pdf() -> Callable[..., Path]:
    """Makes a PDF whose pages each carry their number and `text`, the same bytes each time."""
    from reportlab.pdfgen.canvas import Canvas

    def make(path: Path, pages: int = 1, text: str = "sample", size: tuple[float, float] = (300, 400)) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        canvas = Canvas(str(path), pagesize=size, invariant=1)
        for number in range(1, pages + 1):
            canvas.setFont("Helvetica", 16)
            canvas.drawString(40, size[1] - 60, f"{text} page {number}")
            canvas.showPage()
        canvas.save()
        return path

    return make


@pytest.fixture(scope="session")
def plugin_path() -> Path:
    """Folder with an installed package that brings engines: put it on the path of a process."""
    return ROOT / "tests" / "plugins"


@pytest.fixture
def run_cli(plugin_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the command line in a process of its own, with the engines of another package installed."""

    def run(
        *arguments: str | Path, stdin: bytes | None = None, cwd: Path | None = None, **env: str
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "pagemill", *map(str, arguments)],
            input=stdin,
            capture_output=True,
            cwd=cwd,
            env={**os.environ, "PYTHONPATH": str(plugin_path), "COLUMNS": "160", **env},
            timeout=240,
            check=False,
        )
        return subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
        )

    return run
