"""Converts a collection of broken, odd and hostile files in one run and checks what became of each.

    python bench/robustness.py [--data ../shared/data/robustness] [--engine embedded] [--json FILE]

The collection's manifest.jsonl names for each file the outcome that is expected (`ok`, `error`, `ok_or_error`), and for
some a password. Memory is the proportional set size (PSS) of all processes of the run, sampled twice a second.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import psutil

LIMIT_MB = 1536
FINE = {"success", "partial_success"}


class MemorySampler(threading.Thread):
    """Samples the memory of a process and all its descendants."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid = pid
        self._stop_wanted = threading.Event()
        self.samples: list[tuple[float, float]] = []

    def run(self) -> None:
        started = time.monotonic()
        while not self._stop_wanted.wait(0.5):
            self.samples.append((time.monotonic() - started, tree_pss_mb(self._pid)))

    def stop(self) -> None:
        self._stop_wanted.set()
        self.join()

    @property
    def peak_mb(self) -> float:
        return max((mb for _, mb in self.samples), default=0.0)


def tree_pss_mb(pid: int) -> float:
    """PSS in MB of a process and its descendants; 0 once it is gone."""
    try:
        process = psutil.Process(pid)
        family = [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0.0
    total = 0
    for member in family:
        try:
            total += member.memory_full_info().pss
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return total / 2**20


def convert(data: Path, out: Path, engine: str, extra: list[str]) -> tuple[dict[str, Any], MemorySampler, float, int]:
    """Runs the command; gives the end of each document by name, memory, seconds and exit status."""
    started = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "pagemill", "convert", str(data), "-o", str(out), "-e", engine, "--json", *extra],
        stdout=subprocess.PIPE,
        text=True,
    )
    sampler = MemorySampler(process.pid)
    sampler.start()
    ends = {}
    assert process.stdout is not None
    for line in process.stdout:
        event = json.loads(line)
        if event["event"] == "document_finished":
            ends[event["document"]] = event
    process.wait()
    sampler.stop()
    return ends, sampler, time.monotonic() - started, process.returncode


def outcome_fits(expected: str, event: dict[str, Any] | None) -> bool:
    """Whether a document ended as expected; an error without a code never does."""
    if event is None:
        return False
    good = event["status"] in FINE
    if not good and event["error"] is not None and event["error"]["code"] == "error":
        return False
    return expected not in ("ok", "error") or (expected == "ok") == good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data/robustness"))
    parser.add_argument("--engine", default="embedded")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    manifest = [json.loads(line) for line in (arguments.data / "manifest.jsonl").read_text().splitlines()]
    problems = []
    with tempfile.TemporaryDirectory() as scratch:
        ends, memory, seconds, status = convert(arguments.data, Path(scratch) / "plain", arguments.engine, [])
        for entry in manifest:
            if not outcome_fits(entry["expected_outcome"], ends.get(entry["path"])):
                problems.append((entry["path"], entry["expected_outcome"], ends.get(entry["path"])))
        book = Path(scratch) / "passwords.txt"
        locked = [entry for entry in manifest if entry.get("password")]
        book.write_text("".join(f"{entry['path']}\t{entry['password']}\n" for entry in locked), encoding="utf-8")
        unlocked, _, _, _ = convert(
            arguments.data, Path(scratch) / "unlocked", arguments.engine, ["--password-file", str(book), "--pages", "1"]
        )
        for entry in locked:
            expected = entry.get("expected_outcome_with_password", "ok").split(" ")[0]
            if not outcome_fits(expected, unlocked.get(entry["path"])):
                problems.append((entry["path"] + " (password)", expected, unlocked.get(entry["path"])))
    pages = sum(event["pages"] for event in ends.values())
    report = {
        "files": len(manifest),
        "ended": len(ends),
        "pages": pages,
        "exit_status": status,
        "seconds": round(seconds, 1),
        "peak_pss_mb": round(memory.peak_mb),
        "limit_mb": LIMIT_MB,
        "passwords_tried": len(locked),
        "not_as_expected": [{"file": name, "expected": expected, "event": event} for name, expected, event in problems],
    }
    print(json.dumps(report, indent=2, ensure_ascii=False))
    if arguments.json:
        arguments.json.write_text(json.dumps({**report, "memory": memory.samples}))
    return 0 if not problems and memory.peak_mb < LIMIT_MB and len(ends) == len(manifest) else 1


if __name__ == "__main__":
    sys.exit(main())
