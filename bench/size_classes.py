"""Do size classes help? Receipts and drawings sent together to a real vLLM, with size classes and without, in one run.

    python bench/size_classes.py --vllm VENV/bin/vllm [--receipts 24] [--every 1.2] [--drawings 24] [--rounds 3]

The server is the CPU build with the tests' tiny model. A folder of drawings is handed in at once, and while they are
read receipts come in one by one. Every round does so twice, once with the classes of the client's defaults and once
with one class for all. Printed: seconds from the coming of a receipt until its text is there (median, p95), and pages a
second over all.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from pagemill.domain import PageImage, SamplingParams
from pagemill.engines.openai import create_engine

ROOT = Path(__file__).resolve().parent.parent
RECEIPT, DRAWING = (400, 980), (1540, 1540)
FIRST_RECEIPT = 1000
ONE_CLASS = [{"name": "all", "share": 1.0}]


def page(index: int, size: tuple[int, int]) -> PageImage:
    noise = np.random.default_rng(index).integers(0, 255, (size[1] // 8, size[0] // 8), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(noise).resize(size).save(buffer, "PNG", compress_level=1)
    return PageImage(index, buffer.getvalue(), "image/png", *size)


async def send(url: str, pages: list[PageImage], every_s: float, options: dict[str, Any]) -> tuple[list[float], float]:
    engine = create_engine({"endpoints": [url], **options})
    await engine.start()
    started = time.perf_counter()
    receipts: list[float] = []

    async def one(image: PageImage) -> None:
        is_receipt = image.width == RECEIPT[0]
        if is_receipt:
            await asyncio.sleep(every_s * (image.index - FIRST_RECEIPT))
        came = time.perf_counter()
        result = await engine.recognize(image, SamplingParams())
        if not result.ok:
            raise SystemExit(f"page {image.index} failed: {result.finish_reason}")
        if is_receipt:
            receipts.append(time.perf_counter() - came)

    await asyncio.gather(*map(one, pages))
    seconds = time.perf_counter() - started
    await engine.aclose()
    return receipts, len(pages) / seconds


def report(name: str, runs: list[tuple[list[float], float]]) -> None:
    medians = [statistics.median(times) for times, _ in runs]
    p95 = [float(np.percentile(times, 95)) for times, _ in runs]
    rates = [rate for _, rate in runs]
    cells = [
        f"{statistics.median(values):.2f} ({min(values):.2f}-{max(values):.2f})" for values in (medians, p95, rates)
    ]
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


async def measure(url: str, arguments: argparse.Namespace) -> None:
    window = {"initial": arguments.window, "fixed": True}
    pages = [page(n, DRAWING) for n in range(arguments.drawings)]
    pages += [page(FIRST_RECEIPT + n, RECEIPT) for n in range(arguments.receipts)]
    await send(url, pages[:2], 0.0, {"window": window})
    found: dict[str, list[tuple[list[float], float]]] = {"classes": [], "one class": []}
    for number in range(arguments.rounds):
        order = list(found) if number % 2 == 0 else list(reversed(found))
        for name in order:
            options = {"window": window, **({"classes": ONE_CLASS} if name == "one class" else {})}
            found[name].append(await send(url, pages, arguments.every, options))
            print(name, f"{found[name][-1][1]:.2f} pages/s", flush=True)
    print("| | receipts, median s | receipts, p95 s | pages/s |\n|---|---|---|---|")
    for name, runs in found.items():
        report(name, runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vllm", type=Path, required=True)
    parser.add_argument("--receipts", type=int, default=24)
    parser.add_argument("--every", type=float, default=1.2)
    parser.add_argument("--drawings", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--window", type=int, default=8)
    arguments = parser.parse_args()
    sys.path.insert(0, str(ROOT / "tests"))
    from vllm_server import Serve, make_tiny_model

    with tempfile.TemporaryDirectory() as folder:
        model = make_tiny_model(arguments.vllm, Path(folder) / "LightOnOCR-2-1B")
        server = Serve(arguments.vllm, model, Path(folder) / "log.jsonl")
        try:
            server.wait_ready(1)
            asyncio.run(measure(server.url, arguments))
        finally:
            server.close()


if __name__ == "__main__":
    main()
