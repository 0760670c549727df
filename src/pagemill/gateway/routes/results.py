"""What has become of a document: as a file, page by page, and its pictures."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import PurePath
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query, Response
from fastapi.responses import JSONResponse, StreamingResponse

from pagemill.conversion.export import page_entry
from pagemill.documents import PageSelection
from pagemill.domain import Job
from pagemill.domain.errors import ConfigurationError, JobConflictError, JobNotFoundError, RequestError
from pagemill.gateway.auth import CallerDependency
from pagemill.gateway.errors import error_responses
from pagemill.gateway.names import attachment
from pagemill.gateway.results import FIGURES, ResultFormat, stream_result
from pagemill.gateway.routes.jobs import JobId
from pagemill.gateway.runtime import Services, ServicesDependency
from pagemill.jobs.options import conversion_options
from pagemill.jobs.page_codec import decode_page

router = APIRouter(tags=["results"])

_AT_ONCE = 50
_SANDBOX = "default-src 'none'; img-src 'self' data:; style-src 'unsafe-inline'; sandbox"
_STATUS_HEADER = {"X-Job-Status": {"description": "Where the job stands.", "schema": {"type": "string"}}}
_CONTENT = {
    "text/markdown": {"schema": {"type": "string"}},
    "application/json": {"schema": {"type": "object"}},
    "text/html": {"schema": {"type": "string"}},
    "text/plain": {"schema": {"type": "string"}},
    "application/zip": {"schema": {"type": "string", "format": "binary"}},
}


@router.get(
    "/v1/jobs/{job_id}/result",
    operation_id="jobResult",
    response_class=Response,
    responses={
        **error_responses(409, 410),
        200: {"description": "What is there so far.", "content": _CONTENT, "headers": _STATUS_HEADER},
        304: {"description": "As in `If-None-Match`."},
    },
)
async def job_result(
    job_id: JobId,
    services: ServicesDependency,
    caller: CallerDependency,
    result_format: Annotated[ResultFormat, Query(alias="format")] = ResultFormat.MARKDOWN,
    pages: Annotated[str | None, Query(max_length=1000, description="Page ranges such as `1-3,7`.")] = None,
    if_none_match: Annotated[str | None, Header(max_length=1000)] = None,
) -> Response:
    """The result of a job; while it runs, the pages that are done. Links to pictures lead to `figures/`."""
    selection = _selection(pages)
    job = await services.jobs.get(job_id, caller.scope)
    _refuse_unread(job)
    headers = {
        "X-Job-Status": job.status.value,
        "Content-Disposition": attachment(f"{PurePath(job.name).stem}.{result_format.value}"),
    }
    if job.status.ended:
        headers["ETag"] = _tag(job, result_format, selection)
        headers["Cache-Control"] = "private, no-cache"
        if if_none_match is not None and headers["ETag"] in if_none_match:
            return Response(status_code=304, headers=headers)
    if result_format is ResultFormat.HTML:
        headers["Content-Security-Policy"] = _SANDBOX
    pieces = await _begun(stream_result(services, job, result_format, selection))
    return StreamingResponse(pieces, media_type=result_format.media_type, headers=headers)


@router.get(
    "/v1/jobs/{job_id}/pages/{number}",
    operation_id="jobPage",
    responses={
        **error_responses(409, 410),
        200: {"description": "The page.", "content": {"application/json": {"schema": {"type": "object"}}}},
    },
)
async def job_page(
    job_id: JobId,
    number: Annotated[int, Path(ge=1, le=2**31, description="Number of the page in the document, from 1.")],
    services: ServicesDependency,
    caller: CallerDependency,
) -> JSONResponse:
    """One page, as in the JSON result; levels of its headings are those that it has alone."""
    job = await services.jobs.get(job_id, caller.scope)
    _refuse_unread(job)
    [*stored] = await services.jobs.pages(job_id, first=number - 1, limit=1)
    if not stored or stored[0].index != number - 1:
        if job.status.ended:
            raise JobNotFoundError(
                f"{job.id} has no result of page {number}.", "Its JSON result names the pages that were read."
            )
        raise JobConflictError(f"Page {number} of {job.id} was not read yet.", "Try again, or follow its events.")
    options = conversion_options(services.conversion, job.options)
    page = await asyncio.to_thread(decode_page, stored[0])
    return JSONResponse(page_entry(page.result, options, FIGURES), headers={"X-Job-Status": job.status.value})


@router.get(
    "/v1/jobs/{job_id}/figures/{name}",
    operation_id="jobFigure",
    response_class=Response,
    responses={
        **error_responses(409, 410),
        200: {"description": "The picture.", "content": {"image/*": {"schema": {"type": "string"}}}},
    },
)
async def job_figure(
    job_id: JobId,
    name: Annotated[str, Path(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}$", examples=["p0001-figure-1.png"])],
    services: ServicesDependency,
    caller: CallerDependency,
) -> Response:
    """A picture that a result links to."""
    job = await services.jobs.get(job_id, caller.scope)
    found = await _find_figure(services, job, name)
    data = None if found is None else await services.blobs.get_bytes(found[0])
    if found is None or data is None:
        raise JobNotFoundError(f"{job.id} has no picture {name}.", "Pictures are named in the JSON result.")
    headers = {"Content-Disposition": attachment(name), "Content-Security-Policy": _SANDBOX}
    return Response(data, media_type=found[1], headers=headers)


async def _find_figure(services: Services, job: Job, name: str) -> tuple[str, str] | None:
    """Blob and media type of a picture."""
    first = 0
    while stored := await services.jobs.pages(job.id, first=first, limit=_AT_ONCE):
        for page in stored:
            if any(blob.endswith(f"-{name}") for blob in page.figures):
                decoded = await asyncio.to_thread(decode_page, page)
                for figure in decoded.result.figures:
                    if figure.name == name and name in decoded.blobs:
                        return decoded.blobs[name], figure.media_type
        first = stored[-1].index + 1
    return None


def _selection(pages: str | None) -> PageSelection:
    try:
        return PageSelection.parse(pages)
    except ConfigurationError as error:
        raise RequestError(str(error).removesuffix(error.remedy).strip(), error.remedy, param="pages") from None


def _refuse_unread(job: Job) -> None:
    """A document that could not be opened has no result, and an empty one would look like one."""
    if job.status.ended and job.error is not None and not job.pages_done and not job.pages_failed:
        raise JobConflictError(
            f"{job.id} has no result: {job.error.message}", "Mend the document and hand it in again."
        )


def _tag(job: Job, result_format: ResultFormat, selection: PageSelection) -> str:
    told: tuple[Any, ...] = (job.id, job.attempt, job.pages_done, job.pages_failed, result_format.value, str(selection))
    return f'"{hashlib.sha256(repr(told).encode()).hexdigest()[:32]}"'


async def _begun(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The same, with its first piece made already: what fails at once is answered as an error."""
    first = await anext(pieces, b"")

    async def all_pieces() -> AsyncIterator[bytes]:
        yield first
        async for piece in pieces:
            yield piece

    return all_pieces()
