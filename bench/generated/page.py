"""Pages described once: the same blocks give the HTML to render and the ground truth to score against."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import Any

STYLE = """
@page { size: A4; margin: 22mm 20mm }
body { font-family: 'Liberation Serif'; font-size: 11pt; line-height: 1.4; hyphens: none }
h1 { font-family: 'Liberation Sans'; font-size: 19pt }
h2 { font-family: 'Liberation Sans'; font-size: 14.5pt }
h3 { font-family: 'Liberation Sans'; font-size: 12pt }
.sans { font-family: 'Liberation Sans'; font-size: 10pt }
.zh { font-family: 'Noto Serif CJK SC' }
.zh .sans, .zh h1, .zh h2 { font-family: 'Noto Sans CJK SC' }
.ja { font-family: 'Noto Serif CJK JP' }
.ja .sans, .ja h1, .ja h2 { font-family: 'Noto Sans CJK JP' }
table.ruled, table.open, table.bare { border-collapse: collapse; width: 100%; margin: 5mm 0 }
.ruled th, .ruled td { border: 0.6pt solid #000; padding: 2mm 3mm; text-align: left; vertical-align: top }
table.open { border-top: 1pt solid #000; border-bottom: 1pt solid #000 }
.open th { border-bottom: 0.6pt solid #000 }
.open th, .open td, .bare th, .bare td { text-align: left; padding: 1.5mm 3mm }
.formula { text-align: center; font-style: italic; font-size: 1.25em }
table.columns { width: 100%; border-spacing: 0; table-layout: fixed }
table.columns > tbody > tr > td { vertical-align: top; padding: 0 3.5mm }
"""


@dataclass(frozen=True)
class Cell:
    """A table cell over several rows or columns."""

    text: str
    rows: int = 1
    columns: int = 1

    def spans(self) -> str:
        """The attributes of its tag."""
        rows = f" rowspan='{self.rows}'" if self.rows > 1 else ""
        return rows + (f" colspan='{self.columns}'" if self.columns > 1 else "")


Row = list["str | Cell"]


@dataclass
class Truth:
    """What a perfect reader would return; the fields are those of `gt.json`.

    Attributes:
        lang: ISO 639-1 code.
        text: All text in reading order, one block a line, without page furniture.
        headings: Pairs of level (from 1) and text.
        lists: Text of every list item.
        tables: For each table its rows; a cell that spans stands once, where it starts.
        tables_html: The same tables as HTML with their spans.
        furniture: Running headers and footers, which must not be in the output.
        order: Snippets in the order in which they are to be read.
    """

    lang: str
    text: list[str] = field(default_factory=list)
    headings: list[tuple[int, str]] = field(default_factory=list)
    lists: list[str] = field(default_factory=list)
    tables: list[list[list[str]]] = field(default_factory=list)
    tables_html: list[str] = field(default_factory=list)
    furniture: list[str] = field(default_factory=list)
    order: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """The entry for `gt.json`: empty fields are left out, so that they are not scored."""
        entry: dict[str, Any] = {"lang": self.lang, "text": "\n".join(self.text), "headings": self.headings}
        for name in ("lists", "tables", "tables_html", "furniture", "order"):
            if getattr(self, name):
                entry[name] = getattr(self, name)
        return entry


class PageBuilder:
    """Collects blocks; every method adds one and returns the builder.

    Args:
        name: Name of the page's files.
        lang: ISO 639-1 code.
        css: Styles beyond `STYLE`.
    """

    def __init__(self, name: str, lang: str = "en", css: str = "") -> None:
        self.name = name
        self.truth = Truth(lang)
        self._css = css
        self._body: list[str] = []

    def heading(self, level: int, text: str, attributes: str = "") -> PageBuilder:
        """A heading of level 1 to 3."""
        self._body.append(f"<h{level} {attributes}>{html.escape(text)}</h{level}>")
        self.truth.headings.append((level, text))
        self.truth.text.append(text)
        return self

    def paragraph(self, text: str, attributes: str = "") -> PageBuilder:
        """A paragraph; `attributes` goes into its tag."""
        self._body.append(f"<p {attributes}>{html.escape(text)}</p>")
        self.truth.text.append(text)
        return self

    def items(self, texts: list[str], *, ordered: bool = False) -> PageBuilder:
        """A list."""
        tag = "ol" if ordered else "ul"
        inner = "".join(f"<li>{html.escape(text)}</li>" for text in texts)
        self._body.append(f"<{tag}>{inner}</{tag}>")
        self.truth.text += texts
        self.truth.lists += texts
        return self

    def table(self, rows: list[Row], style: str = "ruled", attributes: str = "") -> PageBuilder:
        """A table whose first row is the header; `style` is `ruled`, `open` (few rules) or `bare` (none)."""
        markup = []
        for index, row in enumerate(rows):
            tag = "th" if index == 0 else "td"
            cells = [cell if isinstance(cell, Cell) else Cell(cell) for cell in row]
            inner = "".join(f"<{tag}{c.spans()}>{html.escape(c.text)}</{tag}>" for c in cells)
            markup.append(f"<tr>{inner}</tr>")
        plain = [[cell.text if isinstance(cell, Cell) else cell for cell in row] for row in rows]
        self._body.append(f"<table class='{style}' {attributes}>{''.join(markup)}</table>")
        self.truth.tables.append(plain)
        self.truth.tables_html.append(f"<table>{''.join(markup)}</table>")
        self.truth.text += [" ".join(row) for row in plain]
        return self

    def formula(self, markup: str, text: list[str]) -> PageBuilder:
        """A displayed formula as HTML, with the lines that a reader without mathematics would see."""
        self._body.append(f"<div class='formula'>{markup}</div>")
        self.truth.text += text
        return self

    def columns(self, columns: list[PageBuilder]) -> PageBuilder:
        """Columns side by side, read from left to right."""
        inner = "".join(f"<td>{''.join(column._body)}</td>" for column in columns)
        self._body.append(f"<table class='columns'><tr>{inner}</tr></table>")
        for column in columns:
            for name in ("text", "headings", "lists", "tables", "tables_html"):
                getattr(self.truth, name).extend(getattr(column.truth, name))
        return self

    def furniture(self, header: str, footer: str) -> PageBuilder:
        """A running header and footer."""
        self._css += (
            f"@page {{ @top-center {{ content: '{header}'; font: 9pt 'Liberation Sans' }}"
            f" @bottom-center {{ content: '{footer}'; font: 9pt 'Liberation Sans' }} }}"
        )
        self.truth.furniture += [header, footer]
        return self

    def reading_order(self, snippets: list[str]) -> PageBuilder:
        """Snippets to be found in this order."""
        self.truth.order = snippets
        return self

    def html(self) -> str:
        """The whole page."""
        lang = self.truth.lang
        return (
            f"<html lang='{lang}'><meta charset='utf-8'><style>{STYLE}{self._css}</style>"
            f"<body class='{lang}'>{''.join(self._body)}</body></html>"
        )
