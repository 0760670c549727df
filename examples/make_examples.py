"""Makes the example documents out of the HTML files in `sources/`.

Needs WeasyPrint, pypdfium2, Pillow and NumPy, and the fonts Liberation and Noto CJK. The same versions
of these give the same bytes.

    python examples/make_examples.py
"""

from __future__ import annotations

import io
import os
from pathlib import Path

import numpy as np
import pypdfium2 as pdfium
from PIL import Image, ImageFilter
from weasyprint import HTML

HERE = Path(__file__).parent
SCAN_DPI = 150
# Font subsets carry a modification time; this one makes them equal in every run.
os.environ.setdefault("SOURCE_DATE_EPOCH", "1735689600")


def render_pdf(name: str) -> bytes:
    """The PDF of `sources/NAME.html`."""
    pdf = HTML(HERE / "sources" / f"{name}.html").write_pdf()
    assert pdf is not None
    return pdf


def scan(pdf: bytes, *, skew: float, seed: int) -> Image.Image:
    """The first page as a worn flat-bed scanner would give it.

    Args:
        pdf: A PDF file.
        skew: Counter-clockwise turn in degrees.
        seed: Seed of noise, dust and stains.
    """
    rng = np.random.default_rng(seed)
    document = pdfium.PdfDocument(pdf)
    page = document[0].render(scale=SCAN_DPI / 72, grayscale=True).to_pil().convert("L")
    document.close()
    page = page.rotate(skew, resample=Image.Resampling.BICUBIC, fillcolor=250).filter(ImageFilter.GaussianBlur(0.7))
    paper = np.asarray(page, dtype=np.float64) / 255 * 165 + 62
    height, width = paper.shape
    x = np.linspace(0.0, 1.0, width)[None, :]
    y = np.linspace(0.0, 1.0, height)[:, None]
    paper -= 34 * x**2 + 14 * (1 - y)
    paper -= 70 * np.exp(-x / 0.012)
    paper += rng.normal(0, 9, paper.shape)
    for _ in range(3):
        stain_x, stain_y, radius = rng.uniform(0.1, 0.9), rng.uniform(0.1, 0.9), rng.uniform(0.03, 0.07)
        distance = np.hypot(x - stain_x, (y - stain_y) * height / width)
        paper -= 12 * np.exp(-(((distance - radius) / (0.12 * radius)) ** 2))
    paper[rng.random(paper.shape) > 0.9996] = 50
    return Image.fromarray(np.clip(paper, 0, 255).astype(np.uint8))


def main() -> None:
    for name in ("two-column-article", "invoice", "chinese-report"):
        (HERE / f"{name}.pdf").write_bytes(render_pdf(name))
    buffer = io.BytesIO()
    scan(render_pdf("skewed-scan"), skew=2.1, seed=1987).save(buffer, "JPEG", quality=55, dpi=(SCAN_DPI, SCAN_DPI))
    (HERE / "skewed-scan.jpg").write_bytes(buffer.getvalue())


if __name__ == "__main__":
    main()
