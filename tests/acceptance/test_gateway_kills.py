"""Four gateways, killed at random moments while documents come in: none is lost, none doubled, none wrong."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from gateway_process import form, free_port
from marked_engine import mark_of
from pagemill.documents import RenderOptions, RenderPool
from pagemill.domain import DocumentSource

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

MakePdf = Callable[..., Path]

PROCESSES = 4
KILLS = 32
ENGINE_KILLS = 3
DOCUMENTS = 30
SIZES = (1, 1, 2, 3, 7, 12)
DELAY_S = 0.15
MILLISECOND = 0.001  # to which events tell their time


@dataclass
class Restarted:
    """A process that is started anew whenever it was killed."""

    command: list[str]
    environment: dict[str, str]
    log: Path
    process: subprocess.Popen[bytes] = field(init=False)

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command, env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.start()

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


class Service:
    """Processes of the gateway on one store, and the engine behind them."""

    def __init__(self, folder: Path, store_url: str) -> None:
        self.engine_log = folder / "engine.log"
        self.engine_log.touch()
        port = free_port()
        tests = Path(__file__).resolve().parents[1]
        self.engine = Restarted(
            [sys.executable, str(tests / "marked_engine.py"), str(port), str(self.engine_log), str(DELAY_S)],
            {**os.environ, "PYTHONPATH": str(tests)},
            folder / "engine.err",
        )
        environment = {
            **os.environ,
            "PAGEMILL_ENGINE__OPTIONS": json.dumps({"model": "lightonocr", "connect_timeout_s": 2}),
            "PAGEMILL_CONVERSION__ENHANCE": "off",
            "PAGEMILL_CONVERSION__ORIENT": "false",
            "PAGEMILL_CONVERSION__RENDER_WORKERS": "1",
            "PAGEMILL_GATEWAY__DATA": str(folder / "data"),
            "PAGEMILL_GATEWAY__DATABASE": store_url,
            "PAGEMILL_GATEWAY__STORE__LEASE_S": "2",
            "PAGEMILL_GATEWAY__STORE__MAX_TAKEOVERS": "100",
        }
        self.ports = [free_port() for _ in range(PROCESSES)]
        endpoint = f"http://127.0.0.1:{port}/v1"
        self.gateways = [
            Restarted(
                [sys.executable, "-m", "pagemill", "gateway", "--port", str(own), "--endpoint", endpoint],
                environment,
                folder / f"gateway-{number}.log",
            )
            for number, own in enumerate(self.ports)
        ]

    def call(self, port: int, path: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> Any:
        """An answer as JSON; None where the process is not there, or dies before it has answered."""
        request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body, headers or {})
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            with error:
                text = error.read().decode()
            if error.code in (429, 503):
                return None
            raise AssertionError(f"{error.code}: {text}") from error
        except (OSError, ValueError, EOFError):
            return None
        except urllib.error.URLError:
            return None

    def insist(self, chance: random.Random, path: str, body: bytes | None = None, **headers: str) -> Any:
        """Asks one process after the other until one answers."""
        while True:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            answer = self.call(chance.choice(self.ports), path, body, named)
            if answer is not None:
                return answer
            time.sleep(0.05)

    def end(self) -> None:
        for process in (*self.gateways, self.engine):
            process.end()


@pytest.fixture
def service(tmp_path: Path, store_url: str) -> Iterator[Service]:
    service = Service(tmp_path, store_url)
    yield service
    service.end()


async def marks_of(pdf: Path, pages: int) -> list[str]:
    """What each page's answer must name."""
    async with RenderPool(RenderOptions(), workers=1) as pool:
        source = DocumentSource(pdf, pdf.name)
        info = await pool.inspect(source)
        assert len(info.pages) == pages
        return [mark_of((await pool.render(source, page)).data) for page in info.pages]


def kill_at_random(service: Service, chance: random.Random, done: threading.Event) -> int:
    """Kills processes of the service until enough are killed; gives the number."""
    kills = 0
    engine_at = set(chance.sample(range(4, KILLS), ENGINE_KILLS))
    while kills < KILLS:
        if done.wait(chance.uniform(0.2, 1.6)):
            break
        victims = [chance.choice(service.gateways)]
        if kills % 10 == 9:
            victims = service.gateways  # all at the same moment
        for victim in victims:
            victim.process.send_signal(signal.SIGKILL)
        for victim in victims:
            victim.kill()
        if kills in engine_at:
            service.engine.kill()
        kills += 1
    return kills


def test_nothing_is_lost_doubled_or_wrong(service: Service, make_pdf: MakePdf, tmp_path: Path) -> None:
    chance = random.Random(20261201)
    submitted: dict[str, list[str]] = {}
    over = threading.Event()
    killed: list[int] = []
    killer = threading.Thread(
        target=lambda: killed.append(kill_at_random(service, random.Random(7), over)), daemon=True
    )
    service.insist(chance, "/health/live")
    killer.start()
    try:
        # As long as there are kills there are documents.
        for number in itertools.takewhile(lambda n: n < DOCUMENTS or killer.is_alive(), itertools.count()):
            pages = chance.choice(SIZES)
            pdf = make_pdf(tmp_path / "in" / f"{number}.pdf", pages, text=f"document {number}")
            body, media_type = form([("file", pdf.name, pdf.read_bytes())], {})
            job = service.insist(
                chance, "/v1/documents", body, Content_Type=media_type, Idempotency_Key=f"document-{number}"
            )
            assert job["id"] not in submitted
            submitted[job["id"]] = asyncio.run(marks_of(pdf, pages))
        ended = {job_id: wait_for_end(service, chance, job_id) for job_id in submitted}
    finally:
        over.set()
        killer.join(60)
    assert killed[0] >= 30
    stored_at = check_results(service, chance, submitted, ended)
    check_recognitions(service, stored_at)


def wait_for_end(service: Service, chance: random.Random, job_id: str) -> Any:
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        job = service.insist(chance, f"/v1/jobs/{job_id}")
        if job["status"] in ("succeeded", "failed", "cancelled"):
            return job
        time.sleep(0.05)
    raise AssertionError(job)


def check_results(
    service: Service, chance: random.Random, submitted: dict[str, list[str]], ended: dict[str, Any]
) -> dict[str, float]:
    """Every job has all its pages, each with its own text; gives when each page was stored."""
    listed = service.insist(chance, "/v1/jobs?limit=500")["data"]
    assert sorted(job["id"] for job in listed) == sorted(submitted)
    stored_at: dict[str, float] = {}
    for job_id, marks in submitted.items():
        job = ended[job_id]
        assert job["status"] == "succeeded", job
        assert job["pages"] == {"total": len(marks), "done": len(marks), "failed": 0}
        result = service.insist(chance, f"/v1/jobs/{job_id}/result?format=json")
        assert [page["markdown"].split() for page in result["pages"]] == [["#", "Page", mark] for mark in marks]
        pages = page_events(service, chance, job_id)
        assert sorted(event["page"] for event in pages) == list(range(1, len(marks) + 1))
        for event in pages:
            stored_at[marks[event["page"] - 1]] = datetime.fromisoformat(event["at"].replace("Z", "+00:00")).timestamp()
    return stored_at


def page_events(service: Service, chance: random.Random, job_id: str) -> list[Any]:
    """What was told of the pages of a job that has ended."""
    while True:
        request = urllib.request.Request(f"http://127.0.0.1:{chance.choice(service.ports)}/v1/jobs/{job_id}/events")
        with contextlib.suppress(OSError), urllib.request.urlopen(request, timeout=60) as response:
            events = [event.splitlines() for event in response.read().decode().split("\n\n")]
            return [json.loads(event[2].removeprefix("data: ")) for event in events if "event: page" in event]


def check_recognitions(service: Service, stored_at: dict[str, float]) -> None:
    """No page was given to the engine once its result was stored, and none was read by nobody."""
    begun: dict[str, list[float]] = defaultdict(list)
    for line in service.engine_log.read_text().splitlines():
        mark, started = line.split()
        begun[mark].append(float(started))
    assert set(begun) == set(stored_at)
    for mark, times in begun.items():
        late = [at for at in times if at > stored_at[mark] + MILLISECOND]
        assert not late, f"{mark} was stored at {stored_at[mark]} and read again at {late}"
