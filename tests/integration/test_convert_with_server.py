"""`pagemill convert` against a fake server: what happens to documents when the model misbehaves."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

from fake_openai import Answer, FakeServer, Request
from pagemill import ConversionOptions, convert_async
from pagemill.domain import ConversionStatus, PageFlag

MakePdf = Callable[..., Path]


async def test_auto_takes_the_server_that_is_named(tmp_path: Path, make_pdf: MakePdf) -> None:
    async with FakeServer(lambda r: Answer(f"# Text {r.number}\n")) as server:
        (result,) = await convert_async(
            make_pdf(tmp_path / "a.pdf", 3), tmp_path / "out", engine_options={"endpoints": [server.url]}
        )
    assert result.status is ConversionStatus.SUCCESS
    assert result.engine == "openai lightonocr on vllm 0.30.0"
    assert len(server.requests) == 3


async def test_blank_pages_are_never_sent(tmp_path: Path) -> None:
    from reportlab.pdfgen.canvas import Canvas

    canvas = Canvas(str(tmp_path / "a.pdf"))
    canvas.showPage()
    canvas.drawString(100, 500, "Print")
    canvas.showPage()
    canvas.save()
    async with FakeServer() as server:
        (result,) = await convert_async(tmp_path / "a.pdf", engine_options={"endpoints": [server.url]})
    assert result.pages[0].flags == (PageFlag.BLANK,)
    assert "<!-- page 1: blank -->" in result.markdown
    assert len(server.requests) == 1


async def test_a_page_whose_text_cannot_be_drawn_is_not_called_blank(tmp_path: Path) -> None:
    from reportlab.pdfbase import pdfmetrics
    from reportlab.pdfbase.cidfonts import UnicodeCIDFont
    from reportlab.pdfgen.canvas import Canvas

    pdfmetrics.registerFont(UnicodeCIDFont("STSong-Light"))
    canvas = Canvas(str(tmp_path / "a.pdf"))
    canvas.setFont("STSong-Light", 30)
    canvas.drawString(100, 500, "这里有文字")
    canvas.save()
    async with FakeServer() as server:
        (result,) = await convert_async(tmp_path / "a.pdf", engine_options={"endpoints": [server.url]})
    (page,) = result.pages
    # Whether it is drawn depends on the fonts of this machine.
    if page.error is not None:
        assert page.error.code == "corrupt_document"
        assert "STSong-Light" in page.error.message
    assert (page.error is None) == (len(server.requests) > 0)


async def test_a_page_that_always_loops_is_partial_and_the_rest_is_good(tmp_path: Path, make_pdf: MakePdf) -> None:
    loops: set[bytes] = set()

    def script(request: Request) -> Answer:
        if not loops:
            loops.add(request.image[:200])
        if request.image[:200] in loops or "loop" in request.headers:
            return Answer("A good beginning of the page.\n\n" + "Round and round it goes again. " * 400, "length")
        return Answer("# Good\n")

    async with FakeServer(script) as server:
        (result,) = await convert_async(
            make_pdf(tmp_path / "a.pdf", 1),
            engine_options={"endpoints": [server.url], "window": {"initial": 1, "fixed": True}},
            options=ConversionOptions(readings=3),
        )
    (page,) = result.pages
    assert len(server.requests) == 3
    assert not page.ok
    assert page.markdown.startswith("A good beginning of the page.")
    assert len(page.markdown) < 200
    assert result.status is ConversionStatus.PARTIAL_SUCCESS
    assert "<!-- page 1: incomplete (degenerate_output) -->" in result.markdown


async def test_answers_of_pages_are_never_mixed(tmp_path: Path, make_pdf: MakePdf) -> None:
    """Two documents whose pages differ, all in flight together; the server answers in any order."""
    import hashlib

    def script(request: Request) -> Answer:
        digest = hashlib.sha256(request.image).hexdigest()
        return Answer(f"image {digest}\n", delay_s=int(digest[:2], 16) / 5000)

    make_pdf(tmp_path / "in" / "a.pdf", 25, text="one")
    make_pdf(tmp_path / "in" / "b.pdf", 25, text="other")
    async with FakeServer(script) as server:
        options = {"endpoints": [server.url], "window": {"initial": 50}}
        first = await convert_async(tmp_path / "in", tmp_path / "out", engine_options=options)
    assert len({request.image for request in server.requests}) == 50
    texts = [page.markdown for result in first for page in result.pages]
    assert len(set(texts)) == 50
    async with FakeServer(script) as server:
        options = {"endpoints": [server.url], "window": {"initial": 1, "fixed": True}}
        second = await convert_async(tmp_path / "in", tmp_path / "out2", engine_options=options)
    by_name = {result.source.name: result.markdown for result in second}
    assert {result.source.name: result.markdown for result in first} == by_name


async def test_the_command_takes_an_endpoint(tmp_path: Path, make_pdf: MakePdf, run_cli: Callable[..., object]) -> None:
    path = make_pdf(tmp_path / "a.pdf", 2)
    async with FakeServer() as server:
        done = await asyncio.to_thread(run_cli, "convert", path, "-o", tmp_path / "out", "--endpoint", server.url)
    assert done.returncode == 0, done.stderr  # type: ignore[attr-defined]
    assert f"the model at {server.url}" in done.stderr.replace("\n", " ")  # type: ignore[attr-defined]
    assert json.loads((tmp_path / "out" / "a.json").read_text())["engine"]["name"] == "openai"


async def test_no_server_is_said_at_once(tmp_path: Path, make_pdf: MakePdf, run_cli: Callable[..., object]) -> None:
    done = await asyncio.to_thread(
        run_cli, "convert", make_pdf(tmp_path / "a.pdf"), "--endpoint", "http://127.0.0.1:9/v1", cwd=tmp_path
    )
    assert done.returncode == 1  # type: ignore[attr-defined]
    assert "No server answers" in done.stderr  # type: ignore[attr-defined]
