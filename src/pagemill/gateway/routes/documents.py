"""Documents are handed in: one, or several together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request
from fastapi.responses import JSONResponse

from pagemill.domain import Job, Priority
from pagemill.domain.errors import RequestError
from pagemill.gateway.auth import CallerDependency
from pagemill.gateway.errors import error_responses
from pagemill.gateway.multipart import read_form
from pagemill.gateway.runtime import Services, ServicesDependency
from pagemill.gateway.schemas import (
    BatchOut,
    DocumentRequest,
    JobOut,
    UrlDocument,
    Wishes,
    describe_batch,
    describe_job,
)
from pagemill.gateway.submission import Order, submit, wishes_of_form
from pagemill.gateway.uploads import Upload, parse_body, scratch_folder, spool_body, take_inline, take_remote
from pagemill.jobs.options import DocumentOptions

router = APIRouter(tags=["documents"])

_FORM = "multipart/form-data"
_JSON = "application/json"

IdempotencyKey = Annotated[
    str | None,
    Header(
        pattern=r"^[!-~]{1,255}$",
        description="Chosen by the client: sent again with the same key, a request gives the same job.",
    ),
]


def _form_schema(*, several: bool) -> dict[str, Any]:
    """The form, which FastAPI does not read for us: it is bounded while it streams in."""
    file: dict[str, Any] = {"type": "string", "format": "binary", "description": "A PDF or an image."}
    options = DocumentOptions.model_json_schema()
    fields = {
        name: {key: value for key, value in field.items() if key in ("description", "anyOf", "type")}
        for name, field in options["properties"].items()
    }
    for field in fields.values():
        field["anyOf"] = [
            options["$defs"][choice["$ref"].rpartition("/")[2]] if "$ref" in choice else choice
            for choice in field["anyOf"]
            if choice.get("type") != "null"
        ]
    default = Priority.BATCH if several else Priority.INTERACTIVE
    return {
        "type": "object",
        "required": ["file"],
        "additionalProperties": False,
        "properties": {
            "file": {"type": "array", "minItems": 1, "items": file} if several else file,
            "options": {"type": "string", "description": "Options as JSON, instead of fields of their own."},
            "priority": {"type": "string", "enum": [item.value for item in Priority], "default": default.value},
            "webhook": {
                "type": "string",
                "minLength": 1,
                "maxLength": 8192,
                "description": "URL that is told of the job's end.",
            },
            "password": {
                "type": "array",
                "items": {"type": "string", "maxLength": 1000},
                "maxItems": 10,
                "description": "Tried in turn on an encrypted PDF.",
            },
            **fields,
        },
    }


_ACCEPTED_HEADERS = {
    "Location": {"description": "Where its state is.", "schema": {"type": "string"}},
    "Retry-After": {"description": "Seconds after which to look.", "schema": {"type": "integer"}},
}


@router.post(
    "/v1/documents",
    operation_id="submitDocument",
    status_code=202,
    response_model=JobOut,
    responses={**error_responses(409, 415, 501), 202: {"description": "Accepted", "headers": _ACCEPTED_HEADERS}},
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                _FORM: {"schema": _form_schema(several=False)},
                _JSON: {"schema": {"$ref": "#/components/schemas/DocumentRequest"}},
            },
        }
    },
)
async def submit_document(
    request: Request, services: ServicesDependency, caller: CallerDependency, idempotency_key: IdempotencyKey = None
) -> JSONResponse:
    """Takes a document and makes a job of it, which is safe before the answer is sent."""
    with scratch_folder(services.scratch) as folder:
        if _media_type(request) == _JSON:
            uploads, wishes = await _from_json(request, services, folder)
        else:
            uploads, wishes = await _from_form(request, folder, 1, Priority.INTERACTIVE)
        order = Order(wishes, idempotency_key, request.state.request_id)
        [job] = await submit(services, caller, uploads, order)
    request.state.job_id = job.id
    body = describe_job(job, place=await services.jobs.place(job)).model_dump(mode="json")
    headers = {"Location": body["links"]["self"], "Retry-After": "1"}
    return JSONResponse(body, status_code=202, headers=headers)


@router.post(
    "/v1/batches",
    operation_id="submitBatch",
    status_code=202,
    response_model=BatchOut,
    responses={**error_responses(409, 415, 501), 202: {"description": "Accepted", "headers": _ACCEPTED_HEADERS}},
    openapi_extra={
        "requestBody": {"required": True, "content": {_FORM: {"schema": _form_schema(several=True)}}},
    },
)
async def submit_batch(
    request: Request, services: ServicesDependency, caller: CallerDependency, idempotency_key: IdempotencyKey = None
) -> JSONResponse:
    """Takes several documents at once, all or none of them."""
    with scratch_folder(services.scratch) as folder:
        uploads, wishes = await _from_form(request, folder, services.options.limits.files, Priority.BATCH)
        order = Order(wishes, idempotency_key, request.state.request_id)
        jobs = await submit(services, caller, uploads, order, batch=True)
    batch_id = _batch_id(jobs)
    body = describe_batch(batch_id, jobs).model_dump(mode="json")
    headers = {"Location": f"/v1/batches/{batch_id}", "Retry-After": "1"}
    return JSONResponse(body, status_code=202, headers=headers)


def _media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _batch_id(jobs: list[Job]) -> str:
    batch_id = jobs[0].batch_id
    assert batch_id is not None
    return batch_id


async def _from_json(request: Request, services: Services, folder: Path) -> tuple[tuple[Upload, ...], Wishes]:
    path = await spool_body(request, folder)
    async with services.heavy:
        body = await parse_body(DocumentRequest, path)
        upload = await take_inline(body.document, folder, services.options)
    if upload is None:
        assert isinstance(body.document, UrlDocument)
        upload = await take_remote(body.document.document_url, body.document.name, folder, services.options)
    return (upload,), body


async def _from_form(
    request: Request, folder: Path, most: int, priority: Priority
) -> tuple[tuple[Upload, ...], Wishes]:
    form = await read_form(request, folder, max_files=most)
    if not form.files:
        raise RequestError(
            "The form has no file.", "Send the document in the field `file`: curl -F file=@report.pdf.", param="file"
        )
    return form.files, wishes_of_form(form, priority)
