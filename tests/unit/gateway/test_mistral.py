import pytest
from pydantic import ValidationError

from pagemill.domain.errors import RequestError
from pagemill.gateway.mistral import OcrRequest, page_ranges

DOCUMENT = {"type": "document_url", "document_url": "data:application/pdf;base64,JVBERi0="}


def request(**fields):
    return OcrRequest.model_validate({"document": DOCUMENT, **fields})


@pytest.mark.parametrize(
    ("given", "ranges"),
    [
        (None, None),
        ([0], "1"),
        ([3, 0, 1, 2, 9, 3], "1-4,10"),
        ("0-5,7", "1-6,8"),
        ("0, 2 - 4", "1,3-5"),
        (list(range(5000)), "1-5000"),
    ],
)
def test_pages_from_0_become_ranges_from_1(given, ranges):
    assert page_ranges(given) == ranges


@pytest.mark.parametrize("given", ["", "a", "5-3", "-1", "1-", "1,,2", "9999999999"])
def test_pages_that_cannot_be_read_name_the_parameter(given):
    with pytest.raises(RequestError, match="pages count from 0") as caught:
        page_ranges(given)
    assert caught.value.param == "pages"


def test_negative_pages_are_refused():
    with pytest.raises(ValidationError):
        request(pages=[-1])


@pytest.mark.parametrize(
    ("document", "url"),
    [
        (DOCUMENT, DOCUMENT["document_url"]),
        ({"document_url": "data:x"}, "data:x"),
        ({"type": "image_url", "image_url": "data:y"}, "data:y"),
        ({"image_url": {"url": "data:z", "detail": "high"}}, "data:z"),
    ],
)
def test_documents_are_taken_in_all_forms_that_clients_send(document, url):
    assert OcrRequest.model_validate({"model": None, "document": document, "id": "1"}).document.url == url


@pytest.mark.parametrize("document", ["text", None, {}, {"type": "video_url"}, {"type": "document_url"}, [1]])
def test_other_documents_are_refused(document):
    with pytest.raises(ValidationError):
        OcrRequest.model_validate({"document": document})


@pytest.mark.parametrize(
    "fields",
    [
        {"document_annotation_format": {"type": "json_schema"}},
        {"bbox_annotation_format": {"type": "json_schema"}},
        {"document_annotation_prompt": "x"},
        {"confidence_scores_granularity": "word"},
    ],
)
def test_what_is_not_supported_is_refused_by_name(fields):
    with pytest.raises(RequestError) as caught:
        request(**fields).check()
    assert caught.value.param == next(iter(fields))


def test_fields_without_a_value_are_no_wish():
    request(document_annotation_format=None, confidence_scores_granularity=None, pages=None, table_format=None).check()
