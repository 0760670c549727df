"""Generates the set of pages with known text that `bench/quality.py` scores.

Needs WeasyPrint, pypdfium2, Pillow (with Raqm) and NumPy, and the fonts Liberation and Noto CJK
(`fonts-liberation` and `fonts-noto-cjk` in Debian). The same versions of these give the same pages.

    python bench/generate_set.py --out build/generated

Writes one image a page, the PDFs of the pages that were typeset, and `gt.json`, the ground truth: for each
page `lang`, `text`, `headings` ([level, text]) and, where they apply, `lists`, `tables` (rows of cells),
`tables_html`, `furniture` and `order`. Names begin with what a page is for:

    lang_  clean prose in eleven languages
    scan_  the same as poor scans
    s_     clean pages with structure, and a few damaged or turned ones
    h_     the hold-out: the same structure and new pages as scans, with other seeds
    b_     the blind test, clean: layouts of their own, not used to improve the embedded engine
    bs_    the same as scans
"""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pypdfium2 as pdfium
from generated import blind, holdout, structure
from generated.page import PageBuilder
from PIL import Image, ImageDraw, ImageFilter, ImageFont
from weasyprint import HTML

# Font subsets carry a modification time; this one makes them equal in every run.
os.environ.setdefault("SOURCE_DATE_EPOCH", "1735689600")

RENDER_DPI = 200
LANGUAGES = Path(__file__).parent / "generated" / "languages.json"
VERTICAL_FONT = "NotoSerifCJK-Regular.ttc"


@dataclass(frozen=True)
class Damage:
    """How a page is worn: what office scanners, faxes and age do to it.

    Attributes:
        seed: Seed of noise and specks.
        dpi: Resolution of the scan.
        skew: Counter-clockwise turn in degrees.
        blur: Standard deviation of the blur in pixels.
        noise: Standard deviation of the noise in grey levels (of 255).
        ink: Grey level of what was black.
        paper: Grey level of what was white.
        quality: JPEG quality.
    """

    seed: int
    dpi: int = 150
    skew: float = 0.7
    blur: float = 0.8
    noise: float = 12
    ink: float = 70
    paper: float = 215
    quality: int = 45

    def apply(self, page: Image.Image) -> Image.Image:
        """The worn page, in grey."""
        rng = np.random.default_rng(self.seed)
        size = (page.width * self.dpi // RENDER_DPI, page.height * self.dpi // RENDER_DPI)
        image = page.convert("L").resize(size, Image.Resampling.LANCZOS)
        image = image.rotate(self.skew, resample=Image.Resampling.BICUBIC, fillcolor=255)
        image = image.filter(ImageFilter.GaussianBlur(self.blur))
        grey = np.asarray(image, dtype=np.float64) / 255 * (self.paper - self.ink) + self.ink
        grey += np.linspace(0, -18, grey.shape[1])[None, :] + rng.normal(0, self.noise, grey.shape)
        grey[rng.random(grey.shape) > 0.9995] = 60
        return Image.fromarray(np.clip(grey, 0, 255).astype(np.uint8))


HEAVY_DAMAGE = Damage(99, dpi=130, skew=-1.6, blur=1.0, noise=20, ink=110, paper=190, quality=35)
HOLDOUT_DAMAGE = {
    "twocol": Damage(501, skew=-0.6),
    "table": Damage(502, skew=0.5, noise=10),
    "paper": Damage(503, skew=0.9),
    "headlist": Damage(504, skew=-1.1, noise=14),
    "merged": Damage(505, skew=0.4),
    "multiline": Damage(506, skew=-0.8),
    "borderless": Damage(507, skew=1.0, noise=10),
    "zhtable": Damage(508, skew=-0.5),
    "news3": Damage(509, skew=0.6, noise=10),
    "zh2col": Damage(510, skew=-0.9),
    "deletter": Damage(511, skew=0.8),
    "jalist": Damage(512, skew=-0.7),
}


class SetWriter:
    """Writes pages and collects their ground truth.

    Args:
        folder: Where the files go; made if missing.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.truth: dict[str, Any] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def typeset(self, name: str, page: PageBuilder) -> Image.Image:
        """Writes the page's PDF and returns the page as an image."""
        pdf = HTML(string=page.html()).write_pdf()
        assert pdf is not None
        (self.folder / f"{name}.pdf").write_bytes(pdf)
        self.truth[name] = page.truth.as_json()
        document = pdfium.PdfDocument(pdf)
        assert len(document) == 1, f"{name} has grown to {len(document)} pages"
        image = document[0].render(scale=RENDER_DPI / 72).to_pil().convert("RGB")
        document.close()
        return image

    def clean(self, name: str, page: PageBuilder) -> Image.Image:
        """Writes the PDF and a PNG of the page."""
        image = self.typeset(name, page)
        self.png(name, image)
        return image

    def png(self, name: str, image: Image.Image) -> None:
        """Writes an image without loss."""
        image.save(self.folder / f"{name}.png", dpi=(RENDER_DPI, RENDER_DPI))

    def scan(self, name: str, image: Image.Image, damage: Damage, truth_of: str) -> None:
        """Writes a worn version of `image`, with the ground truth of another page."""
        damage.apply(image).save(self.folder / f"{name}.jpg", quality=damage.quality, dpi=(damage.dpi, damage.dpi))
        self.truth[name] = self.truth[truth_of]


def vertical_page(lines: list[str]) -> Image.Image:
    """A page of Japanese set from top to bottom, columns from right to left; A5 at `RENDER_DPI`."""
    image = Image.new("RGB", (1165, 1654), "white")
    draw = ImageDraw.Draw(image)
    x = image.width - 160
    for index, line in enumerate(lines):
        font = ImageFont.truetype(VERTICAL_FONT, 56 if index == 0 else 44)
        draw.text((x, 170), line, font=font, fill="black", direction="ttb", language="ja", anchor="mt")
        x -= 130 if index == 0 else 92
    return image


def write_languages(writer: SetWriter) -> None:
    """Prose in eleven languages, clean and scanned."""
    languages = json.loads(LANGUAGES.read_text("utf-8"))
    for seed, (lang, text) in enumerate(languages.items()):
        page = PageBuilder(f"lang_{lang}", lang).heading(1, text["title"])
        page.paragraph(text["paragraphs"][0]).paragraph(text["paragraphs"][1], "class='sans'")
        image = writer.clean(f"lang_{lang}", page)
        writer.scan(f"scan_{lang}", image, Damage(seed), f"lang_{lang}")


def write_structure(writer: SetWriter) -> dict[str, Image.Image]:
    """Clean pages with structure; returns their images by name."""
    pages = [
        structure.two_columns(),
        structure.tables(),
        structure.merged_cells(),
        structure.headings_and_lists(),
        structure.formulas(),
        structure.chinese_table(),
        structure.borderless_table(),
        structure.multiline_table(),
        structure.paper(),
    ]
    images = {page.name: writer.clean(f"s_{page.name}", page) for page in pages}
    writer.scan("s_noisy", images["headlist"], HEAVY_DAMAGE, "s_headlist")
    english = Image.open(writer.folder / "lang_en.png")
    for angle in (90, 180):
        writer.png(f"s_rot{angle}", english.rotate(angle, expand=True))
        writer.truth[f"s_rot{angle}"] = writer.truth["lang_en"]
    writer.png("s_javert", vertical_page(holdout.VERTICAL_JAPANESE))
    writer.truth["s_javert"] = {"lang": "ja", "text": "\n".join(holdout.VERTICAL_JAPANESE), "headings": []}
    return images


def write_holdout(writer: SetWriter, clean: dict[str, Image.Image]) -> None:
    """Scans of the clean pages, and of four pages that are in the set as scans and PDFs only."""
    scans_only = [
        holdout.newspaper(),
        holdout.chinese_columns(),
        holdout.german_letter(),
        holdout.japanese_list(),
    ]
    for page in scans_only:
        clean[page.name] = writer.typeset(f"h_{page.name}", page)
    for name, damage in HOLDOUT_DAMAGE.items():
        truth_of = f"h_{name}" if f"h_{name}" in writer.truth else f"s_{name}"
        writer.scan(f"h_{name}", clean[name], damage, truth_of)


def write_blind(writer: SetWriter) -> None:
    """The blind test, clean and scanned."""
    for index, make in enumerate(blind.BLIND_PAGES):
        page = make()
        image = writer.clean(f"b_{page.name}", page)
        skew = (-1.4, 0.9, 0.3, -0.6, 1.2, -0.4, 0.7, -1.0)[index]
        writer.scan(f"bs_{page.name}", image, Damage(701 + index, skew=skew), f"b_{page.name}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for the pages and gt.json")
    writer = SetWriter(parser.parse_args().out)
    write_languages(writer)
    write_holdout(writer, write_structure(writer))
    write_blind(writer)
    truth = json.dumps(writer.truth, ensure_ascii=False, indent=1)
    (writer.folder / "gt.json").write_text(truth + "\n", "utf-8")
    print(f"{len(writer.truth)} pages in {writer.folder}")


if __name__ == "__main__":
    main()
