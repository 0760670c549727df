"""Errors as HTTP answers: one table, one envelope (that of the OpenAI API, with our stable code and the remedy)."""

from __future__ import annotations

import math
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.exceptions import HTTPException

from pagemill.domain import PageError
from pagemill.domain.errors import (
    AuthenticationError,
    BodyTooLargeError,
    BodyTooSlowError,
    ConfigurationError,
    EngineError,
    EngineOverloadedError,
    EngineTimeoutError,
    EngineUnavailableError,
    FetchError,
    ForbiddenUrlError,
    InputError,
    JobConflictError,
    JobError,
    JobGoneError,
    JobNotFoundError,
    LeaseLostError,
    MissingDependencyError,
    NotSupportedError,
    OutputError,
    PagemillError,
    PermissionDeniedError,
    QueueFullError,
    RateLimitedError,
    RequestError,
    RequestRejectedError,
    StoppingError,
    StoreUnavailableError,
    UnsupportedFormatError,
)

_STATUS: tuple[tuple[type[PagemillError], int], ...] = (
    (UnsupportedFormatError, 415),
    (InputError, 422),
    (EngineUnavailableError, 503),
    (EngineOverloadedError, 503),
    (EngineTimeoutError, 504),
    (RequestRejectedError, 422),
    (NotSupportedError, 501),
    (EngineError, 502),
    (OutputError, 500),
    (MissingDependencyError, 501),
    (ConfigurationError, 422),
    (JobNotFoundError, 404),
    (JobGoneError, 410),
    (JobConflictError, 409),
    (LeaseLostError, 409),
    (QueueFullError, 429),
    (RateLimitedError, 429),
    (StoppingError, 503),
    (JobError, 500),
    (BodyTooLargeError, 413),
    (BodyTooSlowError, 408),
    (AuthenticationError, 401),
    (PermissionDeniedError, 403),
    (ForbiddenUrlError, 403),
    (FetchError, 422),
    (RequestError, 422),
    (StoreUnavailableError, 503),
)
"""The first that fits counts: subclasses stand before their base."""

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}
_CODES = {404: "not_found", 405: "method_not_allowed"}
_RETRY_AFTER_S = 5.0


class ErrorDetail(BaseModel):
    """What went wrong."""

    model_config = ConfigDict(extra="allow")

    message: str = Field(description="What happened, where, and what to do.")
    type: str = Field(description="Kind of error, as in the OpenAI API.", examples=["invalid_request_error"])
    code: str = Field(description="Stable code, see docs/reference/errors.md.", examples=["job_not_found"])
    param: str | None = Field(None, description="The parameter that is wrong, where one is.")
    remedy: str = Field("", description="What to do, alone.")


class ErrorEnvelope(BaseModel):
    """The body of every answer that is an error."""

    error: ErrorDetail


def error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What routes declare about the errors that they answer with.

    Args:
        statuses: Beside those that every route may give.
    """
    usual = {401, 403, 404, 408, 413, 422, 429, 500, 503}
    return {
        status: {"model": ErrorEnvelope, "description": HTTPStatus(status).phrase}
        for status in sorted(usual | set(statuses))
    }


def status_of(error: PagemillError) -> int:
    """The HTTP status for an error.

    Raises:
        LookupError: The error's branch of the tree is missing in the table.
    """
    return _status_of_kind(type(error))


def _status_of_kind(kind: type[PagemillError]) -> int:
    for base, status in _STATUS:
        if issubclass(kind, base):
            return status
    raise LookupError(f"no status for {kind.__name__}")


def error_response(error: PagemillError, status: int | None = None) -> JSONResponse:
    """The answer that tells an error.

    Args:
        error: The error.
        status: HTTP status; that of the table by default.
    """
    status = status_of(error) if status is None else status
    headers: dict[str, str] = {}
    retry_after = getattr(error, "retry_after", None)
    if retry_after is None and status == 503:
        retry_after = _RETRY_AFTER_S
    if retry_after is not None:
        headers["Retry-After"] = str(max(1, math.ceil(retry_after)))
    if isinstance(error, QueueFullError):
        headers["X-Queue-Length"] = str(error.queued)
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse(error_body(error, status), status_code=status, headers=headers)


def page_error_response(error: PageError) -> JSONResponse:
    """The answer that tells why a document could not be read, of what the store knows about it."""
    kinds = [PagemillError]
    for kind in kinds:
        kinds += kind.__subclasses__()
    status = _status_of_kind(next((kind for kind in kinds if kind.code == error.code), EngineError))
    headers = {"Retry-After": str(math.ceil(_RETRY_AFTER_S))} if status == 503 else None
    return JSONResponse(_envelope(status, error.message, error.code), status_code=status, headers=headers)


def error_body(error: PagemillError, status: int | None = None) -> dict[str, Any]:
    """The envelope of an error, for answers that are under way already; arguments as of `error_response`."""
    more = {"queued": error.queued} if isinstance(error, QueueFullError) else {}
    status = status_of(error) if status is None else status
    param = getattr(error, "param", None)
    return _envelope(status, str(error), error.code, param=param, remedy=error.remedy, **more)


def unexpected_response(request_id: str) -> JSONResponse:
    """The answer to a fault of ours; it tells nothing of the inside."""
    remedy = f"Look for the request id {request_id} in the service's log, and report it."
    body = _envelope(500, f"The service failed in an unexpected way. {remedy}", "internal_error", remedy=remedy)
    return JSONResponse(body, status_code=500)


def validation_problem(error: ValidationError | RequestValidationError) -> RequestError:
    """What is wrong with a request, of what pydantic found; values are left out, they may be secret or large."""
    problems = []
    first: str | None = None
    for item in list(error.errors())[:5]:
        parts = [str(part) for part in item["loc"] if part not in ("body", "query", "path", "header")]
        place = ".".join(parts)
        first = first or place or None
        problems.append(f"{place}: {item['msg']}" if place else str(item["msg"]))
    return RequestError(
        f"The request is not as it must be: {'; '.join(problems)}.", "See /openapi.json for its form.", param=first
    )


def _envelope(
    status: int,
    message: str,
    code: str,
    *,
    param: str | None = None,
    remedy: str = "",
    **more: Any,  # noqa: ANN401 - fields that single errors add
) -> dict[str, Any]:
    kind = _TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return {"error": {"message": message, "type": kind, "code": code, "param": param, "remedy": remedy, **more}}


async def _on_pagemill_error(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, PagemillError)
    return error_response(error)


async def _on_validation_error(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError | ValidationError)
    return error_response(validation_problem(error))


async def _on_http_exception(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    message = {
        404: f"There is no {request.url.path[:200]}.",
        405: f"{request.method} is not what {request.url.path[:200]} takes.",
    }.get(error.status_code, f"{error.detail}.")
    remedy = "See /openapi.json for what there is."
    code = _CODES.get(error.status_code, "invalid_request" if error.status_code < 500 else "internal_error")
    body = _envelope(error.status_code, f"{message} {remedy}", code, remedy=remedy)
    return JSONResponse(body, status_code=error.status_code, headers=error.headers)


def install_error_handlers(app: FastAPI) -> None:
    """Makes every error of the application an answer in our envelope."""
    app.add_exception_handler(PagemillError, _on_pagemill_error)
    app.add_exception_handler(RequestValidationError, _on_validation_error)
    app.add_exception_handler(HTTPException, _on_http_exception)
