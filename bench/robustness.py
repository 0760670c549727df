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
import time
from pathlib import Path
from typing import Any

from memory import MemorySampler

LIMIT_MB = 1536
FINE = {"success", "partial_success"}


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
    problems: list[tuple[str, str, dict[str, Any] | None]] = []
    with tempfile.TemporaryDirectory() as scratch:
        ends, memory, seconds, status = convert(arguments.data, Path(scratch) / "plain", arguments.engine, [])
        problems += [
            (entry["path"], entry["expected_outcome"], ends.get(entry["path"]))
            for entry in manifest
            if not outcome_fits(entry["expected_outcome"], ends.get(entry["path"]))
        ]
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
