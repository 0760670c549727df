from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fake_openai import Answer, FakeServer, Request
from pagemill import ConversionOptions, convert_async
from pagemill.domain import ConversionResult

MakePdf = Callable[..., Path]
ONE_AT_A_TIME = {"initial": 1, "fixed": True}


async def read(pdf: Path, server: FakeServer, page_timeout_s: float) -> ConversionResult:
    options = ConversionOptions(page_timeout_s=page_timeout_s, page_attempts=1)
    engine_options = {"endpoints": [server.url], "window": ONE_AT_A_TIME}
    (result,) = await convert_async(pdf, engine="openai", engine_options=engine_options, options=options)
    return result


async def test_pages_that_wait_their_turn_for_longer_than_a_page_may_take_are_not_late(
    tmp_path: Path, make_pdf: MakePdf
) -> None:
    async with FakeServer(lambda _request: Answer(delay_s=0.3)) as server:
        result = await read(make_pdf(tmp_path / "a.pdf", 8), server, 1.5)
    assert server.most_in_flight == 1
    assert all(page.ok for page in result.pages)


async def test_a_page_that_is_full_of_refusals_is_not_late_either(tmp_path: Path, make_pdf: MakePdf) -> None:
    def script(request: Request) -> Answer:
        return Answer(status=503, retry_after="1") if request.number < 3 else Answer()

    async with FakeServer(script) as server:
        result = await read(make_pdf(tmp_path / "a.pdf", 1), server, 1.5)
    assert len(server.requests) == 4
    assert all(page.ok for page in result.pages)


async def test_a_page_is_late_by_the_time_that_the_server_takes_for_it(tmp_path: Path, make_pdf: MakePdf) -> None:
    hangs = iter([True])

    async with FakeServer(lambda _request: Answer(hang=next(hangs, False))) as server:
        result = await read(make_pdf(tmp_path / "a.pdf", 4), server, 2.0)
    errors = [page.error.code for page in result.pages if page.error is not None]
    assert errors == ["engine_timeout"]
