from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from pagemill.domain.errors import (
    EngineUnavailableError,
    JobNotFoundError,
    PagemillError,
    QueueFullError,
    RateLimitedError,
    RequestError,
    StoreUnavailableError,
    UnsupportedFormatError,
)
from pagemill.gateway.errors import error_response, status_of, unexpected_response


def all_errors() -> Iterator[type[PagemillError]]:
    stack = list(PagemillError.__subclasses__())
    while stack:
        kind = stack.pop()
        if kind.__module__.startswith("pagemill.domain"):
            yield kind
        stack += kind.__subclasses__()


@pytest.mark.parametrize("kind", sorted(all_errors(), key=lambda kind: kind.__name__))
def test_every_error_has_a_status_that_says_whose_fault_it_is(kind: type[PagemillError]) -> None:
    assert 400 <= status_of(kind("What happened.")) < 600


def test_the_envelope_has_the_form_of_openai_with_our_code_and_remedy() -> None:
    response = error_response(RequestError("It is wrong.", "Mend it.", param="options.pages"))
    assert response.status_code == 422
    assert json.loads(response.body) == {
        "error": {
            "message": "It is wrong. Mend it.",
            "type": "invalid_request_error",
            "code": "invalid_request",
            "param": "options.pages",
            "remedy": "Mend it.",
        }
    }


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (JobNotFoundError("None."), 404, "not_found_error"),
        (UnsupportedFormatError("None."), 415, "invalid_request_error"),
        (EngineUnavailableError("None."), 503, "server_error"),
    ],
)
def test_types_go_by_status(error: PagemillError, status: int, kind: str) -> None:
    response = error_response(error)
    assert response.status_code == status
    assert json.loads(response.body)["error"]["type"] == kind


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        (QueueFullError("Full.", retry_after=7.2, queued=3), "8"),
        (RateLimitedError("Fast.", retry_after=0.01), "1"),
        (StoreUnavailableError("Away."), "5"),
        (JobNotFoundError("None."), None),
    ],
)
def test_errors_that_pass_say_when(error: PagemillError, seconds: str | None) -> None:
    assert error_response(error).headers.get("retry-after") == seconds


def test_a_full_queue_tells_its_length() -> None:
    response = error_response(QueueFullError("Full.", queued=3))
    assert response.headers["x-queue-length"] == "3"
    assert json.loads(response.body)["error"]["queued"] == 3


def test_faults_of_ours_tell_nothing_but_where_to_look() -> None:
    error = json.loads(unexpected_response("req_1").body)["error"]
    assert error["code"] == "internal_error"
    assert "req_1" in error["remedy"]
