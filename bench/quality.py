"""Measures the quality of an engine and writes `docs/quality.md` with its plots and `docs/quality.json`.

Three sets of pages are read: the generated set (`bench/generate_set.py`; made first where it is missing, which needs
`pip install weasyprint`, Pango and the fonts Liberation and Noto CJK), its PDFs, and a collection of real documents
with ground truth, once as they are and once with their text layers hidden, so that every page is read from pixels.

    python bench/quality.py --data ../shared/data/quality --out docs/quality.md
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil
from quality_plots import write_plots
from quality_report import write_report

from pagemill import convert_stream
from pagemill.bench.quality import Sample, load_collection, load_generated, score
from pagemill.conversion import ConversionOptions, FurniturePolicy
from pagemill.conversion.assemble import page_markdown
from pagemill.domain import ConversionResult, PageFlag, PageImage, PageResult, SamplingParams
from pagemill.domain.errors import PagemillError
from pagemill.engines import Engine, create_engine
from pagemill.engines.protocol import EngineCapabilities, EngineHealth
from pagemill.telemetry import configure_logging

HERE = Path(__file__).parent
GENERATED_IMAGES, GENERATED_PDFS = "generated, page images", "generated, PDFs"
REAL_FILES, REAL_IMAGES = "real, as they are", "real, text layers hidden"

WEAK_TRUTHS = {"en_olmo_page1": "its text layer maps letters to other letters"}
"""Ground truths that were found to be bad, and why."""


class PixelsOnly:
    """An engine that never sees a text layer, so that pages are read as scans are.

    Args:
        engine: The engine that does the work.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def name(self) -> str:
        """Name of the engine."""
        return self._engine.name

    @property
    def capabilities(self) -> EngineCapabilities:
        """Those of the engine, without the wish for text layers."""
        return dataclasses.replace(self._engine.capabilities, wants_text_layer=False)

    async def start(self) -> None:
        """Starts the engine."""
        await self._engine.start()

    async def recognize(self, page: PageImage, params: SamplingParams) -> PageResult:
        """Reads the page's pixels."""
        return await self._engine.recognize(dataclasses.replace(page, text_layer=None), params)

    async def health(self) -> EngineHealth:
        """Health of the engine."""
        return await self._engine.health()

    async def aclose(self) -> None:
        """Closes the engine."""
        await self._engine.aclose()


async def read(samples: Sequence[Sample], engine: Engine, work: Path) -> dict[str, Any]:
    """Converts and scores documents; their Markdown is kept in `work` for people to look at."""
    by_path = {sample.path.resolve(): sample for sample in samples}
    documents = []
    started = time.perf_counter()
    stream = convert_stream([str(path) for path in by_path], engine=engine, options=ConversionOptions())
    async for result in stream:
        sample = by_path[result.source.path.resolve()]
        entry = document_entry(sample, result, work)
        documents.append(entry)
        print(f"  {sample.id}: {entry['seconds']:.1f} s", file=sys.stderr)
    return {"wall_s": time.perf_counter() - started, "documents": documents}


def document_entry(sample: Sample, result: ConversionResult, work: Path) -> dict[str, Any]:
    """The score of one conversion as plain data."""
    markdown = "\n\n".join(page_markdown(page, FurniturePolicy.DROP) for page in result.pages)
    full = "\n\n".join(page_markdown(page, FurniturePolicy.KEEP) for page in result.pages)
    (work / f"{sample.id}.md").write_text(markdown, "utf-8")
    problems = [page.error.message for page in result.pages if page.error]
    return {
        **sample_entry(sample),
        "pages": len(result.pages),
        "problems": [str(result.error)] if result.error else problems,
        "seconds": sum(page.duration_s for page in result.pages),
        "flags": sorted({flag.value for page in result.pages for flag in page.flags}),
        "characters": len(markdown),
        "score": dataclasses.asdict(score(markdown, sample.truth, full_markdown=full)),
    }


def read_from_pixels(run: Mapping[str, Any]) -> dict[str, Any]:
    """Documents of a run in which no text layer was used: reading them again would give the same."""
    with_layer = {PageFlag.TEXT_LAYER.value, PageFlag.MIXED.value}
    return {entry["id"]: entry for entry in run["documents"] if with_layer.isdisjoint(entry["flags"])}


def sample_entry(sample: Sample) -> dict[str, Any]:
    return {
        "id": sample.id,
        "category": sample.category,
        "language": sample.truth.language,
        "text_origin": sample.text_origin.value,
        "sanity_only": sample.sanity_only,
    }


def stored_outputs(samples: Sequence[Sample], folder: Path) -> dict[str, Any]:
    """Scores another engine's outputs, `PAGE.md` for each page, and `_stats.json` with seconds a page if any."""
    stats_file = folder / "_stats.json"
    stats = json.loads(stats_file.read_text("utf-8"))["pages"] if stats_file.is_file() else {}
    documents = []
    for sample in samples:
        file = folder / f"{sample.id}.md"
        if file.is_file():
            markdown = file.read_text("utf-8")
            seconds = stats.get(sample.id, {}).get("wall")
            scored = dataclasses.asdict(score(markdown, sample.truth))
            documents.append({**sample_entry(sample), "pages": 1, "problems": [], "seconds": seconds, "score": scored})
    return {"documents": documents}


async def measure(engine_name: str, sets: Mapping[str, Sequence[Sample]], work: Path) -> dict[str, Any]:
    """Reads all sets with one engine."""
    engine = create_engine(engine_name, {})
    pixels = PixelsOnly(engine)
    runs: dict[str, Any] = {}
    await engine.start()
    try:
        for name, samples in sets.items():
            folder = work / name.replace(", ", "-").replace(" ", "-")
            folder.mkdir(parents=True, exist_ok=True)
            known = read_from_pixels(runs[REAL_FILES]) if name == REAL_IMAGES and REAL_FILES in runs else {}
            print(f"{name}: {len(samples) - len(known)} documents", file=sys.stderr)
            reader = pixels if name in (GENERATED_IMAGES, REAL_IMAGES) else engine
            runs[name] = await read([s for s in samples if s.id not in known], reader, folder)
            order = [sample.id for sample in samples]
            runs[name]["documents"] += known.values()
            runs[name]["documents"].sort(key=lambda entry, order=order: order.index(entry["id"]))
    finally:
        await engine.aclose()
    capabilities = engine.capabilities
    return {
        "engine": {
            "name": engine.name,
            "version": capabilities.version,
            "fingerprint": capabilities.fingerprint,
            "pages_at_once": capabilities.max_in_flight,
        },
        "peak_memory_mb": psutil.Process().memory_info().rss / 2**20 if os.name == "nt" else _peak_mb(),
        "runs": runs,
    }


def _peak_mb() -> float:
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        models = [
            line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        model = models[0] if models else model
    return {
        "cpu": model,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 2**30),
        "system": platform.system(),
        "python": platform.python_version(),
        "onnxruntime": version("onnxruntime"),
    }


def generated_set(folder: Path) -> Path:
    """The folder of the generated set, made first where it is missing."""
    if not (folder / "gt.json").is_file():
        print(f"Generating pages in {folder}", file=sys.stderr)
        subprocess.run([sys.executable, str(HERE / "generate_set.py"), "--out", str(folder)], check=True)
    return folder


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", type=Path, help="collection of real documents; without it only the generated set is read"
    )
    parser.add_argument("--generated", type=Path, default=Path("build/generated"), help="the generated set")
    parser.add_argument("--out", type=Path, default=Path("docs/quality.md"), help="the report")
    parser.add_argument(
        "--work", type=Path, default=Path("build/quality"), help="where the Markdown of all documents goes"
    )
    parser.add_argument("--engine", default="embedded")
    parser.add_argument("--only", metavar="REGEX", help="read these documents only, and write no report")
    parser.add_argument("--sets", metavar="REGEX", help="read these sets only, and write no report")
    parser.add_argument(
        "--compare", metavar="NAME=FOLDER", help="outputs of another engine on the generated set; kept in later reports"
    )
    parser.add_argument("--report-only", action="store_true", help="write the report anew from the last figures")
    return parser.parse_args()


def select(options: argparse.Namespace) -> dict[str, list[Sample]]:
    """The sets to read, by name."""
    generated = generated_set(options.generated)
    sets = {GENERATED_IMAGES: load_generated(generated), GENERATED_PDFS: load_generated(generated, pdfs=True)}
    if options.data:
        real = load_collection(options.data, weak=WEAK_TRUTHS)
        sets |= {REAL_FILES: real, REAL_IMAGES: real}
    if options.only:
        sets = {name: [s for s in samples if re.search(options.only, s.id)] for name, samples in sets.items()}
    if options.sets:
        sets = {name: samples for name, samples in sets.items() if re.search(options.sets, name)}
    return {name: samples for name, samples in sets.items() if samples}


def main() -> int:
    options = arguments()
    configure_logging("error")
    figures = options.out.with_suffix(".json")
    if options.report_only:
        results = json.loads(figures.read_text("utf-8"))
    else:
        sets = select(options)
        results = asyncio.run(measure(options.engine, sets, options.work))
        if options.compare:
            name, _, folder = options.compare.partition("=")
            compared = stored_outputs(load_generated(options.generated), Path(folder))
            results["compared"] = {"name": name, **compared}
        elif figures.is_file() and "compared" in (last := json.loads(figures.read_text("utf-8"))):
            results["compared"] = last["compared"]
        if options.only or options.sets:
            json.dump(results["runs"], sys.stdout, indent=1, ensure_ascii=False)
            return 0
        results |= {
            "date": datetime.now(timezone.utc).date().isoformat(),
            "command": " ".join(["python", "bench/quality.py", *sys.argv[1:]]),
            "machine": machine(),
            "weak_truths": WEAK_TRUTHS,
        }
        figures.write_text(json.dumps(results, ensure_ascii=False, indent=1) + "\n", "utf-8")
    plots = write_plots(results, options.out.parent / "images")
    write_report(results, options.out, plots)
    print(f"{options.out} and {figures} written", file=sys.stderr)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except PagemillError as problem:
        sys.exit(f"error: {problem}")
    except subprocess.CalledProcessError:
        sys.exit("error: the generated set could not be made. Run `pip install weasyprint`, and install Pango.")
