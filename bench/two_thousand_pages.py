"""Does memory stay flat? Renders a document of 2,000 pages with text layers and records resident memory over time.

    python bench/two_thousand_pages.py --csv memory.csv --plot docs/images/memory-2000-pages.png

Needs reportlab, psutil and, for the plot, matplotlib.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import psutil
from render import make_document

from pagemill.documents import RenderOptions, RenderPool
from pagemill.domain import DocumentSource, Page

MIB = 1024**2
KINDS = ("text", "text", "table", "text", "drawing")
INTERVAL_S = 0.25
MAX_SLOPE = 10.0
"""MiB per 1,000 pages that the sum may grow by over the second half; sampling alone makes it swing by 6."""


@dataclass(frozen=True)
class Sample:
    """Resident memory at one moment, in MiB."""

    seconds: float
    pages: int
    parent: float
    workers: float


class Recorder:
    """Samples memory while pages are rendered."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self.pages = 0
        self._started = time.perf_counter()
        self._parent = psutil.Process()

    def sample(self) -> None:
        """Takes one sample."""
        workers = 0
        for child in self._parent.children(recursive=True):
            try:
                workers += child.memory_info().rss
            except psutil.NoSuchProcess:  # recycled between the listing and the question
                continue
        parent = self._parent.memory_info().rss
        self.samples.append(Sample(time.perf_counter() - self._started, self.pages, parent / MIB, workers / MIB))

    async def run(self) -> None:
        """Samples until cancelled."""
        while True:
            self.sample()
            await asyncio.sleep(INTERVAL_S)


async def render_all(path: Path, workers: int, options: RenderOptions) -> list[Sample]:
    """Renders every page once, a few pages ahead of the processes, and gives the samples."""
    recorder = Recorder()
    window = asyncio.Semaphore(3 * workers)
    source = DocumentSource(path, path.name)
    async with RenderPool(options, workers=workers) as pool:
        sampling = asyncio.create_task(recorder.run())

        async def render(page: Page) -> None:
            try:
                await pool.render(source, page, text_layer=True)
                recorder.pages += 1
            finally:
                window.release()

        tasks = []
        for page in (await pool.inspect(source)).pages:
            await window.acquire()
            tasks.append(asyncio.create_task(render(page)))
        await asyncio.gather(*tasks)
        recorder.sample()
        sampling.cancel()
    return recorder.samples


def slope(samples: Sequence[Sample]) -> float:
    """Growth of all memory in MiB per 1,000 pages, by least squares over the second half of the pages."""
    half = [sample for sample in samples if sample.pages >= samples[-1].pages / 2]
    xs = [sample.pages / 1000 for sample in half]
    ys = [sample.parent + sample.workers for sample in half]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    spread = sum((x - mean_x) ** 2 for x in xs)
    return sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / spread if spread else 0.0


def plot(samples: Sequence[Sample], path: Path) -> None:
    """Draws memory over pages."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 3.6))
    pages = [sample.pages for sample in samples]
    axes.stackplot(
        pages,
        [sample.parent for sample in samples],
        [sample.workers for sample in samples],
        labels=("main process", "render processes"),
        colors=("#345995", "#9fc2e0"),
    )
    axes.set(xlabel="pages rendered", ylabel="resident memory, MiB", xlim=(0, max(pages)), ylim=(0, None))
    axes.legend(loc="upper left", bbox_to_anchor=(0, 1.15), ncols=2, frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def main() -> int:
    """Runs the benchmark and prints its figures; fails when memory grows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--recycle", type=int, default=RenderOptions().recycle_after_pages)
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--plot", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "long.pdf"
        make_document(path, arguments.pages, KINDS)
        started = time.perf_counter()
        options = RenderOptions(recycle_after_pages=arguments.recycle)
        samples = asyncio.run(render_all(path, arguments.workers, options))
        seconds = time.perf_counter() - started
    growth = slope(samples)
    print(f"{samples[-1].pages} of {arguments.pages} pages in {seconds:.0f} s, {arguments.pages / seconds:.1f} pages/s")
    print(
        f"parent {max(s.parent for s in samples):.0f} MiB, processes {max(s.workers for s in samples):.0f} MiB at most"
    )
    print(f"peak of the parent {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
    print(f"growth over the second half: {growth:+.2f} MiB per 1,000 pages")
    if arguments.csv:
        with arguments.csv.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(field.name for field in fields(Sample))
            writer.writerows([f"{value:.2f}" for value in astuple(sample)] for sample in samples)
    if arguments.plot:
        plot(samples, arguments.plot)
    return 0 if growth < MAX_SLOPE else 1


if __name__ == "__main__":
    sys.exit(main())
