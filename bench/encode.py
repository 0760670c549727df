"""What an encoding costs on both sides: ours to write it, the server's to read it.

    python bench/encode.py --data FOLDER [--pages 40] [--python VENV/bin/python]

Pages of the PDFs in a folder are rendered to 1540 pixels and encoded as the render pool's PNG, lossless WebP and JPEG
(quality 95). They are decoded by Pillow as vLLM does (convert to RGB), with the Python of vLLM's environment if one is
named. Printed: milliseconds a page (median) and KB.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pypdfium2

from pagemill.documents.encode import encode
from pagemill.documents.options import RenderOptions

TYPES = {"PNG": "image/png", "lossless WebP": "image/webp", "JPEG 95": "image/jpeg"}
DECODE = """
import io, json, statistics, sys, time
from pathlib import Path
from PIL import Image
times = []
for path in sorted(Path(sys.argv[1]).iterdir()):
    data = path.read_bytes()
    runs = []
    for _ in range(3):
        started = time.perf_counter()
        Image.open(io.BytesIO(data)).convert("RGB")
        runs.append(time.perf_counter() - started)
    times.append(min(runs))
print(json.dumps(statistics.median(times)))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--pages", type=int, default=40)
    parser.add_argument("--python", type=Path, default=Path(sys.executable))
    arguments = parser.parse_args()
    images = []
    for path in sorted(arguments.data.rglob("*.pdf")):
        try:
            page = pypdfium2.PdfDocument(path)[0]
        except pypdfium2.PdfiumError:
            continue
        image = page.render(scale=1540 / max(page.get_size())).to_pil()
        grey = image.convert("L")
        images.append(grey if image.convert("RGB").tobytes() == grey.convert("RGB").tobytes() else image.convert("RGB"))
        if len(images) == arguments.pages:
            break
    print(f"{len(images)} pages, {sum(image.mode == 'L' for image in images)} of them grey")
    print("| | encode, ms | decode, ms | KB |\n|---|--:|--:|--:|")
    for name, media_type in TYPES.items():
        options = RenderOptions(media_type=media_type, jpeg_quality=95)
        with tempfile.TemporaryDirectory() as folder:
            times, sizes = [], []
            for number, image in enumerate(images):
                started = time.perf_counter()
                data = encode(image, options)
                times.append(time.perf_counter() - started)
                sizes.append(len(data))
                (Path(folder) / f"{number:03d}").write_bytes(data)
            done = subprocess.run(
                [arguments.python, "-c", DECODE, folder], capture_output=True, text=True, check=True
            ).stdout
        decode = json.loads(done)
        encoded = statistics.median(times)
        print(
            f"| {name} | {encoded * 1000:.1f} | {decode * 1000:.1f} | {statistics.mean(sizes) / 1024:.0f} |", flush=True
        )


if __name__ == "__main__":
    main()
