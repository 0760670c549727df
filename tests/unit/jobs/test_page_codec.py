from __future__ import annotations

from dataclasses import replace

from pagemill.domain import BoundingBox, Figure, Page, PageError, PageFlag, PageResult, StoredPage, Usage
from pagemill.jobs.page_codec import decode_page, encode_page, figure_blobs

PAGE = Page(3, 595.5, 842.0, 90)
RESULT = PageResult(
    3,
    "# Seite\n\n中文 ![figure](p0004-figure-1.png)",
    usage=Usage(2145, 820),
    figures=(Figure("p0004-figure-1.png", b"png", "image/png", BoundingBox(1, 2, 3, 4)),),
    flags=(PageFlag.RETRIED,),
    width=1089,
    height=1540,
)


def test_a_page_comes_back_as_it_was() -> None:
    stored = encode_page("job_1", 1, PAGE, RESULT)
    assert (stored.index, stored.ok, stored.usage) == (3, True, Usage(2145, 820))
    decoded = decode_page(stored)
    assert decoded.page == PAGE
    assert decoded.result == replace(RESULT, figures=(replace(RESULT.figures[0], data=b""),))
    assert decoded.with_figures({"p0004-figure-1.png": b"png"}).result == RESULT


def test_a_figure_whose_blob_is_gone_is_left_out() -> None:
    assert decode_page(encode_page("job_1", 1, PAGE, RESULT)).with_figures({}).result.figures == ()


def test_pictures_of_attempts_never_share_a_blob() -> None:
    first, second = figure_blobs("job_1", 1, RESULT), figure_blobs("job_1", 2, RESULT)
    assert not first.keys() & second.keys()
    assert set(encode_page("job_1", 2, PAGE, RESULT).figures) == set(second)


def test_a_failed_page_says_why() -> None:
    failed = replace(RESULT, error=PageError("engine_timeout", "too slow", retryable=True))
    stored = encode_page("job_1", 1, PAGE, failed)
    assert not stored.ok
    assert stored.error == failed.error
    assert decode_page(stored).result.error == failed.error


def test_a_page_that_the_store_failed_itself_can_be_shown() -> None:
    error = PageError("page_quarantined", "11 workers have vanished while they worked on it")
    decoded = decode_page(StoredPage(5, ok=False, data=b"", error=error))
    assert (decoded.page.index, decoded.result.index, decoded.result.error) == (5, 5, error)
    assert not decoded.result.ok
    assert decoded.result.markdown == ""
