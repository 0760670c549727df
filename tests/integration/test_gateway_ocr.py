"""The OCR API as Mistral's own client sees it, against the gateway on a real port."""

from __future__ import annotations

import asyncio
import base64
import io

import aiohttp
import pytest
from aiohttp import web
from mistralai.client import Mistral
from mistralai.client.errors import HTTPValidationError, MistralError
from PIL import Image

from fakes import FakeEngine
from gateway_service import serving, until
from pagemill.domain import JobStatus
from pagemill.domain.errors import EngineError
from pagemill.gateway.fetch import FetchOptions
from pagemill.jobs.store import JobFilter


def data_url(data, media_type="application/pdf"):
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"


@pytest.fixture
def pdf(make_pdf, tmp_path):
    return make_pdf(tmp_path / "a.pdf", pages=4).read_bytes()


@pytest.fixture
def document(pdf):
    return {"type": "document_url", "document_url": data_url(pdf), "document_name": "report.pdf"}


@pytest.fixture
def engine():
    return FakeEngine()


@pytest.fixture
async def service(engine, tmp_path):
    async with serving(tmp_path / "data", engine) as service:
        yield service


@pytest.fixture
async def client(service):
    async with Mistral(api_key="none", server_url=service.url) as client:
        yield client


async def jobs_of(service):
    found, _ = await service.services.jobs.search(JobFilter(), limit=10)
    return found


async def test_a_document_comes_back_page_by_page(client, service, document, pdf):
    answer = await client.ocr.process_async(model="mistral-ocr-latest", document=document)
    assert [page.index for page in answer.pages] == [0, 1, 2, 3]
    for number, page in enumerate(answer.pages, 1):
        assert page.markdown.startswith(f"Running head\n\n# Page {number}\n\nImage ")
        assert page.markdown.endswith(f"\n\n{number}")
        assert (page.header, page.footer) == (None, None)
        assert page.dimensions.height == 1540
        assert page.dimensions.dpi > 0
    assert answer.model == "pagemill-fake"
    assert answer.usage_info.pages_processed == 4
    assert answer.usage_info.doc_size_bytes == len(pdf)
    (job,) = await jobs_of(service)
    assert (job.name, job.status) == ("report.pdf", JobStatus.SUCCEEDED)


@pytest.mark.parametrize(
    ("pages", "read"), [([2], [2]), ([3, 0, 3], [0, 3]), ("0,2-3", [0, 2, 3]), ("1-99", [1, 2, 3]), ([], [0, 1, 2, 3])]
)
async def test_pages_count_from_0(client, document, pages, read):
    answer = await client.ocr.process_async(model=None, document=document, pages=pages)
    assert [page.index for page in answer.pages] == read
    assert [page.markdown.split("\n")[2] for page in answer.pages] == [f"# Page {index + 1}" for index in read]


async def test_pictures_headers_and_footers_as_asked_for(client, document):
    plain = await client.ocr.process_async(model="m", document=document, pages=[0, 1])
    assert [image.id for page in plain.pages for image in page.images] == ["img-0.png", "img-1.png"]
    assert plain.pages[1].images[0].image_base64 is None
    full = await client.ocr.process_async(
        model="m",
        document=document,
        pages=[0, 1],
        include_image_base64=True,
        image_limit=1,
        extract_header=True,
        extract_footer=True,
        include_blocks=False,
        confidence_scores_granularity="page",
    )
    first, second = full.pages
    assert (first.header, first.footer) == ("Running head", "1")
    assert first.markdown.startswith("# Page 1")
    assert "![img-0.png](img-0.png)" in first.markdown
    assert base64.b64decode(first.images[0].image_base64.removeprefix("data:image/png;base64,"))[:4] == b"\x89PNG"
    assert first.blocks is None
    assert first.confidence_scores.average_page_confidence_score == 0.9
    assert second.images == []
    assert "img" not in second.markdown


@pytest.mark.parametrize("as_object", [False, True])
async def test_images_are_documents_too(client, as_object):
    buffer = io.BytesIO()
    Image.new("L", (300, 200), 255).save(buffer, "PNG")
    url = data_url(buffer.getvalue(), "image/png")
    image = {"type": "image_url", "image_url": {"url": url} if as_object else url}
    answer = await client.ocr.process_async(model="m", document=image)
    assert [(page.dimensions.width, page.dimensions.height) for page in answer.pages] == [(300, 200)]


async def test_the_synchronous_client_works_as_well(service, document):
    def ask():
        with Mistral(api_key="none", server_url=service.url) as client:
            return client.ocr.process(model="m", document=document, pages=[1])

    assert len((await asyncio.to_thread(ask)).pages) == 1


async def test_a_page_that_failed_is_empty_and_named_beside(service, engine, document):
    def fail_second(page):
        if page.index == 1:
            raise EngineError("no such page")

    engine.behaviour = fail_second
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{service.url}/v1/ocr", json={"model": "m", "document": document}) as answer,
    ):
        assert answer.status == 200
        body = await answer.json()
    assert [bool(page["markdown"]) for page in body["pages"]] == [True, False, True, True]
    assert body["pages"][1]["dimensions"] is None
    assert body["usage_info"]["pages_processed"] == 3
    (failed,) = body["pagemill"]["failed_pages"]
    assert (failed["index"], failed["code"]) == (1, "engine_error")
    (job,) = await jobs_of(service)
    assert body["pagemill"]["job_id"] == job.id


async def test_the_client_reads_an_answer_with_failed_pages(client, engine, document):
    def fail_second(page):
        if page.index == 1:
            raise EngineError("no such page")

    engine.behaviour = fail_second
    answer = await client.ocr.process_async(model="m", document=document)
    assert [bool(page.markdown) for page in answer.pages] == [True, False, True, True]


async def test_a_document_of_which_nothing_was_read_is_an_error(client, engine, document):
    def fail(_page):
        raise EngineError("the engine is broken")

    engine.behaviour = fail
    with pytest.raises(MistralError, match="the engine is broken") as caught:
        await client.ocr.process_async(model="m", document=document, pages=[0])
    assert caught.value.status_code == 502


async def test_a_document_that_cannot_be_opened_is_an_error(client):
    broken = {"type": "document_url", "document_url": data_url(b"%PDF-1.7\nnothing more")}
    with pytest.raises(MistralError, match="corrupt_document") as caught:
        await client.ocr.process_async(model="m", document=broken)
    assert caught.value.status_code == 422


async def test_pages_that_the_document_does_not_have_are_an_error(client, document):
    with pytest.raises(HTTPValidationError, match="None of the pages"):
        await client.ocr.process_async(model="m", document=document, pages=[99])


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"document_annotation_format": {"type": "json_object"}}, "document_annotation_format"),
        ({"bbox_annotation_format": {"type": "json_object"}}, "bbox_annotation_format"),
        ({"confidence_scores_granularity": "word"}, "confidence_scores_granularity"),
        ({"pages": "x"}, "pages"),
        ({"pages": list(range(0, 2000, 2))}, "pages"),
        ({"document": {"type": "file", "file_id": "file-1"}}, "document.file_id"),
    ],
)
async def test_what_is_not_supported_is_said(client, service, document, fields, param):
    with pytest.raises(HTTPValidationError) as caught:
        await client.ocr.process_async(**{"model": "m", "document": document, **fields})
    assert f'"param":"{param}"' in caught.value.body
    assert await jobs_of(service) == []


async def test_other_documents_than_pdfs_and_images_are_refused_at_once(client, service):
    with pytest.raises(MistralError) as caught:
        await client.ocr.process_async(
            model="m", document={"type": "document_url", "document_url": data_url(b"PK\x03\x04 word")}
        )
    assert caught.value.status_code == 415
    assert await jobs_of(service) == []


async def test_urls_are_not_fetched_unless_the_service_allows_it(client, service):
    with pytest.raises(MistralError, match="forbidden_url") as caught:
        await client.ocr.process_async(
            model="m", document={"type": "document_url", "document_url": "https://example.com/a.pdf"}
        )
    assert caught.value.status_code == 403


async def test_urls_are_fetched_where_the_service_allows_it(engine, tmp_path, pdf):
    async def serve(_request):
        return web.Response(body=pdf, content_type="application/pdf")

    app = web.Application()
    app.router.add_get("/a.pdf", serve)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host = f"127.0.0.1:{runner.addresses[0][1]}"
    fetch = FetchOptions(enabled=True, allowed_hosts=(host,), allow_private=True)
    try:
        async with (
            serving(tmp_path / "data", engine, fetch=fetch) as service,
            Mistral(api_key="none", server_url=service.url) as client,
        ):
            document = {"type": "document_url", "document_url": f"http://{host}/a.pdf"}
            assert len((await client.ocr.process_async(model="m", document=document)).pages) == 4
    finally:
        await runner.cleanup()


async def test_keys_are_asked_for(engine, tmp_path, document):
    async with serving(tmp_path / "data", engine, auth="required") as service:
        _, key = await service.services.keys.create("alice")
        async with Mistral(api_key="wrong", server_url=service.url) as client:
            with pytest.raises(MistralError) as caught:
                await client.ocr.process_async(model="m", document=document)
            assert caught.value.status_code == 401
        async with Mistral(api_key=key, server_url=service.url) as client:
            assert len((await client.ocr.process_async(model="m", document=document)).pages) == 4


async def test_a_client_that_goes_takes_its_job_with_it(service, engine, document):
    engine.delay_s = 3600
    async with aiohttp.ClientSession() as session:
        asking = asyncio.create_task(session.post(f"{service.url}/v1/ocr", json={"document": document}))
        await until(lambda: engine.in_flight)
        asking.cancel()
        await until(lambda: not engine.in_flight)
    (job,) = await jobs_of(service)
    assert job.status is JobStatus.CANCELLED


async def test_with_an_idempotency_key_a_client_may_go_and_ask_again(service, engine, document):
    engine.delay_s = 3600
    call = {"json": {"document": document}, "headers": {"Idempotency-Key": "a"}}
    async with aiohttp.ClientSession() as session:
        asking = asyncio.create_task(session.post(f"{service.url}/v1/ocr", **call))
        await until(lambda: engine.in_flight)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        (job,) = await jobs_of(service)
        asking = asyncio.create_task(session.post(f"{service.url}/v1/ocr", **call))
        await service.services.jobs.cancel(job.id)
        answer = await asking
        assert answer.status == 409
        assert (await answer.json())["error"]["code"] == "job_conflict"
    assert [job.id for job in await jobs_of(service)] == [job.id]


async def test_a_service_that_stops_tells_where_the_result_will_be(engine, tmp_path, document):
    engine.delay_s = 3600
    async with aiohttp.ClientSession() as session:
        async with serving(tmp_path / "data", engine, drain_s=0.5) as service:
            asking = asyncio.create_task(session.post(f"{service.url}/v1/ocr", json={"document": document}))
            await until(lambda: engine.in_flight)
            (job,) = await jobs_of(service)
        answer = await asking
        assert answer.status == 503
        error = (await answer.json())["error"]
        assert error["code"] == "stopping"
        assert f"/v1/jobs/{job.id}/result" in error["message"]
