"""The gateway before real vLLM servers: ten clients at once, each gets its own text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from reportlab.pdfgen.canvas import Canvas

from gateway_process import GatewayProcess, running_gateway
from vllm_server import Serve, make_tiny_model

pytestmark = [pytest.mark.slow, pytest.mark.vllm, pytest.mark.timeout(600)]

CLIENTS = 10
PAGES = 3
PROSE = {
    "en": "The report is for the board and was not written by one of them, but by the people that know this house.",
    "de": "Der Bericht ist für den Vorstand und wurde nicht von einem der Herren, sondern mit Sorgfalt verfasst.",
}
TITLES = {"en": "Tiny Page 1", "de": "Kleine Seite 1"}


@pytest.fixture(scope="module")
def servers(vllm: Path, tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Serve]]:
    """A server for each language; their answers differ."""
    folder = tmp_path_factory.mktemp("servers")
    german = make_tiny_model(vllm, folder / "german" / "LightOnOCR-2-1B", TITLES["de"])
    started = {"en": Serve(vllm, tiny_model, folder / "en.jsonl"), "de": Serve(vllm, german, folder / "de.jsonl")}
    try:
        for server in started.values():
            server.wait_ready(1)
        yield started
    finally:
        for server in started.values():
            server.close()


@pytest.fixture
def gateway(servers: dict[str, Serve], tmp_path: Path) -> Iterator[GatewayProcess]:
    urls = {language: server.url for language, server in servers.items()}
    options = {
        "endpoints": list(urls.values()),
        "routes": [{"languages": [language], "endpoint": url} for language, url in urls.items()],
    }
    settings = {"ENGINE__NAME": "openai", "ENGINE__OPTIONS": json.dumps(options), "GATEWAY__PROCESSES": "2"}
    with running_gateway(tmp_path, **settings) as found:
        yield found


def document(path: Path, language: str) -> bytes:
    canvas = Canvas(str(path), pagesize=(595, 842))
    for number in range(PAGES):
        canvas.setFont("Helvetica", 9)
        for line in range(12):
            canvas.drawString(40, 780 - 20 * line, f"{PROSE[language]} {number}.{line}")
        canvas.showPage()
    canvas.save()
    return path.read_bytes()


def test_ten_clients_at_once_get_their_own_text(gateway: GatewayProcess, tmp_path: Path) -> None:
    languages = ["en", "de"] * (CLIENTS // 2)
    files = [document(tmp_path / f"{number}.pdf", language) for number, language in enumerate(languages)]

    def client(number: int) -> str:
        submitted = gateway.upload(files[number], f"{number}-{languages[number]}.pdf")
        assert submitted.status == 202, submitted.body
        job = gateway.ended(submitted.json["id"])
        assert job["status"] == "succeeded", job
        assert job["name"] == f"{number}-{languages[number]}.pdf"
        return gateway.call("GET", f"/v1/jobs/{job['id']}/result?format=md").body.decode()

    with ThreadPoolExecutor(CLIENTS) as pool:
        texts = list(pool.map(client, range(CLIENTS)))
    for language, text in zip(languages, texts, strict=True):
        other = "de" if language == "en" else "en"
        assert text.count(f"# {TITLES[language]}") == PAGES
        assert TITLES[other] not in text
        assert text.count("Signed in Kraków, 2 May 2024.") == PAGES
