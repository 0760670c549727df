"""Tables of a page taken out of its Markdown, in the notation that was asked for."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Literal

import nh3
from markdown_it import MarkdownIt

TableFormat = Literal["markdown", "html"]

_TABLE_START = re.compile(r"(?<!\\)<table\b", re.IGNORECASE)
_TABLE_END = re.compile(r"</table\s*>", re.IGNORECASE)
_CELL_TAGS = {"br", "b", "i", "em", "strong", "sub", "sup", "code"}
_TABLE_TAGS = _CELL_TAGS | {"table", "thead", "tbody", "tr", "th", "td", "a"}
_TABLE_ATTRIBUTES = {"td": {"rowspan", "colspan"}, "th": {"rowspan", "colspan"}, "a": {"href"}}
_MOST_SPAN = 1000
"""As browsers bound `colspan`; a page could ask for more cells than memory holds."""
_MOST_CELLS = 200_000


def take_tables(markdown: str, wanted: TableFormat, replacement: Callable[[str], str]) -> str:
    """Replaces the tables of a page.

    Tables inside code, lists and quotations stay where they are.

    Args:
        markdown: The page.
        wanted: Notation of the tables that are taken out.
        replacement: Is given each table, in order, and gives what stands in its place.
    """
    pipes, code = _line_ranges(markdown)
    lines = markdown.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)

    def inside(position: int, ranges: list[tuple[int, int]]) -> bool:
        return any(starts[first] <= position < starts[last] for first, last in ranges)

    found = [(starts[first], starts[last] - 1, "markdown") for first, last in pipes]
    found += [(*place, "html") for place in _html_tables(markdown) if not inside(place[0], pipes + code)]
    pieces, done = [], 0
    for start, end, notation in sorted(found):
        pieces += [markdown[done:start], replacement(_converted(markdown[start:end].rstrip(), notation, wanted))]
        done = end
    return "".join((*pieces, markdown[done:]))


def _html_tables(markdown: str) -> list[tuple[int, int]]:
    """Starts and ends; one pass, however many tables are begun and never ended."""
    places: list[tuple[int, int]] = []
    position = 0
    while (start := _TABLE_START.search(markdown, position)) and (end := _TABLE_END.search(markdown, start.end())):
        places.append((start.start(), end.end()))
        position = end.end()
    return places


def _line_ranges(markdown: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Lines of pipe tables, and of code: first, and the one after the last."""
    pipes, code = [], []
    for token in MarkdownIt("commonmark", {"html": True}).enable("table").parse(markdown):
        if token.map is not None and token.level == 0:
            if token.type == "table_open":
                pipes.append((token.map[0], token.map[1]))
            elif token.type in ("fence", "code_block"):
                code.append((token.map[0], token.map[1]))
    return pipes, code


def _converted(table: str, notation: str, wanted: TableFormat) -> str:
    if notation == wanted:
        return table
    if wanted == "markdown":
        return _to_pipes(table)
    rendered = MarkdownIt("commonmark", {"html": True}).enable("table").render(table)
    return nh3.clean(rendered, tags=_TABLE_TAGS, attributes=_TABLE_ATTRIBUTES, link_rel=None).strip()


def _to_pipes(table: str) -> str:
    """An HTML table as a pipe table; a cell that spans others leaves them empty."""
    reader = _Grid()
    reader.feed(table)
    reader.close()
    rows = reader.rows()
    if not rows:
        return table
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "| " + " | ".join("---" for _ in rows[0]) + " |")
    return "\n".join(lines)


class _Grid(HTMLParser):
    """The cells of a table by row and column."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._cells: dict[tuple[int, int], str] = {}
        self._row = -1
        self._column = 0
        self._span = (1, 1)
        self._text: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self._end_cell()
            self._row += 1
            self._column = 0
        elif tag in ("td", "th"):
            self._end_cell()
            self._row = max(0, self._row)
            given = dict(attrs)
            self._span = (_span(given.get("rowspan")), _span(given.get("colspan")))
            self._text = []
        elif tag == "br" and self._text is not None:
            self._text.append(" ")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th", "tr", "table"):
            self._end_cell()

    def handle_data(self, data: str) -> None:
        if self._text is not None:
            self._text.append(data)

    def _end_cell(self) -> None:
        if self._text is None:
            return
        text = " ".join("".join(self._text).split()).replace("|", r"\|")
        self._text = None
        while (self._row, self._column) in self._cells:
            self._column += 1
        rows, columns = self._span
        if len(self._cells) + rows * columns > _MOST_CELLS:
            rows = columns = 1
        for down in range(rows):
            for right in range(columns):
                self._cells.setdefault((self._row + down, self._column + right), "")
        self._cells[self._row, self._column] = text
        self._column += columns

    def rows(self) -> list[list[str]]:
        """Texts, all rows of one length; rows that only spans reach into are left out."""
        self._end_cell()
        width = 1 + max((column for _, column in self._cells), default=-1)
        if width * (self._row + 1) > _MOST_CELLS:
            return []
        return [[self._cells.get((row, column), "") for column in range(width)] for row in range(self._row + 1)]


def _span(text: str | None) -> int:
    return min(_MOST_SPAN, max(1, int(text))) if text and text.isascii() and text.isdigit() and len(text) < 9 else 1
