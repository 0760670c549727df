"""`pagemill serve` and `pagemill convert` on a real GPU: start, throughput, an engine killed, an engine hung, a drain.

    python bench/full_size_model.py MODEL --tokens 950
    python bench/gpu_service.py MODEL --vllm VENV/bin/vllm --pdf PAGES.pdf [--pages 1200] [--json FILE] [-- FLAGS]

Without --pdf a PDF of so many different A4 pages is made (needs reportlab). FLAGS go to vllm serve. Each part says how
many pages came back whole; the throughput part also how busy the GPU was.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PAGEMILL = [sys.executable, "-m", "pagemill"]


def make_pdf(path: Path, pages: int) -> None:
    from reportlab.lib.pagesizes import A4
    from reportlab.pdfgen.canvas import Canvas

    rng = random.Random(1)
    canvas = Canvas(str(path), pagesize=A4, pageCompression=1)
    for number in range(1, pages + 1):
        canvas.setFont("Helvetica", 10)
        canvas.drawString(60, 790, f"Page {number}")
        for line in range(52):
            words = " ".join("".join(rng.choices("abcdefghiklmnoprstuvw", k=rng.randint(2, 9))) for _ in range(13))
            canvas.drawString(60, 765 - 14 * line, words[:90])
        canvas.showPage()
    canvas.save()


class Serve:
    """A running `pagemill serve`, with its events."""

    def __init__(self, arguments: argparse.Namespace, folder: Path) -> None:
        self.events: list[dict[str, Any]] = []
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            [
                *PAGEMILL,
                *("serve", "--no-gateway", "--json", "--model", str(arguments.model), "--port", "auto"),
                *("--vllm", str(arguments.vllm), "--log-file", str(folder / "vllm.jsonl")),
                *(["--", *arguments.flags] if arguments.flags else []),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            event = json.loads(line)
            self.events.append({**event, "at": time.monotonic() - self.started})
            print("   ", line.rstrip()[:300], flush=True)

    def wait_ready(self, count: int, timeout_s: float = 400) -> str:
        """Waits until the server has become ready for the count-th time; gives its URL."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline and self.process.poll() is None:
            ready = [e for e in self.events if e["event"] == "state_changed" and e.get("state") == "ready"]
            if len(ready) >= count:
                return str(ready[count - 1]["url"])
            time.sleep(0.2)
        raise SystemExit("the server did not become ready")

    def engine_pid(self) -> int:
        """The process that holds the GPU."""
        listing = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout
        for line in listing.splitlines():
            pid, _, args = line.strip().partition(" ")
            if "EngineCore" in args:
                return int(pid)
        raise SystemExit("no engine process")


@contextlib.contextmanager
def gpu_busy() -> Iterator[list[float]]:
    """Samples how busy the GPU is, in per cent."""
    samples: list[float] = []
    stop = threading.Event()

    def sample() -> None:
        if shutil.which("nvidia-smi") is None:
            return
        query = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]
        while not stop.wait(0.5):
            text = subprocess.run(query, capture_output=True, text=True, check=False).stdout.split()
            samples.extend(float(value) for value in text[:1])

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield samples
    finally:
        stop.set()
        thread.join()


def convert(pdf: Path, url: str, out: Path, pages: str, after: dict[int, Any] | None = None) -> dict[str, Any]:
    """Converts pages of the PDF; calls `after[n]()` once n pages are done."""
    started = time.monotonic()
    process = subprocess.Popen(
        [*PAGEMILL, "convert", str(pdf), "-o", str(out), "--endpoint", url, "--pages", pages, "--json"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    times: list[float] = []
    bad = 0
    for line in process.stdout:
        event = json.loads(line)
        if event.get("event") == "page_finished":
            times.append(time.monotonic() - started)
            bad += not event.get("ok", True)
            action = (after or {}).pop(len(times), None)
            if action is not None:
                action()
    status = process.wait()
    total = time.monotonic() - started
    middle = times[len(times) // 5 : -max(1, len(times) // 5)]
    steady = (len(middle) - 1) / (middle[-1] - middle[0]) if len(middle) > 2 else 0.0
    gaps = [after - before for before, after in itertools.pairwise(times)]
    return {
        "pages": len(times),
        "bad": bad,
        "status": status,
        "seconds": round(total, 1),
        "pages_per_s": round(len(times) / total, 2),
        "steady_pages_per_s": round(steady, 2),
        "longest_gap_s": round(max(gaps, default=0.0), 1),
    }


def measure(arguments: argparse.Namespace, serve: Serve, pdf: Path, folder: Path) -> dict[str, Any]:
    """Runs the parts that were asked for."""
    results: dict[str, Any] = {}
    parts = arguments.parts.split(",")
    few = f"1-{max(1, arguments.pages // 4)}"
    url = serve.wait_ready(1)
    results["ready_after_s"] = round(time.monotonic() - serve.started, 1)
    ready = 1
    if "throughput" in parts:
        with gpu_busy() as busy:
            results["throughput"] = convert(pdf, url, folder / "a", f"1-{arguments.pages}")
        results["throughput"]["gpu_busy_median"] = statistics.median(busy) if busy else None
    for part, sign in (("killed", signal.SIGKILL), ("hung", signal.SIGSTOP)):
        if part in parts:
            url = serve.wait_ready(ready)
            ready += 1
            strike = {40: lambda sign=sign: os.kill(serve.engine_pid(), sign)}
            results[part] = convert(pdf, url, folder / part, few, strike)
    if "drain" in parts:
        url = serve.wait_ready(ready)
        os.environ["PAGEMILL_ENGINE__OPTIONS"] = json.dumps({"outage_timeout_s": 5})
        results["drain"] = convert(
            pdf, url, folder / "drain", few, {40: lambda: serve.process.send_signal(signal.SIGTERM)}
        )
        began = time.monotonic()
        results["drain"]["serve_status"] = serve.process.wait(timeout=120)
        results["drain"]["exit_after_s"] = round(time.monotonic() - began, 1)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--vllm", type=Path, required=True)
    parser.add_argument("--pdf", type=Path)
    parser.add_argument("--pages", type=int, default=1200)
    parser.add_argument("--parts", default="throughput,killed,hung,drain")
    parser.add_argument("--json", type=Path)
    words = sys.argv[1:]
    split = words.index("--") if "--" in words else len(words)
    arguments = parser.parse_args(words[:split])
    arguments.flags = words[split + 1 :]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pdf = arguments.pdf or folder / "pages.pdf"
        if arguments.pdf is None:
            make_pdf(pdf, arguments.pages)
        serve = Serve(arguments, folder)
        try:
            results = measure(arguments, serve, pdf, folder)
        finally:
            if serve.process.poll() is None:
                serve.process.send_signal(signal.SIGTERM)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    serve.process.wait(timeout=90)
            log = folder / "vllm.jsonl"
            if log.exists() and arguments.json:
                (arguments.json.parent / "vllm-tail.jsonl").write_bytes(log.read_bytes()[-400_000:])
    text = json.dumps(results, indent=1)
    print(text)
    if arguments.json:
        arguments.json.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
