"""Does memory stay flat over a whole conversion? Converts a document of 2,000 pages and records memory over time.

    python bench/long_document.py [--pages 2000] [--engine embedded] [--plot docs/images/memory-conversion.png]

Memory is the proportional set size (PSS) of all processes of the command. Needs reportlab, psutil and matplotlib.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from memory import MemorySampler
from render import make_document

KINDS = ("text", "text", "table", "text", "drawing")
MAX_GROWTH = 0.1
"""Growth of the mean from the second quarter of the run to the last, as a share."""


def convert(pdf: Path, out: Path, engine: str) -> tuple[MemorySampler, list[float], float]:
    """Converts and gives the memory's samples, the times at which pages were done, and the seconds in all."""
    started = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "pagemill", "convert", str(pdf), "-o", str(out), "-e", engine, "--json"],
        stdout=subprocess.PIPE,
        text=True,
    )
    sampler = MemorySampler(process.pid)
    sampler.start()
    assert process.stdout is not None
    done = [time.monotonic() - started for line in process.stdout if json.loads(line)["event"] == "page_finished"]
    process.wait()
    sampler.stop()
    if process.returncode:
        sys.exit(f"the conversion ended with status {process.returncode}")
    return sampler, done, time.monotonic() - started


def growth(samples: list[tuple[float, float]]) -> float:
    """How much higher the mean of the last quarter is than that of the second, as a share."""
    quarter = len(samples) // 4
    second = [mb for _, mb in samples[quarter : 2 * quarter]]
    last = [mb for _, mb in samples[3 * quarter : -1]]
    return (sum(last) / len(last)) / (sum(second) / len(second)) - 1


def plot(sampler: MemorySampler, done: list[float], path: Path) -> None:
    """Draws memory over pages."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    pages = [sum(moment <= seconds for moment in done) for seconds, _ in sampler.samples]
    figure, axes = plt.subplots(figsize=(8, 3.6))
    axes.fill_between(pages, [mb for _, mb in sampler.samples], color="#9fc2e0")
    axes.set(xlabel="pages converted", ylabel="memory of all processes, MB", xlim=(0, len(done)), ylim=(0, None))
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--engine", default="embedded")
    parser.add_argument("--plot", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        pdf = Path(folder) / "long.pdf"
        make_document(pdf, arguments.pages, KINDS)
        sampler, done, seconds = convert(pdf, Path(folder) / "out", arguments.engine)
    grown = growth(sampler.samples)
    print(f"{len(done)} pages in {seconds:.0f} s, {len(done) / seconds:.1f} pages/s")
    print(f"peak {sampler.peak_mb:.0f} MB; last quarter against second quarter {grown:+.1%}")
    if arguments.plot:
        plot(sampler, done, arguments.plot)
    return 1 if grown > MAX_GROWTH else 0


if __name__ == "__main__":
    sys.exit(main())
