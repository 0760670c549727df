"""What the gateway costs: against calling its engine directly, as a job service, and with a long queue.

    python bench/gateway.py [--only passthrough,jobs,queue] [--plot FILE.png] [--json FILE]

Engine, gateway and clients are processes of their own on one machine. The engine is fake: each answer takes a fixed
time, with no bound on how many are worked on at once, so that what is added is the gateway's. Direct calls and calls
through the gateway take turns within the run. The gateway runs as it is set by default, but for its windows, which are
opened so wide that nothing waits.

The queue is filled over HTTP with documents of one page while nothing works on them; at each depth documents are
handed in and jobs asked for one after the other, in turns with a second service that has next to nothing queued.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import functools
import io
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
from memory import tree_pss_mb

CLIENTS = (1, 32, 256)
DEPTHS = (0, 5_000, 10_000, 20_000)
ROUNDS = 4
CALLS = 300
ANSWER = "# Page\n\n" + "".join(f"Sentence {n} of the page tells of {chr(97 + n % 26) * 3}. " for n in range(40))
PARTS = ("passthrough", "jobs", "queue")


def serve_engine(service_s: float) -> None:
    """Runs the fake engine until it is killed; prints its URL."""
    from aiohttp import web

    usage = {"prompt_tokens": 2145, "completion_tokens": 800}
    choice = {"index": 0, "message": {"role": "assistant", "content": ANSWER}, "finish_reason": "stop"}
    whole = json.dumps({"object": "chat.completion", "choices": [choice], "usage": usage}).encode()
    delta = {"index": 0, "delta": {"content": ANSWER}, "finish_reason": "stop"}
    events = [{"choices": [delta]}, {"choices": [], "usage": usage}]
    stream = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events) + b"data: [DONE]\n\n"

    async def complete(request: web.Request) -> web.Response:
        body = await request.read()
        await asyncio.sleep(service_s)
        if b'"stream": true' in body[-2000:]:
            return web.Response(body=stream, content_type="text/event-stream")
        return web.Response(body=whole, content_type="application/json")

    async def models(_request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "fake", "max_model_len": 16_384}]})

    async def run() -> None:
        app = web.Application(client_max_size=2**30)
        app.router.add_post("/v1/chat/completions", complete)
        app.router.add_get("/v1/models", models)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
        print(f"http://127.0.0.1:{runner.addresses[0][1]}/v1", flush=True)
        await asyncio.Event().wait()

    asyncio.run(run())


@contextlib.contextmanager
def engine(service_s: float) -> Iterator[str]:
    command = [sys.executable, __file__, "--engine", str(service_s)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


@contextlib.contextmanager
def gateway(folder: Path, engine_url: str, **settings: Any) -> Iterator[tuple[str, int]]:
    """The gateway's URL and process id."""
    given = {
        "ENGINE__ENDPOINTS": json.dumps([engine_url]),
        "ENGINE__OPTIONS": json.dumps({"window": {"initial": 2048, "most": 2048}}),
        "GATEWAY__WINDOW_TOKENS": 2**26,
        "GATEWAY__DATA": folder,
        **settings,
    }
    environment = {**os.environ, **{f"PAGEMILL_{name}": str(value) for name, value in given.items()}}
    port = free_port()
    command = [sys.executable, "-m", "pagemill", "gateway", "--port", str(port)]
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(command, env=environment, stdout=log, stderr=log) as process,
    ):
        try:
            url = f"http://127.0.0.1:{port}"
            asyncio.run(wait_until_ready(url))
            yield url, process.pid
        finally:
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(60)
            process.kill()


def free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def wait_until_ready(url: str) -> None:
    async with aiohttp.ClientSession() as session:
        for _ in range(600):
            with contextlib.suppress(aiohttp.ClientError):
                async with session.get(f"{url}/health/ready") as answer:
                    if answer.status == 200:
                        return
            await asyncio.sleep(0.1)
    raise SystemExit("the gateway did not become ready")


def page_image() -> bytes:
    """A page of text as the client of an engine would send it."""
    from PIL import Image, ImageDraw

    image = Image.new("L", (1089, 1540), 255)
    draw = ImageDraw.Draw(image)
    for row in range(55):
        draw.text((60, 40 + row * 26), f"{row} The survey of the river took place in all weathers. " * 2, fill=0)
    # As large as scans are: paper is not white.
    noise = random.Random(1).randbytes(1089 * 1540)
    image = Image.blend(image, Image.frombytes("L", image.size, noise), 0.004)
    buffer = io.BytesIO()
    image.save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


async def at_once(
    clients: int, calls: int, call: Callable[[], Awaitable[None]], spread_s: float = 0.0
) -> tuple[list[float], float]:
    """Seconds of each call, and of all of them; clients begin one after the other within `spread_s`."""
    took: list[float] = []
    left = iter(range(calls))

    async def client(number: int) -> None:
        await asyncio.sleep(spread_s * number / clients)
        for _ in left:
            started = time.perf_counter()
            await call()
            took.append(time.perf_counter() - started)

    started = time.perf_counter()
    await asyncio.gather(*map(client, range(clients)))
    return took, time.perf_counter() - started


async def passthrough(
    engine_url: str, gateway_url: str, pid: int, service_s: float, *, stream: bool
) -> list[dict[str, Any]]:
    """Direct and through the gateway, in turns."""
    url = f"data:image/png;base64,{base64.b64encode(page_image()).decode()}"
    content = [{"type": "image_url", "image_url": {"url": url}}]
    request = {
        "model": "fake",
        "messages": [{"role": "user", "content": content}],
        "max_tokens": 4096,
        "stream": stream,
    }
    body = json.dumps(request).encode()
    headers = {"Content-Type": "application/json"}
    ways = {"direct": engine_url, "gateway": f"{gateway_url}/v1"}
    rows = []
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=2), timeout=aiohttp.ClientTimeout(total=None)
    ) as session:

        async def ask(base: str) -> None:
            data = io.BytesIO(body)
            async with session.post(f"{base}/chat/completions", data=data, headers=headers) as answer:
                text = await answer.read()
                if answer.status != 200 or b"Sentence 39" not in text:
                    raise SystemExit(f"{base} answered {answer.status}: {text[:300]!r}")

        for clients in CLIENTS if service_s else (32,):
            took: dict[str, list[float]] = {name: [] for name in ways}
            seconds = dict.fromkeys(ways, 0.0)
            for base in ways.values():
                await at_once(clients, clients, functools.partial(ask, base))
            for turn in range(ROUNDS):
                for name, base in sorted(ways.items(), reverse=bool(turn % 2)):
                    calls = max(8, 4 * clients) if service_s else 500
                    one, total = await at_once(clients, calls, functools.partial(ask, base), service_s)
                    took[name] += one
                    seconds[name] += total
            row: dict[str, Any] = {
                "clients": clients,
                "service_s": service_s,
                "stream": stream,
                "body_kb": len(body) // 1024,
            }
            for name in ways:
                row[f"{name}_pages_per_s"] = round(len(took[name]) / seconds[name], 1)
                row[f"{name}_p50_ms"] = round(percentile(took[name], 0.5) * 1000, 1)
                row[f"{name}_p99_ms"] = round(percentile(took[name], 0.99) * 1000, 1)
            for share in ("p50", "p99"):
                row[f"added_{share}_ms"] = round(row[f"gateway_{share}_ms"] - row[f"direct_{share}_ms"], 1)
            row["gateway_mb"] = round(tree_pss_mb(pid))
            rows.append(row)
            print(json.dumps(row), flush=True)
    return rows


def measure_passthrough(folder: Path, engine_url: str, arguments: argparse.Namespace) -> list[list[dict[str, Any]]]:
    """Answers as a whole, and streams; with the engine's time, and with an engine that takes none."""
    whole: list[dict[str, Any]] = []
    streamed: list[dict[str, Any]] = []
    with engine(0.0) as quick_url:
        for service_s, url in ((arguments.service_s, engine_url), (0.0, quick_url)):
            (data := folder / str(service_s)).mkdir()
            with gateway(data, url, GATEWAY__WORK="false") as (gateway_url, pid):
                whole += asyncio.run(passthrough(url, gateway_url, pid, service_s, stream=False))
                streamed += asyncio.run(passthrough(url, gateway_url, pid, service_s, stream=True))
    return [whole, streamed]


def make_pdf(pages: int) -> bytes:
    from client import make_pdf as write

    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / "pages.pdf", pages)
        return (Path(folder) / "pages.pdf").read_bytes()


async def jobs(gateway_url: str, pid: int, documents: int, pages: int) -> dict[str, Any]:
    """Documents handed in all at once, until the last page is there."""
    data = make_pdf(pages)
    async with aiohttp.ClientSession() as session:

        async def one() -> None:
            job = await submit(session, gateway_url, data)
            while job["status"] not in ("succeeded", "failed"):
                await asyncio.sleep(0.1)
                job = await get_job(session, gateway_url, job["id"])
            if job["pages"]["done"] != pages:
                raise SystemExit(f"a job ended with {job['pages']}: {job['error']}")

        _, seconds = await at_once(32, documents, one)
    row = {
        "documents": documents,
        "pages": documents * pages,
        "pages_per_s": round(documents * pages / seconds, 1),
        "gateway_and_renderers_mb": round(tree_pss_mb(pid)),
    }
    print(json.dumps(row), flush=True)
    return row


async def submit(session: aiohttp.ClientSession, url: str, data: bytes) -> Any:
    form = aiohttp.FormData()
    form.add_field("file", data, filename="letter.png", content_type="application/octet-stream")
    async with session.post(f"{url}/v1/documents", data=form) as answer:
        if answer.status != 202:
            raise SystemExit(f"a document was answered {answer.status}: {await answer.text()}")
        return await answer.json()


async def get_job(session: aiohttp.ClientSession, url: str, job_id: str) -> Any:
    async with session.get(f"{url}/v1/jobs/{job_id}") as answer:
        answer.raise_for_status()
        return await answer.json()


async def queue(deep_url: str, empty_url: str, pid: int) -> list[dict[str, Any]]:
    """Latencies at growing depths, each call in turn with the same one at a service with next to nothing queued."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.new("L", (600, 800), 255).save(buffer, "PNG")
    data = buffer.getvalue()
    known: dict[str, list[str]] = {deep_url: [], empty_url: []}
    rows = []
    async with aiohttp.ClientSession() as session:

        async def hand_in(url: str) -> None:
            known[url].append((await submit(session, url, data))["id"])

        async def poll(url: str) -> None:
            await get_job(session, url, random.choice(known[url]))

        for depth in DEPTHS:
            await at_once(16, depth - len(known[deep_url]), functools.partial(hand_in, deep_url))
            row: dict[str, Any] = {"queued": depth}
            for name, call in (("submit", hand_in), ("poll", poll)):
                took: dict[str, list[float]] = {"deep": [], "empty": []}
                for _ in range(CALLS):
                    for which, url in (("deep", deep_url), ("empty", empty_url)):
                        one, _ = await at_once(1, 1, functools.partial(call, url))
                        took[which] += one
                for which, values in took.items():
                    row[f"{name}_{which}_p50_ms"] = round(percentile(values, 0.5) * 1000, 2)
                    row[f"{name}_{which}_p99_ms"] = round(percentile(values, 0.99) * 1000, 2)
            row["gateway_mb"] = round(tree_pss_mb(pid))
            rows.append(row)
            print(json.dumps(row), flush=True)
    return rows


def table(rows: list[dict[str, Any]], columns: dict[str, str]) -> str:
    """A Markdown table; `columns` gives the title of each."""
    head = "| " + " | ".join(columns.values()) + " |"
    marks = "|" + "|".join("--:" for _ in columns) + "|"
    body = ["| " + " | ".join(str(row[name]) for name in columns) + " |" for row in rows]
    return "\n".join((head, marks, *body))


def report(results: dict[str, Any]) -> str:
    """The tables for docs/benchmarks.md."""
    parts = []
    if "passthrough" in results:
        columns = {
            "clients": "clients",
            "service_s": "engine, s",
            "direct_pages_per_s": "direct, pages/s",
            "gateway_pages_per_s": "gateway, pages/s",
            "direct_p50_ms": "direct, p50 ms",
            "added_p50_ms": "added, p50 ms",
            "direct_p99_ms": "direct, p99 ms",
            "added_p99_ms": "added, p99 ms",
            "gateway_mb": "gateway, MB",
        }
        parts += [table(results[name], columns) for name in ("passthrough", "passthrough_stream")]
    if "jobs" in results:
        parts.append(
            table(
                [results["jobs"]],
                {
                    "documents": "documents",
                    "pages": "pages",
                    "pages_per_s": "pages/s",
                    "gateway_and_renderers_mb": "gateway and renderers, MB",
                },
            )
        )
    if "queue" in results:
        parts.append(
            table(
                results["queue"],
                {
                    "queued": "queued",
                    "submit_deep_p50_ms": "submit, p50 ms",
                    "submit_empty_p50_ms": "(empty)",
                    "submit_deep_p99_ms": "p99 ms",
                    "submit_empty_p99_ms": "(empty)",
                    "poll_deep_p50_ms": "poll, p50 ms",
                    "poll_empty_p50_ms": "(empty)",
                    "poll_deep_p99_ms": "p99 ms",
                    "poll_empty_p99_ms": "(empty)",
                    "gateway_mb": "gateway, MB",
                },
            )
        )
    return "\n\n".join(parts)


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    """Latencies over the depth of the queue."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
    depths = [row["queued"] for row in rows]
    for name, colour in (("submit", "tab:blue"), ("poll", "tab:orange")):
        axes.plot(depths, [row[f"{name}_deep_p50_ms"] for row in rows], color=colour, label=f"{name}, p50")
        axes.plot(depths, [row[f"{name}_deep_p99_ms"] for row in rows], "--", color=colour, label=f"{name}, p99")
        axes.plot(depths, [row[f"{name}_empty_p50_ms"] for row in rows], ":", color=colour, label=f"{name}, p50, empty")
    axes.set(xlabel="jobs queued", ylabel="ms", ylim=(0, None), title="Latency with a long queue")
    axes.legend()
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PARTS), help="Parts, with commas between them.")
    parser.add_argument("--service-s", type=float, default=1.0, help="Seconds of each answer of the engine.")
    parser.add_argument("--documents", type=int, default=60)
    parser.add_argument("--pages", type=int, default=10)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--engine", type=float, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.engine is not None:
        serve_engine(arguments.engine)
        return 0
    wanted = arguments.only.split(",")
    results: dict[str, Any] = {"service_s": arguments.service_s}
    with tempfile.TemporaryDirectory() as name, engine(arguments.service_s) as engine_url:
        folders = [Path(name) / part for part in (*PARTS, "empty")]
        for folder in folders:
            folder.mkdir()
        if "passthrough" in wanted:
            results["passthrough"], results["passthrough_stream"] = measure_passthrough(
                folders[0], engine_url, arguments
            )
        if "jobs" in wanted:
            with gateway(folders[1], engine_url) as (url, pid):
                results["jobs"] = asyncio.run(jobs(url, pid, arguments.documents, arguments.pages))
        if "queue" in wanted:
            with (
                gateway(folders[2], engine_url, GATEWAY__WORK="false") as (url, pid),
                gateway(folders[3], engine_url, GATEWAY__WORK="false") as (empty, _),
            ):
                results["queue"] = asyncio.run(queue(url, empty, pid))
    print(report(results))
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")
    if arguments.plot and "queue" in results:
        plot(results["queue"], arguments.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
