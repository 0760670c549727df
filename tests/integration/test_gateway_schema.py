"""The service against its own description: schemathesis sends what it allows and what it does not."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.core.failures import Failure, FailureGroup
from typing_extensions import Self

from fake_openai import FakeServer
from gateway_app import Served, form, serving
from pagemill.engines.openai import create_engine

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    # The gateway in its thread draws random numbers while hypothesis looks out for strategies that do.
    pytest.mark.filterwarnings("ignore:Do not use the `random` module"),
]

_EXAMPLES = 20


class Background:
    """A gateway in a thread with a loop of its own: schemathesis calls it from outside."""

    def __init__(self, folder: Path, document: Path) -> None:
        self.url = ""
        self.key = ""
        self.job = ""
        self._folder = folder
        self._pdf = document.read_bytes()
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._end = asyncio.Event()
        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._run()))

    async def _run(self) -> None:
        try:
            async with self._serve() as served:
                self.url = served.url
                _, self.key = await served.services.keys.create("schemathesis")
                served.client.headers["Authorization"] = f"Bearer {self.key}"
                job = await served.json("POST", "/v1/batches", status=202, data=form(self._pdf))
                self.job = job["jobs"][0]["id"]
                await served.ended(self.job)
                self._ready.set()
                await self._end.wait()
        finally:
            self._ready.set()

    @contextlib.asynccontextmanager
    async def _serve(self) -> AsyncIterator[Served]:
        limits = {"body_bytes": 100_000, "json_bytes": 100_000}
        async with FakeServer() as openai:
            engine = create_engine({"endpoints": [openai.url]})
            async with serving(self._folder, engine, auth="required", limits=limits) as served:
                yield served

    def make_good(self, case: Any) -> None:
        """Puts in what no description can say: a job that is there, a document that is one, ranges that are some."""
        if "job_id" in case.path_parameters:
            case.path_parameters["job_id"] = self.job
        if case.query.get("pages") is not None:
            case.query["pages"] = "1-"
        case.query.pop("cursor", None)
        body = case.body
        if isinstance(body, dict):
            options = body.get("options") if isinstance(body.get("options"), dict) else body
            if "pages" in options:
                options["pages"] = [0] if case.path == "/v1/ocr" else "1-"
            if case.media_type == "multipart/form-data":
                body.pop("options", None)
                body["file"] = [self._pdf] if case.path == "/v1/batches" else self._pdf
            elif "document" in body:
                url = "data:application/pdf;base64," + base64.b64encode(self._pdf).decode()
                # Word by word is in the API that this one is like, but not here.
                body.pop("confidence_scores_granularity", None)
                body["document"] = {"type": "document_url", "document_url": url}

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()
        self._loop.close()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, make_pdf: Callable[..., Path]) -> Iterator[Background]:
    folder = tmp_path_factory.mktemp("schema")
    with Background(folder / "data", make_pdf(folder / "a.pdf", pages=2)) as background:
        assert background.url
        yield background


@pytest.fixture(scope="module")
def description(service: Background) -> Any:
    return schemathesis.openapi.from_url(f"{service.url}/openapi.json")


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: str(mode.value))
def test_answers_are_as_the_description_says(description: Any, service: Background, mode: GenerationMode) -> None:
    problems = []
    for found in description.get_all_operations():
        operation = found.ok()
        if operation.path == "/v1/chat/completions":
            # What it answers is what the server behind it answers.
            continue
        if mode is GenerationMode.NEGATIVE and not (operation.body or any(operation.iter_parameters())):
            continue

        @settings(
            max_examples=_EXAMPLES,
            derandomize=True,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def check(case: Any) -> None:
            if mode is GenerationMode.POSITIVE:
                service.make_good(case)
            case.call_and_validate(headers={"Authorization": f"Bearer {service.key}"})

        try:
            check()
        except Unsatisfiable:
            continue
        except (Failure, FailureGroup) as error:
            problems.append(f"{operation.label}: {error}")
    assert not problems, "\n\n".join(problems)


def test_the_description_is_complete(description: Any) -> None:
    raw = description.raw_schema
    assert {"HTTPBearer", "APIKeyHeader"} <= raw["components"]["securitySchemes"].keys()
    for path, methods in raw["paths"].items():
        for operation in methods.values():
            assert operation["operationId"]
            assert operation.get("summary")
            for status, answer in operation["responses"].items():
                assert answer["description"], (path, status)
            if path.startswith("/v1/"):
                assert operation["security"] == [{"HTTPBearer": []}, {"APIKeyHeader": []}]
                envelope = operation["responses"]["404"]["content"]["application/json"]["schema"]["$ref"]
                assert envelope == "#/components/schemas/ErrorEnvelope"
