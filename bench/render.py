"""Pages per second from PDF to encoded page image: the render pool against the published approach.

The published approach is LightOnOCR's own: pypdfium2's `page.render(scale=2.77).to_pil()` and `save(buffer, "PNG")`
in one process. The pool renders the same pages to the same size with its own processes, and every page is decoded
again and compared: the pixels must be the same.

    python bench/render.py                      # a document made here: text, tables, drawings, photographs
    python bench/render.py --json out.json a.pdf b.pdf

Needs reportlab for the document made here.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import io
import json
import math
import platform
import random
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pypdfium2 as pdfium
from PIL import Image, ImageFilter

from pagemill.documents import RenderOptions, RenderPool
from pagemill.domain import DocumentSource, PageImage

SCALE = 2.77
PAGE = (595, 842)
PROSE = (
    "the quarterly report shows that revenue from services grew while costs of material and energy fell again "
    "measured over all regions demand stayed firm and the order book reached a new high at the end of June our "
    "laboratory completed its tests of the second series and found no deviation beyond the limits agreed with the "
    "authority further work is planned on storage transport and the training of staff in both plants"
)
WORDS = PROSE.split()


@dataclass(frozen=True)
class Outcome:
    """What one approach took for all pages."""

    seconds: float
    pages_per_second: float
    bytes: int


ALL_KINDS = ("text", "text", "table", "text", "drawing", "text", "table", "photo")


def make_document(path: Path, pages: int, kinds_in_turn: Sequence[str] = ALL_KINDS) -> list[str]:
    """Writes a document of A4 pages of up to four kinds and returns the kind of each."""
    from reportlab.pdfgen.canvas import Canvas

    rng = random.Random(20)
    canvas = Canvas(str(path), pagesize=PAGE, invariant=1)
    draw = {"text": _text_page, "table": _table_page, "drawing": _drawing_page, "photo": _photo_page}
    kinds = [kinds_in_turn[index % len(kinds_in_turn)] for index in range(pages)]
    for kind in kinds:
        draw[kind](canvas, rng)
        canvas.showPage()
    canvas.save()
    return kinds


def _prose(rng: random.Random, words: int) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(words)).capitalize() + "."


def _text_page(canvas, rng, top: int = 780) -> None:  # noqa: ANN001
    canvas.setFont("Helvetica-Bold", 15)
    canvas.drawString(60, top, _prose(rng, 5))
    canvas.setFont("Times-Roman", 10.5)
    for y in range(top - 26, 60, -14):
        canvas.drawString(60, y, _prose(rng, 14)[:95])


def _table_page(canvas, rng) -> None:  # noqa: ANN001
    canvas.setFont("Helvetica", 8.5)
    for row in range(44):
        y = 770 - row * 16
        if row % 2:
            canvas.setFillGray(0.93)
            canvas.rect(50, y - 4, 495, 16, stroke=0, fill=1)
            canvas.setFillGray(0)
        canvas.drawString(54, y, _prose(rng, 2))
        for column in range(5):
            canvas.drawRightString(300 + column * 60, y, f"{rng.randrange(10**6):,}.{rng.randrange(100):02d}")
    canvas.setLineWidth(0.4)
    canvas.grid([50, 235, 305, 365, 425, 485, 545], [66, 782])


def _drawing_page(canvas, rng) -> None:  # noqa: ANN001
    canvas.setFont("Helvetica", 9)
    for bar in range(12):
        canvas.setFillColorRGB(rng.random(), rng.random(), rng.random())
        canvas.rect(80 + bar * 36, 500, 26, rng.randrange(30, 240), stroke=0, fill=1)
    canvas.setStrokeColorRGB(0.1, 0.2, 0.6)
    path = canvas.beginPath()
    path.moveTo(60, 470)
    for step in range(60):
        path.lineTo(60 + step * 8, 420 + 40 * math.sin(step / 4) + rng.randrange(12))
    canvas.drawPath(path)
    canvas.setFillGray(0)
    _text_page(canvas, rng, top=380)


def _photo_page(canvas, rng) -> None:  # noqa: ANN001
    from reportlab.lib.utils import ImageReader

    canvas.drawImage(ImageReader(_photo(rng)), 60, 480, 475, 300)
    _text_page(canvas, rng, top=450)


def _photo(rng: random.Random) -> Image.Image:
    """Soft shapes with sensor noise, as a colour photograph has them."""
    tiles = [Image.frombytes("L", (24, 16), rng.randbytes(384)) for _ in range(3)]
    grain = Image.frombytes("L", (950, 600), rng.randbytes(570_000)).point(lambda value: 118 + value // 12)
    soft = [tile.resize((950, 600), Image.Resampling.BICUBIC).filter(ImageFilter.GaussianBlur(4)) for tile in tiles]
    return Image.merge("RGB", [Image.blend(band, grain, 0.25) for band in soft])


def run_published(paths: list[Path]) -> tuple[Outcome, list[bytes]]:
    """pypdfium2 and Pillow in this process, one page after the other."""
    images: list[bytes] = []
    started = time.perf_counter()
    for path in paths:
        document = pdfium.PdfDocument(path)
        for page in document:
            buffer = io.BytesIO()
            page.render(scale=SCALE).to_pil().save(buffer, "PNG")
            images.append(buffer.getvalue())
            page.close()
        document.close()
    return _outcome(started, images), images


async def run_pool(paths: list[Path], workers: int) -> tuple[Outcome, list[PageImage]]:
    """The render pool, each document at the long side that the published scale gives its first page."""
    groups: dict[int, list[Path]] = defaultdict(list)
    for path in paths:
        document = pdfium.PdfDocument(path)
        groups[math.ceil(max(document.get_page_size(0)) * SCALE)].append(path)
        document.close()
    images: dict[Path, list[PageImage]] = {}
    seconds = 0.0
    for long_side, members in groups.items():
        async with RenderPool(RenderOptions(long_side=long_side), workers=workers) as pool:
            started = time.perf_counter()
            results = await asyncio.gather(*(_render_all(pool, path) for path in members))
            images.update(zip(members, results, strict=True))
            seconds += time.perf_counter() - started
    ordered = [image for path in paths for image in images[path]]
    return _outcome(time.perf_counter() - seconds, [image.data for image in ordered]), ordered


async def _render_all(pool: RenderPool, path: Path) -> list[PageImage]:
    source = DocumentSource(path, path.name)
    info = await pool.inspect(source)
    return list(await asyncio.gather(*(pool.render(source, page) for page in info.pages)))


def _outcome(started: float, images: list[bytes]) -> Outcome:
    seconds = time.perf_counter() - started
    return Outcome(seconds, len(images) / seconds, sum(map(len, images)))


def compare(published: list[bytes], ours: list[PageImage]) -> Counter[str]:
    """Counts pages with the same pixels, other pixels, and another size."""
    verdicts: Counter[str] = Counter()
    for theirs, mine in zip(published, ours, strict=True):
        one, other = (Image.open(io.BytesIO(data)).convert("RGB") for data in (theirs, mine.data))
        same = one.size == other.size and one.tobytes() == other.tobytes()
        verdicts["same" if same else "other size" if one.size != other.size else "other pixels"] += 1
    return verdicts


def main() -> int:
    """Runs the comparison and prints it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pdfs", nargs="*", type=Path)
    parser.add_argument("--pages", type=int, default=48, help="Pages of the document made here.")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3, help="The median round counts.")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        paths = arguments.pdfs
        kinds: list[str] = []
        if not paths:
            paths = [Path(folder) / "bench.pdf"]
            kinds = make_document(paths[0], arguments.pages)
        rounds = [
            (run_published(paths), asyncio.run(run_pool(paths, arguments.workers))) for _ in range(arguments.rounds)
        ]
    # Both approaches of a round ran one after the other, so a busy machine slows both of them.
    rounds.sort(key=lambda pair: pair[1][0].pages_per_second / pair[0][0].pages_per_second)
    (published, their_images), (pool, our_images) = rounds[len(rounds) // 2]
    ratios = [ours[0].pages_per_second / theirs[0].pages_per_second for theirs, ours in rounds]
    verdicts = compare(their_images, our_images)
    report = {
        "machine": {"python": platform.python_version(), "system": platform.platform(), "pypdfium2": _version()},
        "pages": len(our_images),
        "workers": arguments.workers,
        "published": asdict(published),
        "pool": asdict(pool),
        "speed_ratio": statistics.median(ratios),
        "speed_ratios": ratios,
        "bytes_ratio": pool.bytes / published.bytes,
        "pixels": dict(verdicts),
        "sha256_of_images": hashlib.sha256(b"".join(image.data for image in our_images)).hexdigest(),
    }
    print(f"{'':24}{'pages/s':>10}{'seconds':>10}{'MB':>8}")
    for name, outcome in (("published, 1 process", published), (f"pool, {arguments.workers} processes", pool)):
        print(f"{name:24}{outcome.pages_per_second:10.1f}{outcome.seconds:10.2f}{outcome.bytes / 1e6:8.2f}")
    print(
        f"ratio of pages/s {report['speed_ratio']:.1f}, of bytes {report['bytes_ratio']:.2f}; pixels: {dict(verdicts)}"
    )
    for kind in dict.fromkeys(kinds):
        chosen = [index for index, name in enumerate(kinds) if name == kind]
        theirs = sum(len(their_images[index]) for index in chosen) / len(chosen)
        ours = sum(len(our_images[index].data) for index in chosen) / len(chosen)
        print(f"  {kind:10}{len(chosen):4} pages, kB a page: {theirs / 1e3:7.0f} published, {ours / 1e3:7.0f} pool")
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=2) + "\n", "utf-8")
    return 0 if verdicts["same"] == len(our_images) else 1


def _version() -> str:
    return f"{pdfium.PYPDFIUM_INFO} / {pdfium.PDFIUM_INFO}"


if __name__ == "__main__":
    sys.exit(main())
