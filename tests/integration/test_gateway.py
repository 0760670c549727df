"""The service over real HTTP, with a store on disk, render processes, and an engine that reads nothing."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import re
import zipfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from fakes import FakeEngine
from gateway_app import Served, form, serving
from pagemill.api import convert_async
from pagemill.conversion import ConversionOptions, OutputFormat
from pagemill.domain import PageImage
from pagemill.domain.errors import EngineError
from pagemill.engines import create_engine
from pagemill.telemetry import configure_tracing, shutdown_tracing
from trace_collector import Collector

MakePdf = Callable[..., Path]


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path / "data", FakeEngine()) as served:
        yield served


@pytest.fixture
def pdf(make_pdf: MakePdf, tmp_path: Path) -> Path:
    return make_pdf(tmp_path / "report.pdf", pages=3)


def as_json(path: Path, **more: object) -> dict[str, object]:
    document = {"type": "file", "name": path.name, "data_base64": base64.b64encode(path.read_bytes()).decode()}
    return {"document": document, **more}


async def test_a_document_becomes_a_job_and_its_markdown(service: Served, pdf: Path) -> None:
    async with service.client.post("/v1/documents", data=form(pdf)) as response:
        accepted = await response.json()
        assert response.status == 202
        assert response.headers["Location"] == f"/v1/jobs/{accepted['id']}"
        assert response.headers["X-Request-Id"]
    job = await service.ended(accepted["id"])
    assert (job["status"], job["outcome"], job["name"], job["format"]) == ("succeeded", "success", "report.pdf", "pdf")
    assert job["pages"] == {"total": 3, "done": 3, "failed": 0}
    async with service.client.get(job["links"]["result"]) as response:
        markdown = await response.text()
        assert response.headers["X-Job-Status"] == "succeeded"
        assert 'filename="report.md"' in response.headers["Content-Disposition"]
    assert [f"<!-- page {number} -->" in markdown for number in (1, 2, 3)] == [True] * 3


async def test_results_are_the_files_of_convert(service: Served, pdf: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = ConversionOptions(formats=tuple(OutputFormat), render_workers=1)
    await convert_async(pdf, out, engine=FakeEngine(), options=options)
    job = await service.submit(pdf)
    await service.ended(job["id"])
    async with service.client.get(f"/v1/jobs/{job['id']}/result?format=zip") as response:
        packed = zipfile.ZipFile(io.BytesIO(await response.read()))
    assert packed.testzip() is None
    assert sorted(packed.namelist()) == sorted(
        ["report.md", "report.json", *(f"report.assets/{path.name}" for path in (out / "report.assets").iterdir())]
    )
    for name in packed.namelist():
        if name != "report.json":
            assert packed.read(name) == (out / name).read_bytes()
    converted, served = json.loads((out / "report.json").read_text()), json.loads(packed.read("report.json"))
    for document in (converted, served):
        for page in document["pages"]:
            page["duration_s"] = 0
    assert served == converted
    for suffix in ("md", "html", "txt"):
        text = await service.text(f"/v1/jobs/{job['id']}/result?format={suffix}")
        assert text == (out / f"report.{suffix}").read_text().replace("report.assets/", "figures/")


async def test_pages_and_pictures_can_be_had_one_by_one(service: Served, pdf: Path) -> None:
    job = await service.submit(pdf)
    await service.ended(job["id"])
    page = await service.json("GET", f"/v1/jobs/{job['id']}/pages/2")
    assert (page["page"], page["ok"]) == (2, True)
    picture = page["figures"][0]
    assert f"figures/{picture['name']}" in page["markdown"]
    async with service.client.get(f"/v1/jobs/{job['id']}/{picture['path']}") as response:
        assert response.content_type == "image/png"
        assert (await response.read()).startswith(b"\x89PNG")
    assert await service.error("GET", f"/v1/jobs/{job['id']}/pages/4", 404) == "job_not_found"
    assert await service.error("GET", f"/v1/jobs/{job['id']}/figures/p0001-other.png", 404) == "job_not_found"


async def test_only_the_pages_that_are_asked_for(service: Served, pdf: Path) -> None:
    job = await service.submit(pdf)
    await service.ended(job["id"])
    markdown = await service.text(f"/v1/jobs/{job['id']}/result?pages=1,3-")
    assert re.findall(r"<!-- page (\d)", markdown) == ["1", "3"]
    assert await service.error("GET", f"/v1/jobs/{job['id']}/result?pages=0", 422) == "invalid_request"


async def test_a_result_is_not_sent_again_to_who_has_it(service: Served, pdf: Path) -> None:
    job = await service.submit(pdf)
    await service.ended(job["id"])
    async with service.client.get(f"/v1/jobs/{job['id']}/result") as response:
        tag = response.headers["ETag"]
    headers = {"If-None-Match": tag}
    async with service.client.get(f"/v1/jobs/{job['id']}/result", headers=headers) as response:
        assert (response.status, await response.read()) == (304, b"")
    async with service.client.get(f"/v1/jobs/{job['id']}/result?pages=1", headers=headers) as response:
        assert response.status == 200


async def test_json_and_forms_say_the_same(service: Served, pdf: Path) -> None:
    options = {"pages": "2-", "page_markers": False, "temperature": 0.5}
    by_json = await service.json(
        "POST", "/v1/documents", status=202, json=as_json(pdf, options=options, priority="batch")
    )
    flat = await service.submit(pdf, pages="2-", page_markers="false", temperature="0.5", priority="batch")
    nested = await service.submit(pdf, options=json.dumps(options), priority="batch")
    named = {"document": {"type": "document_url", "document_url": "data:application/pdf;base64,"}, "options": options}
    named["document"]["document_url"] += base64.b64encode(pdf.read_bytes()).decode()
    by_url = await service.json("POST", "/v1/documents", status=202, json=named)
    assert by_json["options"] == flat["options"] == nested["options"] == by_url["options"] == options
    assert by_json["priority"] == flat["priority"] == nested["priority"] == "batch"
    assert len({job["sha256"] for job in (by_json, flat, nested, by_url)}) == 1
    assert (await service.ended(by_url["id"]))["pages"]["done"] == 2


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"pages": "none"}, "options.pages"),
        ({"temperature": "9"}, "options.temperature"),
        ({"unknown": "1"}, "unknown"),
        ({"options": "{"}, "options"),
        ({"options": '{"pages": "1"}', "pages": "1"}, "options"),
        ({"priority": "now"}, "priority"),
    ],
)
async def test_wrong_fields_are_named(service: Served, pdf: Path, fields: dict[str, str], param: str) -> None:
    answer = await service.json("POST", "/v1/documents", status=422, data=form(pdf, **fields))
    assert answer["error"]["code"] == "invalid_request"
    assert answer["error"]["param"] == param
    assert answer["error"]["remedy"]


async def test_what_is_no_document_is_refused_at_once_and_leaves_nothing(service: Served, tmp_path: Path) -> None:
    assert await service.error("POST", "/v1/documents", 415, data=form(b"PK\x03\x04 a zip")) == "unsupported_format"
    assert await service.error("POST", "/v1/documents", 422, data=form(b"")) == "corrupt_document"
    assert await service.error("POST", "/v1/documents", 422, data=b"%PDF-1.7 raw") == "invalid_request"
    assert await service.error("POST", "/v1/documents", 422, json={"document": {"type": "file"}}) == "invalid_request"
    assert (await service.json("GET", "/v1/jobs"))["data"] == []
    assert not list((tmp_path / "data" / "scratch").glob("request-*"))
    assert not list((tmp_path / "data" / "blobs").rglob("job_*"))


async def test_a_document_that_cannot_be_opened_fails_and_has_no_result(service: Served) -> None:
    job = await service.submit(b"%PDF-1.7\nno more than that\n")
    job = await service.ended(job["id"])
    assert (job["status"], job["outcome"], job["error"]["code"]) == ("failed", "failure", "corrupt_document")
    assert await service.error("GET", job["links"]["result"], 409) == "job_conflict"


async def test_the_same_idempotency_key_gives_the_same_job(service: Served, pdf: Path, make_pdf: MakePdf) -> None:
    other = make_pdf(pdf.with_name("other.pdf"), text="another")

    async def send(document: Path, status: int, **fields: str) -> str:
        headers = {"Idempotency-Key": "order-66"}
        answer = await service.json(
            "POST", "/v1/documents", status=status, data=form(document, **fields), headers=headers
        )
        return str(answer.get("id") or answer["error"]["code"])

    first = await send(pdf, 202)
    assert await send(pdf, 202) == first
    assert await send(other, 409) == "job_conflict"
    assert await send(pdf, 409, pages="1") == "job_conflict"
    assert len((await service.json("GET", "/v1/jobs"))["data"]) == 1
    kept = (await service.ended(first), list((service.services.scratch.parent / "blobs" / "documents").iterdir()))
    assert first in [blob.name for blob in kept[1]]


async def test_a_batch_is_taken_as_a_whole(service: Served, pdf: Path, make_pdf: MakePdf) -> None:
    other = make_pdf(pdf.with_name("other.pdf"), text="another")
    headers = {"Idempotency-Key": "batch-1"}
    batch = await service.json("POST", "/v1/batches", status=202, data=form(pdf, other), headers=headers)
    again = await service.json("POST", "/v1/batches", status=202, data=form(pdf, other), headers=headers)
    assert again["id"] == batch["id"]
    assert [job["name"] for job in batch["jobs"]] == ["report.pdf", "other.pdf"]
    assert {job["priority"] for job in batch["jobs"]} == {"batch"}
    for job in batch["jobs"]:
        await service.ended(job["id"])
    state = await service.json("GET", f"/v1/batches/{batch['id']}")
    assert (state["ended"], state["statuses"], state["pages"]["done"]) == (True, {"succeeded": 2}, 4)
    many = [make_pdf(pdf.with_name(f"{number}.pdf"), text=str(number)) for number in range(6)]
    named = await service.submit(*many, path="/v1/batches")
    state = await service.json("GET", f"/v1/batches/{named['id']}")
    assert [job["name"] for job in state["jobs"]] == [path.name for path in many]
    assert await service.error("POST", "/v1/batches", 415, data=form(pdf, b"no document")) == "unsupported_format"
    assert len((await service.json("GET", "/v1/jobs"))["data"]) == 8
    assert await service.error("GET", "/v1/batches/batch_0", 404) == "job_not_found"


async def test_lists_are_filtered_and_paged(service: Served, pdf: Path) -> None:
    ids = [(await service.submit(pdf))["id"] for _ in range(5)]
    for job_id in ids:
        await service.ended(job_id)
    found: list[str] = []
    cursor = ""
    while True:
        page = await service.json("GET", f"/v1/jobs?limit=2&status=succeeded{cursor}")
        found += [job["id"] for job in page["data"]]
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert found == ids[::-1]
    assert (await service.json("GET", "/v1/jobs?status=failed&status=queued"))["data"] == []
    assert (await service.json("GET", "/v1/jobs?created_after=2100-01-01T00:00:00Z"))["data"] == []
    assert len((await service.json("GET", "/v1/jobs?created_before=2100-01-01T00:00:00Z"))["data"]) == 5
    assert await service.error("GET", "/v1/jobs?cursor=mine", 422) == "invalid_request"


class Held:
    """Pages that wait until they are let go; some fail until they are mended."""

    def __init__(self, fail: set[int]) -> None:
        self.fail = fail
        self.go = asyncio.Event()

    def engine(self) -> FakeEngine:
        held = self

        class Engine(FakeEngine):
            async def recognize(self, page: PageImage, params: object) -> object:  # type: ignore[override]
                if page.index > 0:
                    await held.go.wait()
                if page.index in held.fail:
                    raise EngineError("This page cannot be read.")
                return await super().recognize(page, params)  # type: ignore[arg-type]

        return Engine()


async def test_a_running_job_tells_what_is_there_so_far(tmp_path: Path, pdf: Path) -> None:
    held = Held(set())
    async with serving(tmp_path / "data", held.engine()) as service:
        job = await service.submit(pdf)
        while (await service.json("GET", f"/v1/jobs/{job['id']}"))["pages"]["done"] < 1:
            await asyncio.sleep(0.02)
        state = await service.json("GET", f"/v1/jobs/{job['id']}")
        assert (state["status"], state["outcome"], state["pages"]) == (
            "running",
            None,
            {"total": 3, "done": 1, "failed": 0},
        )
        assert state["pages_per_s"] > 0
        assert state["eta_s"] > 0
        async with service.client.get(f"/v1/jobs/{job['id']}/result") as response:
            assert response.headers["X-Job-Status"] == "running"
            assert "ETag" not in response.headers
            assert re.findall(r"<!-- page (\d)", await response.text()) == ["1"]
        assert await service.error("GET", f"/v1/jobs/{job['id']}/pages/2", 409) == "job_conflict"
        held.go.set()
        assert (await service.ended(job["id"]))["status"] == "succeeded"


async def test_failed_pages_are_tried_again_and_good_ones_kept(tmp_path: Path, pdf: Path) -> None:
    held = Held({1})
    held.go.set()
    engine = held.engine()
    async with serving(tmp_path / "data", engine) as service:
        job = await service.submit(pdf)
        state = await service.ended(job["id"])
        assert (state["outcome"], state["pages"]) == ("partial_success", {"total": 3, "done": 2, "failed": 1})
        assert "<!-- page 2: failed (engine_error) -->" in await service.text(state["links"]["result"])
        held.fail.clear()
        engine.seen.clear()
        again = await service.json("POST", f"/v1/jobs/{job['id']}/retry", status=202)
        assert again["attempt"] == 2
        assert (await service.ended(job["id"]))["outcome"] == "success"
        assert engine.seen == [1]
        assert await service.error("POST", f"/v1/jobs/{job['id']}/retry", 409) == "job_conflict"


async def test_a_cancelled_job_frees_the_engine_and_keeps_its_pages(tmp_path: Path, pdf: Path) -> None:
    held = Held(set())
    engine = held.engine()
    async with serving(tmp_path / "data", engine) as service:
        job = await service.submit(pdf)
        while (await service.json("GET", f"/v1/jobs/{job['id']}"))["pages"]["done"] < 1:
            await asyncio.sleep(0.02)
        assert (await service.json("DELETE", f"/v1/jobs/{job['id']}"))["status"] == "cancelled"
        while service.services.gate.in_flight:
            await asyncio.sleep(0.02)
        assert re.findall(r"<!-- page (\d)", await service.text(f"/v1/jobs/{job['id']}/result")) == ["1"]
        unread = await service.json("GET", f"/v1/jobs/{job['id']}/pages/2", status=404)
        assert "no result of page 2" in unread["error"]["message"], "the document has that page"
        assert (await service.json("DELETE", f"/v1/jobs/{job['id']}"))["status"] == "cancelled"


async def read_events(service: Served, job_id: str, **headers: str) -> list[tuple[int, str, dict[str, object]]]:
    async with service.client.get(f"/v1/jobs/{job_id}/events", headers=headers) as response:
        assert response.status == 200
        assert response.content_type == "text/event-stream"
        text = await response.text()
    found = re.findall(r"id: (\d+)\nevent: (\w+)\ndata: (.*)\n\n", text)
    return [(int(number), kind, json.loads(data)) for number, kind, data in found]


async def test_events_tell_everything_once_and_go_on_where_they_broke_off(service: Served, pdf: Path) -> None:
    job = await service.submit(pdf)
    events = await read_events(service, job["id"])
    assert [kind for _, kind, _ in events] == ["queued", "started", "opened", "page", "page", "page", "succeeded"]
    assert sorted(data["page"] for _, kind, data in events if kind == "page") == [1, 2, 3]
    middle = events[3][0]
    assert await read_events(service, job["id"], **{"Last-Event-ID": str(middle)}) == events[4:]
    async with service.client.get(f"/v1/jobs/{job['id']}/events?last_event_id={events[-1][0]}") as response:
        assert response.status == 204


async def test_quiet_streams_say_that_they_live_and_end_with_the_process(
    tmp_path: Path, pdf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pagemill.gateway.routes.events._HEARTBEAT_S", 0.0)
    async with serving(tmp_path / "data", FakeEngine(), work=False) as service:
        job = await service.submit(pdf)
        async with service.client.get(f"/v1/jobs/{job['id']}/events") as stream:
            while (await stream.content.readline()) != b": still here\n":
                assert not stream.content.at_eof()
            service.server.request_stop()
            assert b"event: succeeded" not in await stream.read()


async def test_results_for_browsers_run_nothing(service: Served, pdf: Path) -> None:
    job = await service.submit(pdf)
    await service.ended(job["id"])
    async with service.client.get(f"/v1/jobs/{job['id']}/result?format=html") as response:
        assert "sandbox" in response.headers["Content-Security-Policy"]
        assert "default-src 'none'" in response.headers["Content-Security-Policy"]
        assert response.headers["Content-Disposition"].startswith("attachment")
        assert response.headers["X-Content-Type-Options"] == "nosniff"


async def test_no_more_event_streams_than_allowed(tmp_path: Path, pdf: Path) -> None:
    held = Held(set())
    async with serving(tmp_path / "data", held.engine(), limits={"streams": 1}) as service:
        job = await service.submit(pdf)
        async with service.client.get(f"/v1/jobs/{job['id']}/events") as stream:
            await stream.content.readline()
            assert await service.error("GET", f"/v1/jobs/{job['id']}/events", 429) == "queue_full"
        held.go.set()


async def test_a_full_queue_says_so_and_keeps_nothing(tmp_path: Path, pdf: Path) -> None:
    async with serving(tmp_path / "data", FakeEngine(), work=False, store={"max_queued": 1}) as service:
        await service.submit(pdf)
        async with service.client.post("/v1/documents", data=form(pdf)) as response:
            answer = (await response.json())["error"]
            assert (response.status, answer["code"], answer["queued"]) == (429, "queue_full", 1)
            assert int(response.headers["Retry-After"]) > 0
            assert response.headers["X-Queue-Length"] == "1"
        assert len(list((tmp_path / "data" / "blobs" / "documents").iterdir())) == 1


async def test_waiting_jobs_know_their_place(tmp_path: Path, pdf: Path) -> None:
    async with serving(tmp_path / "data", FakeEngine(), work=False) as service:
        jobs = [await service.submit(pdf) for _ in range(3)]
        states = [await service.json("GET", f"/v1/jobs/{job['id']}") for job in jobs]
        assert [state["queue_position"] for state in states] == [0, 1, 2]


async def test_what_was_deleted_is_gone(tmp_path: Path, pdf: Path) -> None:
    async with serving(tmp_path / "data", FakeEngine(), store={"result_ttl_s": 0.01, "lease_s": 1.5}) as service:
        job = await service.submit(pdf)
        while await service.status(f"/v1/jobs/{job['id']}") == 200:
            await asyncio.sleep(0.05)
        for path in ("", "/result", "/events", "/pages/1", "/figures/a.png"):
            assert await service.error("GET", f"/v1/jobs/{job['id']}{path}", 410) == "job_gone"


async def test_jobs_of_others_do_not_exist(tmp_path: Path, pdf: Path) -> None:
    async with serving(tmp_path / "data", FakeEngine(), auth="required") as service:
        keys = {name: (await service.services.keys.create(name))[1] for name in ("alice", "bob")}
        keys["root"] = (await service.services.keys.create("root", admin=True))[1]

        def as_(name: str) -> dict[str, str]:
            return {"Authorization": f"Bearer {keys[name]}"}

        assert await service.error("GET", "/v1/jobs", 401) == "invalid_api_key"
        assert await service.error("GET", "/v1/jobs", 401, headers={"X-API-Key": "pm_wrong"}) == "invalid_api_key"
        batch = await service.json("POST", "/v1/batches", status=202, data=form(pdf), headers=as_("alice"))
        job_id = batch["jobs"][0]["id"]
        for method, path in (
            ("GET", ""),
            ("DELETE", ""),
            ("POST", "/retry"),
            ("GET", "/events"),
            ("GET", "/result"),
            ("GET", "/pages/1"),
            ("GET", "/figures/p0001-figure-1.png"),
        ):
            assert await service.error(method, f"/v1/jobs/{job_id}{path}", 404, headers=as_("bob")) == "job_not_found"
        assert await service.error("GET", f"/v1/batches/{batch['id']}", 404, headers=as_("bob")) == "job_not_found"
        assert await service.error("DELETE", f"/v1/batches/{batch['id']}", 404, headers=as_("bob")) == "job_not_found"
        assert (await service.json("GET", "/v1/jobs", headers=as_("bob")))["data"] == []
        for name in ("alice", "root"):
            headers = {"X-API-Key": keys[name]}
            assert [job["id"] for job in (await service.json("GET", "/v1/jobs", headers=headers))["data"]] == [job_id]


async def test_a_key_that_is_made_while_the_service_runs_counts(service: Served) -> None:
    await service.json("GET", "/v1/jobs")
    _, key = await service.services.keys.create("first")
    while await service.status("/v1/jobs") == 200:
        await asyncio.sleep(0.05)
    await service.json("GET", "/v1/jobs", headers={"Authorization": f"Bearer {key}"})


async def test_health_metrics_and_version(service: Served, pdf: Path) -> None:
    await service.ended((await service.submit(pdf))["id"])
    assert await service.json("GET", "/health/live") == {"status": "ok"}
    assert (await service.json("GET", "/health/ready"))["ready"] is True
    assert (await service.json("GET", "/version"))["engine"] == "fake"
    metrics = await service.text("/metrics")
    assert 'pagemill_pages_total{code="",outcome="ok"} 3.0' in metrics
    assert 'pagemill_http_requests_total{method="POST",route="/v1/documents",status="202"} 1.0' in metrics
    for stage in ("render", "wait", "recognise", "store"):
        assert f'pagemill_stage_seconds_count{{stage="{stage}"}} 3.0' in metrics
    for name in ("jobs_queued", "queue_oldest_seconds", "gate_window_tokens", "build_info"):
        assert f"pagemill_{name}" in metrics


async def test_not_ready_says_why(tmp_path: Path) -> None:
    class Away(FakeEngine):
        async def health(self) -> object:  # type: ignore[override]
            from pagemill.engines import EngineHealth

            return EngineHealth(ready=False, detail="0 of 1 servers in use")

    async with serving(tmp_path / "data", Away(), work=False) as service:
        answer = await service.json("GET", "/health/ready", status=503)
        assert answer["ready"] is False
        assert answer["checks"]["engine"] == "0 of 1 servers in use"
        assert answer["checks"]["database"] == "ok"
        service.services.lifecycle.stop()
        answer = await service.json("GET", "/health/ready", status=503)
        assert answer["checks"]["accepting"] == "the process is stopping"


async def test_while_it_stops_it_answers_about_jobs_but_takes_none(tmp_path: Path, pdf: Path) -> None:
    held = Held(set())
    async with serving(tmp_path / "data", held.engine(), drain_s=60) as service:
        job = await service.submit(pdf)
        while (await service.json("GET", f"/v1/jobs/{job['id']}"))["pages"]["done"] < 1:
            await asyncio.sleep(0.02)
        service.server.request_stop()
        while not service.services.lifecycle.stopping:
            await asyncio.sleep(0.01)
        assert await service.error("POST", "/v1/documents", 503, data=form(pdf)) == "stopping"
        assert (await service.json("GET", f"/v1/jobs/{job['id']}"))["status"] == "running"
        held.go.set()
    async with serving(tmp_path / "data", FakeEngine(), work=False) as service:
        assert (await service.json("GET", f"/v1/jobs/{job['id']}"))["status"] == "succeeded"


async def test_work_that_is_not_done_in_time_is_handed_back_at_once(tmp_path: Path, pdf: Path) -> None:
    held = Held(set())
    async with serving(tmp_path / "data", held.engine(), drain_s=0, store={"lease_s": 3600}) as service:
        job = await service.submit(pdf)
        while (await service.json("GET", f"/v1/jobs/{job['id']}"))["pages"]["done"] < 1:
            await asyncio.sleep(0.02)
    engine = FakeEngine()
    async with serving(tmp_path / "data", engine, store={"lease_s": 3600}) as service:
        assert (await service.ended(job["id"]))["outcome"] == "success"
        assert sorted(engine.seen) == [1, 2]


async def test_one_trace_leads_from_the_request_to_its_pages(service: Served, pdf: Path, collector: Collector) -> None:
    trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    configure_tracing(collector.url, "pagemill-test", "1")
    headers = {"traceparent": f"00-{trace}-{parent}-01"}
    job = await service.json("POST", "/v1/documents", status=202, data=form(pdf), headers=headers)
    await service.ended(job["id"])
    shutdown_tracing()
    spans = [span for span in collector.spans() if span.trace_id.hex() == trace]
    assert sorted(span.name for span in spans) == ["gateway.request", "job.open", *["job.page"] * 3]
    request = next(span for span in spans if span.name == "gateway.request")
    assert request.parent_span_id.hex() == parent
    assert {span.parent_span_id for span in spans if span is not request} == {request.span_id}


@pytest.mark.slow
async def test_results_of_the_embedded_engine_are_the_files_of_convert(tmp_path: Path, examples: Path) -> None:
    documents = [examples / "two-column-article.pdf", examples / "invoice.pdf"]
    out = tmp_path / "out"
    await convert_async(documents, out, engine="embedded", options=ConversionOptions(render_workers=1))
    async with serving(tmp_path / "data", create_engine("embedded")) as service:
        for document in documents:
            job = await service.submit(document)
            await service.ended(job["id"])
            async with service.client.get(f"/v1/jobs/{job['id']}/result?format=zip") as response:
                packed = zipfile.ZipFile(io.BytesIO(await response.read()))
            for name in packed.namelist():
                if not name.endswith(".json"):
                    assert packed.read(name) == (out / name).read_bytes()
            assert f"{document.stem}.md" in packed.namelist()


@pytest.mark.slow
async def test_two_processes_on_postgres_answer_for_each_other(tmp_path: Path, pdf: Path, postgres: Any) -> None:
    shared = {"database": postgres.new_database(), "blobs": str(tmp_path / "blobs")}
    async with (
        serving(tmp_path / "front", FakeEngine(), work=False, **shared) as front,
        serving(tmp_path / "back", FakeEngine(), **shared) as back,
    ):
        job = await front.submit(pdf)
        assert (await front.ended(job["id"]))["outcome"] == "success"
        path = f"/v1/jobs/{job['id']}/result?format=zip"
        async with front.client.get(path) as one, back.client.get(path) as other:
            assert await one.read() == await other.read()
            assert one.headers["ETag"] == other.headers["ETag"]
        assert len((await back.json("GET", "/v1/jobs"))["data"]) == 1


async def test_documents_wait_for_an_engine_that_is_not_there_yet(tmp_path: Path, pdf: Path) -> None:
    from pagemill.domain.errors import EngineUnavailableError

    class Late(FakeEngine):
        async def start(self) -> None:
            await super().start()
            if self.starts < 3:
                raise EngineUnavailableError("No server answers.")

    async with serving(tmp_path / "data", Late()) as service:
        job = await service.submit(pdf)
        assert (await service.ended(job["id"]))["outcome"] == "success"
