"""Makes docs/images/readme.png: a page of an example beside the Markdown that the embedded engine makes of it.

    python docs/make_picture.py

Needs Chromium (for the right half) on the path.
"""

from __future__ import annotations

import html
import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image, ImageDraw

from pagemill import ConversionOptions, convert

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "examples" / "two-column-article.pdf"
HEIGHT = 1240
WIDTH_RIGHT = 980
GAP = 24

STYLE = """
body { margin: 0; background: #fff; }
pre { margin: 0; padding: 28px 32px; font: 14.5px/1.5 'DejaVu Sans Mono', monospace; }
pre { white-space: pre-wrap; color: #24292f; }
.h { color: #0550ae; font-weight: bold; } .c { color: #6e7781; } .i { color: #8250df; }
"""


def colour(line: str) -> str:
    """A line of Markdown as HTML, coloured a little."""
    text = html.escape(line)
    if line.startswith("#"):
        return f'<span class="h">{text}</span>'
    if line.startswith("<!--"):
        return f'<span class="c">{text}</span>'
    if line.startswith("!["):
        return f'<span class="i">{text}</span>'
    return text


def screenshot(markdown: str, folder: Path) -> Image.Image:
    """The Markdown as Chromium shows it."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("Chromium is not on the path: install it (Debian: apt-get install chromium).")
    page, shot = folder / "page.html", folder / "shot.png"
    body = "\n".join(colour(line) for line in markdown.splitlines())
    page.write_text(f"<!doctype html><meta charset=utf-8><style>{STYLE}</style><pre>{body}</pre>", encoding="utf-8")
    subprocess.run(
        [
            chromium,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            f"--user-data-dir={folder / 'profile'}",
            f"--window-size={WIDTH_RIGHT},{HEIGHT}",
            "--hide-scrollbars",
            f"--screenshot={shot}",
            page.as_uri(),
        ],
        check=True,
        capture_output=True,
        timeout=120,
    )
    return Image.open(io.BytesIO(shot.read_bytes())).convert("RGB")


def page_picture() -> Image.Image:
    """The first page of the example."""
    import pypdfium2

    page = pypdfium2.PdfDocument(SOURCE)[0]
    picture = page.render(scale=HEIGHT / page.get_height()).to_pil().convert("RGB")
    return picture.resize((round(picture.width * HEIGHT / picture.height), HEIGHT))


def main() -> None:
    (result,) = convert(SOURCE, engine="embedded", options=ConversionOptions(pages="1"))
    left = page_picture()
    with tempfile.TemporaryDirectory() as folder:
        right = screenshot(result.markdown, Path(folder))
    width = left.width + GAP + right.width + 2
    whole = Image.new("RGB", (width, HEIGHT + 2), "#d0d7de")
    whole.paste(left, (1, 1))
    whole.paste(Image.new("RGB", (GAP, HEIGHT + 2), "white"), (left.width + 1, 0))
    whole.paste(right.crop((0, 0, right.width, HEIGHT)), (left.width + GAP + 1, 1))
    ImageDraw.Draw(whole).rectangle((0, 0, left.width + 1, HEIGHT + 1), outline="#d0d7de")
    whole.quantize(128).save(ROOT / "docs" / "images" / "readme.png", optimize=True)


if __name__ == "__main__":
    main()
