"""The OCR API of Mistral: a document in, its pages out, in one request."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Header, Request
from fastapi.responses import StreamingResponse
from pydantic import ValidationError
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from pagemill.documents import PageSelection
from pagemill.domain import Job, JobStatus, PageError
from pagemill.domain.errors import DegenerateOutputError, JobConflictError, RequestError, StoppingError
from pagemill.gateway.auth import CallerDependency
from pagemill.gateway.disconnect import unless_gone
from pagemill.gateway.errors import error_responses, page_error_response
from pagemill.gateway.mistral import (
    FailedPage,
    FileChunk,
    OcrEnd,
    OcrExtra,
    OcrRequest,
    OcrResponse,
    OcrUsage,
    OcrWishes,
    page_ranges,
)
from pagemill.gateway.mistral_pages import PageShaper
from pagemill.gateway.results import JobPages
from pagemill.gateway.routes.openai import model_name
from pagemill.gateway.runtime import Services, ServicesDependency
from pagemill.gateway.schemas import UrlDocument, Wishes
from pagemill.gateway.submission import Order, submit
from pagemill.gateway.uploads import Upload, parse_body, scratch_folder, spool_body, take_inline, take_remote
from pagemill.jobs.options import DocumentOptions
from pagemill.jobs.page_codec import DecodedPage

router = APIRouter(tags=["mistral"])

_FIRST_LOOK_S, _LONGEST_LOOK_S = 0.02, 0.5
_LOOK_SHARE = 0.1
"""Next look after this share of the time so far: the answer is late by no more."""
_DRAIN_SHARE = 0.8


@router.post(
    "/v1/ocr",
    operation_id="ocr",
    response_class=Response,
    responses={**error_responses(409, 415, 502, 504), 200: {"model": OcrResponse, "description": "The pages."}},
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/OcrRequest"}}},
        }
    },
)
async def ocr(
    request: Request,
    services: ServicesDependency,
    caller: CallerDependency,
    idempotency_key: Annotated[str | None, Header(pattern=r"^[!-~]{1,255}$")] = None,
) -> Response:
    """Reads a document and answers when all its pages are done; for large ones, /v1/documents is better.

    The document becomes a job like any other. It is cancelled when the client goes before the answer, unless the
    request has an idempotency key, under which the client may ask again.
    """
    with scratch_folder(services.scratch) as folder:
        asked, upload = await _read(request, services, folder)
        order = Order(Wishes(options=_options(asked)), idempotency_key, request.state.request_id)
        [job] = await submit(services, caller, [upload], order)
    try:
        job = await unless_gone(request.receive, _ended(services, job))
    except ClientDisconnect:
        if idempotency_key is None:
            await services.jobs.cancel(job.id)
        raise
    if job.status is JobStatus.CANCELLED:
        raise JobConflictError(f"{job.id} was cancelled.", "Send the document again.")
    if not job.pages_done:
        return page_error_response(await _why(services, job))
    return StreamingResponse(_pieces(services, job, asked), media_type="application/json")


async def _read(request: Request, services: Services, folder: Path) -> tuple[OcrWishes, Upload]:
    """What is wanted, and the document; it is in memory only while this lasts."""
    path = await spool_body(request, folder)
    async with services.heavy:
        asked = await parse_body(OcrRequest, path)
        asked.check()
        if isinstance(asked.document, FileChunk):
            raise RequestError(
                "Files are not kept for later requests.",
                "Send the document itself, as a data: URL in document_url.",
                param="document.file_id",
            )
        document = UrlDocument(type="document_url", document_url=asked.document.url, name=asked.document.document_name)
        upload = await take_inline(document, folder, services.options)
    return asked.wishes, upload or await take_remote(document.document_url, document.name, folder, services.options)


def _options(asked: OcrWishes) -> DocumentOptions:
    try:
        return DocumentOptions(pages=page_ranges(asked.pages))
    except ValidationError:
        raise RequestError("pages names too many pages apart.", "Ask for fewer at once.", param="pages") from None


async def _ended(services: Services, job: Job) -> Job:
    """The job once it has ended.

    Raises:
        StoppingError: The process stops before that.
    """
    started = time.monotonic()
    stop_at = math.inf
    while not job.status.ended:
        waited = time.monotonic() - started
        pause = min(_LONGEST_LOOK_S, max(_FIRST_LOOK_S, waited * _LOOK_SHARE))
        if services.lifecycle.stopping:
            stop_at = min(stop_at, time.monotonic() + services.options.drain_s * _DRAIN_SHARE)
            if time.monotonic() >= stop_at:
                raise StoppingError(
                    f"The service is stopping; {job.id} goes on.", f"Its result will be at /v1/jobs/{job.id}/result."
                )
            await asyncio.sleep(pause)
        else:
            await services.lifecycle.stopped(pause)
        job = await services.jobs.get(job.id)
    return job


async def _why(services: Services, job: Job) -> PageError:
    """Why nothing of a document was read."""
    if job.error is not None:
        return job.error
    for stored in await services.jobs.pages(job.id, limit=1):
        if stored.error is not None:
            return stored.error
    return PageError(DegenerateOutputError.code, f"No page of {job.id} could be read.")


async def _pieces(services: Services, job: Job, asked: OcrWishes) -> AsyncIterator[bytes]:
    """An `OcrResponse`, written page by page, so that no long document stands in memory."""
    shaper = PageShaper(asked)
    failed: list[FailedPage] = []
    separator = b'{"pages":['
    async for page in JobPages(services, job, PageSelection()).levelled():
        if not page.result.ok:
            error = page.result.error
            code = page.result.finish_reason.value if error is None else error.code
            failed.append(
                FailedPage(index=page.result.index, code=code, message="" if error is None else error.message)
            )
        yield separator + await _shaped(services, shaper, page)
        separator = b","
    rest = OcrEnd(
        model=model_name(services),
        usage_info=OcrUsage(pages_processed=job.pages_done, doc_size_bytes=job.size),
        pagemill=OcrExtra(job_id=job.id, failed_pages=failed),
    )
    yield b"]," + rest.model_dump_json().encode()[1:]


async def _shaped(services: Services, shaper: PageShaper, page: DecodedPage) -> bytes:
    data: dict[str, bytes] = {}
    if shaper.request.include_image_base64:
        for figure in shaper.wanted_figures(page.result):
            content = await services.blobs.get_bytes(page.blobs[figure.name]) if figure.name in page.blobs else None
            if content is not None:
                data[figure.name] = content
    return await asyncio.to_thread(
        lambda: shaper.shape(page.page, page.result, data).model_dump_json().encode("utf-8", "replace")
    )
