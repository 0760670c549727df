"""The files that a document becomes: Markdown, JSON, HTML, plain text."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markdown_it.token import Token

from pagemill._version import __version__
from pagemill.conversion.assemble import document_markdown, page_markdown
from pagemill.conversion.codec import page_to_json
from pagemill.conversion.options import ConversionOptions, OutputFormat
from pagemill.domain import ConversionStatus, JobStatus, PageResult

JSON_SCHEMA_VERSION = 1

JSON_SEPARATOR = ",\n    "
"""Between the pages of a sidecar."""

JSON_CLOSING = "\n  ]\n}\n"
"""After the last page of a sidecar."""

PageReader = Callable[[], Iterator[PageResult]]
"""Reads a document's pages in order, from the start each time it is called."""


@dataclass(frozen=True, slots=True)
class DocumentRecord:
    """What exports tell about a document besides its pages.

    Attributes:
        name: Its name.
        sha256: Hash of its bytes, in hex.
        format: `pdf`, `png`, ...
        pages: Number of its pages.
        warnings: What was repaired or left out while opening it.
        status: How it ended, or where it stands.
        engine: Name of the engine.
        engine_version: Its version.
        figure_folder: Folder of its pictures, relative to the exported file.
    """

    name: str
    sha256: str
    format: str
    pages: int
    warnings: tuple[str, ...]
    status: ConversionStatus | JobStatus
    engine: str
    engine_version: str
    figure_folder: str


def export_document(
    output_format: OutputFormat, record: DocumentRecord, pages: PageReader, options: ConversionOptions
) -> bytes:
    """The content of one output file, in UTF-8.

    Args:
        output_format: Which file.
        record: The document.
        pages: Reads its pages.
        options: Furniture and page markers.
    """
    if output_format is OutputFormat.JSON:
        text = _to_json(record, pages(), options)
    else:
        pieces = document_markdown(pages(), options.furniture, record.figure_folder, page_markers=options.page_markers)
        text = text_of_markdown(output_format, record, "".join(pieces))
    return text.encode("utf-8", "replace")


def text_of_markdown(output_format: OutputFormat, record: DocumentRecord, markdown: str) -> str:
    """A file that is made of the document's whole Markdown: HTML, plain text, or the Markdown itself."""
    if output_format is OutputFormat.HTML:
        return _to_html(record, markdown)
    return markdown_to_text(markdown) if output_format is OutputFormat.TEXT else markdown


def _to_json(record: DocumentRecord, pages: Iterable[PageResult], options: ConversionOptions) -> str:
    """The sidecar; written page by page so that a long document never stands in memory as one tree."""
    items = [json_page(result, record, options) for result in pages]
    return json_opening(record) + JSON_SEPARATOR.join(items) + JSON_CLOSING


def json_opening(record: DocumentRecord) -> str:
    """What a sidecar holds before its first page."""
    head: dict[str, Any] = {
        "schema_version": JSON_SCHEMA_VERSION,
        "generator": {"name": "pagemill", "version": __version__},
        "engine": {"name": record.engine, "version": record.engine_version},
        "source": {
            "name": record.name,
            "sha256": record.sha256,
            "format": record.format,
            "pages": record.pages,
            "warnings": list(record.warnings),
        },
        "status": record.status.value,
    }
    opening = json.dumps(head, ensure_ascii=False, indent=2).removesuffix("\n}")
    return f'{opening},\n  "pages": [\n    '


def json_page(result: PageResult, record: DocumentRecord, options: ConversionOptions) -> str:
    """One page of a sidecar."""
    return json.dumps(page_entry(result, options, record.figure_folder), ensure_ascii=False)


def page_entry(result: PageResult, options: ConversionOptions, figure_folder: str) -> dict[str, Any]:
    """What a sidecar tells about a page, as JSON values."""
    data = page_to_json(result)
    data["page"] = result.index + 1
    data["ok"] = result.ok
    data["markdown"] = page_markdown(result, options.furniture, figure_folder)
    for figure in data["figures"]:
        figure["path"] = f"{figure_folder}/{figure['name']}" if figure_folder else figure["name"]
    return data


_MARKER = re.compile(r"<!-- (page \d+(: (?:failed|incomplete) .*)?)(?:: blank)? -->$")
_FAILED_MARKER = re.compile(r"^<!-- (page \d+: (?:failed|incomplete) .*) -->$", re.MULTILINE)

_ALLOWED_TAGS = nh3.ALLOWED_TAGS | {"table", "thead", "tbody", "tr", "th", "td", "figure", "figcaption"}
_ALLOWED_ATTRIBUTES = {
    "td": {"rowspan", "colspan", "style"},
    "th": {"rowspan", "colspan", "style"},
    "img": {"src", "alt"},
    "a": {"href"},
    "ol": {"start"},
    "code": {"class"},
}
_STYLE_PROPERTIES = {"text-align"}

_PAGE = """<!doctype html>
<html>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; img-src 'self' data:; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
body {{ max-width: 46rem; margin: 2rem auto; padding: 0 1rem; line-height: 1.55; font-family: system-ui, sans-serif; }}
table {{ border-collapse: collapse; margin: 1rem 0; }}
th, td {{ border: 1px solid #bbb; padding: .3rem .6rem; vertical-align: top; }}
img {{ max-width: 100%; }}
pre {{ overflow-x: auto; background: #f4f4f4; padding: .8rem; }}
</style>
</head>
<body>
{body}
</body>
</html>
"""


def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": True}).enable("table")


def _visible_failures(markdown: str) -> str:
    """The Markdown with a line of text for each page that failed: comments are not shown."""
    return _FAILED_MARKER.sub(r"\g<0>\n\n**[\1]**", markdown)


def _to_html(record: DocumentRecord, markdown: str) -> str:
    """A page that runs nothing and fetches nothing, whatever the document's text says."""
    markdown = _visible_failures(markdown)
    body = nh3.clean(
        _parser().render(markdown),
        tags=_ALLOWED_TAGS,
        attributes=_ALLOWED_ATTRIBUTES,
        filter_style_properties=_STYLE_PROPERTIES,
        url_schemes={"http", "https", "mailto"},
        strip_comments=True,
    )
    return _PAGE.format(title=html.escape(record.name), body=body.strip())


def markdown_to_text(markdown: str) -> str:
    """Markdown as plain text: no marks, table cells apart by tabs, pages apart by form feeds."""
    pieces: list[str] = []
    row: list[str] | None = None
    ordered: list[int | None] = []
    for token in _parser().parse(markdown):
        if token.type == "html_block":
            pieces.append(_html_to_text(token.content))
        elif token.type in ("ordered_list_open", "bullet_list_open"):
            ordered.append(int(token.attrGet("start") or 1) if token.type == "ordered_list_open" else None)
        elif token.type in ("ordered_list_close", "bullet_list_close"):
            ordered.pop()
        elif token.type == "list_item_open":
            pieces.append(_list_mark(ordered))
        elif token.type == "tr_open":
            row = []
        elif token.type == "tr_close" and row is not None:
            pieces.append("\t".join(row) + "\n")
            row = None
        elif token.type == "inline":
            text = _inline_text(token.children or [])
            if row is None:
                pieces.append(text + "\n" if token.level and ordered else text + "\n\n")
            else:
                row.append(text.replace("\n", " "))
        elif token.type in ("fence", "code_block"):
            pieces.append(token.content.rstrip("\n") + "\n\n")
        elif token.type == "table_close":
            pieces.append("\n")
    return re.sub(r"\n{3,}", "\n\n", "".join(pieces)).strip("\n\f") + "\n"


def _list_mark(ordered: list[int | None]) -> str:
    number = ordered[-1]
    if number is None:
        mark = "- "
    else:
        mark = f"{number}. "
        ordered[-1] = number + 1
    return "  " * (len(ordered) - 1) + mark


def _inline_text(tokens: list[Token]) -> str:
    parts: list[str] = []
    for token in tokens:
        if token.type in ("text", "code_inline"):
            parts.append(token.content)
        elif token.type in ("softbreak", "hardbreak") or (
            token.type == "html_inline" and token.content.lower().startswith("<br")
        ):
            parts.append("\n")
    return "".join(parts)


def _html_to_text(block: str) -> str:
    if (marker := _MARKER.match(block.strip())) is not None:
        return "\f" + (f"[{marker[1]}]\n\n" if marker[2] else "")
    cells = re.sub(r"</t[dh]>\s*(?=<t[dh])", "\t", block)
    rows = re.sub(r"</tr>", "\n", cells)
    plain = html.unescape(nh3.clean(rows, tags=set(), strip_comments=True))
    return plain.strip("\n") + "\n\n" if plain.strip() else ""
