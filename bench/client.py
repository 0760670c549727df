"""The client for OpenAI-compatible servers against the published way of calling one, on the same server in one run.

    python bench/client.py [--pages 300] [--service-s 0.4] [--batch 32] [--queue 256] [--json FILE]

The server is fake: each answer takes a fixed time, so many are worked on at once, so many more may wait, and beyond
that it answers 503, as vLLM does with --max-num-queued-reqs. The published way (as in guides for this model) renders
each page with pypdfium2 at scale 2.77, saves it as PNG with Pillow, and sends all pages at once with asyncio and
aiohttp, without a limit or a second try.

Both clients read the same PDF. Memory is the proportional set size of the client's processes.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import io
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from memory import MemorySampler

ANSWER = "# Page\n\n" + "".join(f"Sentence {n} of the page tells of {chr(97 + n % 26) * 3}. " for n in range(40))
ROOT = Path(__file__).resolve().parent.parent


def serve(arguments: argparse.Namespace) -> None:
    """Runs the fake server until it is killed; prints its URL."""
    sys.path.insert(0, str(ROOT / "tests"))
    from fake_openai import Answer, FakeServer, Request

    busy = asyncio.Semaphore(arguments.batch)

    class Batching(FakeServer):
        async def _answer(self, http: Any, answer: Answer) -> Any:
            async with busy:
                await asyncio.sleep(arguments.service_s)
                return await super()._answer(http, answer)

    def script(request: Request) -> Answer:
        # Images would pile up in the server's own memory.
        request.image = b""
        request.body.clear()
        return Answer(ANSWER)

    async def run() -> None:
        async with Batching(script, capacity=arguments.batch + arguments.queue) as server:
            print(server.url, flush=True)
            await asyncio.sleep(3600)

    asyncio.run(run())


def published(pdf: str, url: str) -> dict[str, Any]:
    """All pages at once, as the guides do."""
    import aiohttp
    import pypdfium2

    async def one(session: aiohttp.ClientSession, image: bytes) -> str:
        body = {
            "model": "lightonocr",
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "image_url",
                            "image_url": {"url": f"data:image/png;base64,{base64.b64encode(image).decode()}"},
                        }
                    ],
                }
            ],
            "max_tokens": 4096,
            "temperature": 0.2,
            "top_p": 0.9,
            "stream": True,
        }
        async with session.post(f"{url}/chat/completions", json=body) as response:
            response.raise_for_status()
            return await response.text()

    async def run() -> tuple[int, int]:
        document = pypdfium2.PdfDocument(pdf)
        images = []
        for page in document:
            buffer = io.BytesIO()
            page.render(scale=2.77).to_pil().save(buffer, "PNG")
            images.append(buffer.getvalue())
        timeout = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(limit=0)) as session:
            answers = await asyncio.gather(*(one(session, image) for image in images), return_exceptions=True)
        failed = sum(isinstance(answer, BaseException) for answer in answers)
        return len(answers) - failed, failed

    good, failed = asyncio.run(run())
    return {"good": good, "failed": failed}


def ours(pdf: str, url: str) -> dict[str, Any]:
    """The product's own way."""
    from pagemill import convert

    with tempfile.TemporaryDirectory() as out:
        (result,) = convert(pdf, out, engine="openai", engine_options={"endpoints": [url]})
    good = sum(page.ok for page in result.pages)
    return {"good": good, "failed": len(result.pages) - good}


def measure(name: str, pdf: Path, url: str) -> dict[str, Any]:
    """Runs one client in a process of its own."""
    started = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, __file__, "--client", name, str(pdf), url], stdout=subprocess.PIPE, text=True
    )
    sampler = MemorySampler(process.pid, interval_s=0.1)
    sampler.start()
    output, _ = process.communicate()
    seconds = time.monotonic() - started
    sampler.stop()
    counts = json.loads(output)
    return {
        "client": name,
        **counts,
        "seconds": round(seconds, 1),
        "good_pages_per_s": round(counts["good"] / seconds, 2),
        "peak_mb": round(sampler.peak_mb),
    }


def make_pdf(path: Path, pages: int) -> None:
    """Pages of text, all different."""
    from reportlab.lib.pagesizes import A4
    from reportlab.pdfgen.canvas import Canvas

    canvas = Canvas(str(path), pagesize=A4, invariant=1)
    for number in range(pages):
        canvas.setFont("Times-Roman", 10)
        for row in range(55):
            canvas.drawString(
                60, 780 - row * 13, f"{number}.{row} The survey of the river took place in all weathers, " * 2
            )
        canvas.showPage()
    canvas.save()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=300)
    parser.add_argument("--service-s", type=float, default=0.4)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--queue", type=int, default=256)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--server", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--client", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.server:
        serve(arguments)
        return 0
    if arguments.client:
        name, pdf, url = arguments.client
        print(json.dumps({"published": published, "ours": ours}[name](pdf, url)))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        pdf = Path(folder) / "pages.pdf"
        make_pdf(pdf, arguments.pages)
        options = [f"--service-s={arguments.service_s}", f"--batch={arguments.batch}", f"--queue={arguments.queue}"]
        server = subprocess.Popen([sys.executable, __file__, "--server", *options], stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        try:
            rows = [measure(name, pdf, url) for name in ("published", "ours")]
        finally:
            server.kill()
            server.wait()
    for row in rows:
        print(json.dumps(row))
    if arguments.json:
        arguments.json.write_text(json.dumps({"options": options, "pages": arguments.pages, "rows": rows}, indent=2))
    theirs, own = rows
    lost = [
        column
        for column, worse in (
            ("good_pages_per_s", own["good_pages_per_s"] < theirs["good_pages_per_s"]),
            ("peak_mb", own["peak_mb"] > theirs["peak_mb"]),
            ("failed", own["failed"] > theirs["failed"]),
        )
        if worse
    ]
    print(f"lost in: {', '.join(lost) or 'no column'}")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
