import json

import pytest

from pagemill.domain import PageError
from pagemill.gateway.errors import page_error_response


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("encrypted_document", 422),
        ("unsupported_format", 415),
        ("render_failed", 422),
        ("engine_unavailable", 503),
        ("engine_timeout", 504),
        ("page_quarantined", 502),
        ("a code that an older version wrote", 502),
    ],
)
def test_what_the_store_knows_of_a_failure_is_answered_as_the_error_itself_would_be(code, status):
    answer = page_error_response(PageError(code, "What happened. What to do."))
    assert answer.status_code == status
    assert ("Retry-After" in answer.headers) == (status == 503)
    error = json.loads(answer.body)["error"]
    assert (error["code"], error["message"]) == (code, "What happened. What to do.")
