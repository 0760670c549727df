"""Tables as data, and as Markdown or HTML."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass

from pagemill.domain import BoundingBox
from pagemill.engines.embedded.structure.markdown import escape_cell

_NUMBER = re.compile(
    r"^[(\[<>≤≥~±+\-–−]*\s*(?:[$€£¥]|[A-Z]{3}|US\$)?\s*[+\-–−]?\d[\d\s.,'’:/–-]*"
    r"(?:\s*(?:%|‰|€|\$|£|¥|[A-Z]{3}|[A-Za-z°µ]{1,3}))?[)\]*†‡]*$"
)
_EMPTY_MARKS = frozenset({"-", "–", "—", "n/a", "N/A", "."})


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell with its text; spans count rows and columns of the grid."""

    row: int
    column: int
    text: str = ""
    row_span: int = 1
    column_span: int = 1


@dataclass(frozen=True, slots=True)
class Table:
    """A grid of cells that covers every place exactly once.

    Attributes:
        rows: Number of rows.
        columns: Number of columns.
        cells: All cells, by row and column.
        box: Where it stands on the page, in pixels.
        header_rows: How many rows at the top name the columns.
    """

    rows: int
    columns: int
    cells: tuple[Cell, ...]
    box: BoundingBox
    header_rows: int = 1

    @property
    def has_spans(self) -> bool:
        """Whether any cell covers more than one place."""
        return any(cell.row_span > 1 or cell.column_span > 1 for cell in self.cells)

    def matrix(self) -> list[list[str]]:
        """Texts by row and column; a spanning cell's text stands at its first place only."""
        texts = [[""] * self.columns for _ in range(self.rows)]
        for cell in self.cells:
            texts[cell.row][cell.column] = cell.text
        return texts


def is_numeric(text: str) -> bool:
    """Whether a cell holds a number, an amount, a percentage, a date in digits, or a measured value."""
    return bool(_NUMBER.match(text.strip()))


def render_table(table: Table) -> str:
    """Markdown of a table: a pipe table, or HTML where cells span rows or columns."""
    return _html_table(table) if table.has_spans else _pipe_table(table)


def _pipe_table(table: Table) -> str:
    texts = table.matrix()
    rows = ["| " + " | ".join(escape_cell(text) for text in row) + " |" for row in texts]
    marks = ["---:" if _is_number_column([row[j] for row in texts[1:]]) else "---" for j in range(table.columns)]
    rows.insert(1, "| " + " | ".join(marks) + " |")
    return "\n".join(rows)


def _is_number_column(texts: Sequence[str]) -> bool:
    filled = [text for text in texts if text and text not in _EMPTY_MARKS]
    return bool(filled) and sum(map(is_numeric, filled)) >= 0.7 * len(filled)


def _html_table(table: Table) -> str:
    rows: list[list[str]] = [[] for _ in range(table.rows)]
    for cell in sorted(table.cells, key=lambda item: (item.row, item.column)):
        tag = "th" if cell.row < table.header_rows else "td"
        spans = (f' rowspan="{cell.row_span}"' if cell.row_span > 1 else "") + (
            f' colspan="{cell.column_span}"' if cell.column_span > 1 else ""
        )
        text = html.escape(cell.text, quote=False).replace("\n", "<br>")
        rows[cell.row].append(f"<{tag}{spans}>{text}</{tag}>")
    body = "\n".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    return f"<table>\n{body}\n</table>"
