from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from pagemill.conversion import ConversionOptions, OutputFormat
from pagemill.conversion.export import DocumentRecord, export_document, markdown_to_text
from pagemill.domain import ConversionStatus, FinishReason, PageError, PageResult

RECORD = DocumentRecord(
    name="report <1>.pdf",
    sha256="a" * 64,
    format="pdf",
    pages=2,
    warnings=(),
    status=ConversionStatus.SUCCESS,
    engine="fake",
    engine_version="1",
    figure_folder="report.assets",
)


def export(output_format: OutputFormat, *markdown: str) -> str:
    def pages() -> Iterator[PageResult]:
        return (PageResult(index=index, markdown=text) for index, text in enumerate(markdown))

    return export_document(output_format, RECORD, pages, ConversionOptions()).decode()


def test_json_has_every_page_and_where_it_came_from() -> None:
    data = json.loads(export(OutputFormat.JSON, "one", "zwei 二"))
    assert [page["page"] for page in data["pages"]] == [1, 2]
    assert data["pages"][1]["markdown"] == "zwei 二"
    assert data["source"]["sha256"] == "a" * 64
    assert data["schema_version"] == 1


def test_json_is_valid_without_pages() -> None:
    assert json.loads(export(OutputFormat.JSON))["pages"] == []


@pytest.mark.parametrize(
    "attack",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[x](javascript:alert(1))",
        "<iframe src='https://example.org'></iframe>",
        "<td onclick='alert(1)'>x</td>",
    ],
)
def test_html_runs_nothing_that_a_document_says(attack: str) -> None:
    text = export(OutputFormat.HTML, attack)
    body = text.split("<body>")[1]
    for bad in ("<script", "onerror=", 'href="javascript:', "<iframe", "onclick="):
        assert bad not in body


def test_html_keeps_tables_with_spans_and_escapes_the_title() -> None:
    text = export(
        OutputFormat.HTML, '<table><tr><td colspan="2">a</td></tr></table>\n\n| x | y |\n|---|---|\n| 1 | 2 |'
    )
    assert '<td colspan="2">a</td>' in text
    assert "<td>1</td>" in text
    assert "report &lt;1&gt;.pdf" in text


def test_text_is_plain() -> None:
    markdown = (
        "# Title\n\nSome **bold** text\nwith a break.\n\n- one\n- two\n  - deep\n\n3. three\n4. four\n\n"
        "| a | b |\n|---|---|\n| 1 | 2 |\n\n<table><tr><td>x</td><td>y &amp; z</td></tr></table>\n"
    )
    assert markdown_to_text(markdown) == (
        "Title\n\nSome bold text\nwith a break.\n\n- one\n- two\n  - deep\n3. three\n4. four\na\tb\n1\t2\n\nx\ty & z\n"
    )


def test_text_separates_pages_by_form_feeds() -> None:
    assert export(OutputFormat.TEXT, "one", "two") == "one\n\n\ftwo\n"


@pytest.mark.parametrize("output_format", [OutputFormat.HTML, OutputFormat.TEXT])
def test_failed_pages_are_seen_in_every_format(output_format: OutputFormat) -> None:
    def pages() -> Iterator[PageResult]:
        error = PageError("render_failed", "It crashed.")
        yield PageResult(0, "one")
        yield PageResult(1, "", FinishReason.ERROR, error=error)
        yield PageResult(2, "three")

    text = export_document(output_format, RECORD, pages, ConversionOptions()).decode()
    assert "[page 2: failed (render_failed)]" in text
    assert text.index("one") < text.index("page 2") < text.index("three")
