"""Tables: reading them from Markdown and HTML, and how alike two of them are.

Two published measures are computed:

- Adjacency F1 of the ICDAR 2013 table competition (Göbel, Hassan, Oro, Orsi: "ICDAR 2013 Table Competition",
  ICDAR 2013): every cell with text is paired with the next such cell to its right and below; a pair counts when
  both texts and the direction agree. Strict: one wrong character loses up to four pairs.
- GriTS-Con (Smock, Pesala, Abraham: "GriTS: Grid Table Similarity Metric for Table Structure Recognition",
  ICDAR 2023, arXiv:2203.12555), factored form: rows and columns of both grids are aligned, and the similarities of
  the cells that then stand on each other are summed. Lenient: half-right cells count half.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser

from pagemill.bench.quality.similarity import similarity
from pagemill.bench.quality.text import plain_text

_DELIMITER_ROW = re.compile(r"^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$")
_UNESCAPED_PIPE = re.compile(r"(?<!\\)\|")
_MAX_SPAN = 1000


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: where it starts (from 0), how far it reaches, and its text on one line."""

    row: int
    column: int
    text: str
    rows: int = 1
    columns: int = 1


@dataclass(frozen=True, slots=True)
class Table:
    """A table as a set of cells that do not overlap."""

    cells: tuple[Cell, ...]

    def grid(self) -> list[list[str]]:
        """Texts by row and column, a spanning cell's text repeated in each place that it covers."""
        height = max((cell.row + cell.rows for cell in self.cells), default=0)
        width = max((cell.column + cell.columns for cell in self.cells), default=0)
        grid = [[""] * width for _ in range(height)]
        for cell in self.cells:
            for row in range(cell.row, cell.row + cell.rows):
                for column in range(cell.column, cell.column + cell.columns):
                    grid[row][column] = cell.text
        return grid

    def rows(self) -> list[list[str]]:
        """Non-empty texts of the cells that start in each row."""
        height = max((cell.row + 1 for cell in self.cells), default=0)
        rows: list[list[str]] = [[] for _ in range(height)]
        for cell in sorted(self.cells, key=lambda cell: (cell.row, cell.column)):
            if cell.text:
                rows[cell.row].append(cell.text)
        return rows

    def map_text(self, function: Callable[[str], str]) -> Table:
        """The same table with `function` applied to every text."""
        return Table(tuple(Cell(c.row, c.column, function(c.text), c.rows, c.columns) for c in self.cells))


def table_from_rows(rows: Sequence[Sequence[str]]) -> Table:
    """A table without spans."""
    return Table(tuple(Cell(i, j, text.strip()) for i, row in enumerate(rows) for j, text in enumerate(row)))


class _TableReader(HTMLParser):
    """Collects the tables of an HTML fragment; cells of nested tables become text of the outer one."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: list[Table] = []
        self._depth = 0
        self._cells: list[Cell] = []
        self._taken: set[tuple[int, int]] = set()
        self._row = -1
        self._open: tuple[int, int] | None = None
        self._text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self._depth += 1
            if self._depth == 1:
                self._cells, self._taken, self._row = [], set(), -1
        elif self._depth == 1 and tag == "tr":
            self._close_cell()
            self._row += 1
        elif self._depth == 1 and tag in ("td", "th"):
            self._close_cell()
            self._row = max(self._row, 0)
            values = dict(attrs)
            self._open = (_span(values.get("rowspan")), _span(values.get("colspan")))
        elif tag == "br":
            self._text.append(" ")

    def handle_endtag(self, tag: str) -> None:
        if tag == "table" and self._depth:
            if self._depth == 1:
                self._close_cell()
                if self._cells:
                    self.tables.append(Table(tuple(self._cells)))
            self._depth -= 1
        elif self._depth == 1 and tag in ("td", "th", "tr"):
            self._close_cell()

    def handle_data(self, data: str) -> None:
        if self._open is not None:
            self._text.append(data)

    def _close_cell(self) -> None:
        if self._open is not None:
            rows, columns = self._open
            column = 0
            while (self._row, column) in self._taken:
                column += 1
            text = " ".join("".join(self._text).split())
            self._cells.append(Cell(self._row, column, text, rows, columns))
            self._taken |= {(self._row + i, column + j) for i in range(rows) for j in range(columns)}
        self._open, self._text = None, []


def _span(value: str | None) -> int:
    return min(int(value), _MAX_SPAN) if value and value.isdigit() and int(value) > 0 else 1


def tables_in_html(text: str) -> list[Table]:
    """All tables of an HTML fragment, in order."""
    reader = _TableReader()
    reader.feed(text)
    reader.close()
    return reader.tables


def tables_in_markdown(markdown: str) -> list[Table]:
    """All tables of a Markdown text, pipe tables and HTML tables, in order."""
    tables: list[Table] = []
    lines: list[str] = []
    for part in re.split(r"(<table\b.*?</table>)", markdown, flags=re.DOTALL | re.IGNORECASE):
        if part[:6].lower() == "<table":
            tables += tables_in_html(part)
            continue
        lines = part.splitlines()
        start = 0
        while start + 1 < len(lines):
            if "|" in lines[start] and "|" in lines[start + 1] and _DELIMITER_ROW.match(lines[start + 1]):
                end = start + 2
                while end < len(lines) and "|" in lines[end]:
                    end += 1
                rows = [lines[start], *lines[start + 2 : end]]
                tables.append(table_from_rows([_pipe_cells(row) for row in rows]))
                start = end
            else:
                start += 1
    return tables


def _pipe_cells(line: str) -> list[str]:
    inner = re.sub(r"(?<!\\)\|\s*$", "", line.strip().removeprefix("|"))
    return [" ".join(plain_text(cell).split()) for cell in _UNESCAPED_PIPE.split(inner)]


@dataclass(frozen=True, slots=True)
class Matches:
    """Counts of a comparison: how many were found right, how many there are in each."""

    correct: int = 0
    predicted: int = 0
    expected: int = 0

    def __add__(self, other: Matches) -> Matches:
        """Sum, field by field."""
        return Matches(
            self.correct + other.correct,
            self.predicted + other.predicted,
            self.expected + other.expected,
        )

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; 1 where there is nothing on either side."""
        total = self.predicted + self.expected
        return 2 * self.correct / total if total else 1.0


def adjacency_matches(predicted: Table, expected: Table) -> Matches:
    """Adjacency relations that two tables share (see the module's sources)."""
    found, wanted = _adjacency(predicted), _adjacency(expected)
    return Matches((found & wanted).total(), found.total(), wanted.total())


def _adjacency(table: Table) -> Counter[tuple[str, str, str]]:
    place: dict[tuple[int, int], int] = {}
    for index, cell in enumerate(table.cells):
        for row in range(cell.row, cell.row + cell.rows):
            for column in range(cell.column, cell.column + cell.columns):
                place[row, column] = index
    relations: set[tuple[int, int, str]] = set()
    for index, cell in enumerate(table.cells):
        if not cell.text:
            continue
        right = (
            _next_text(table, place, row, cell.column + cell.columns, 0, 1) for row in _extent(cell.row, cell.rows)
        )
        below = (
            _next_text(table, place, cell.row + cell.rows, col, 1, 0) for col in _extent(cell.column, cell.columns)
        )
        relations |= {(index, other, "right") for other in right if other is not None}
        relations |= {(index, other, "below") for other in below if other is not None}
    return Counter((table.cells[a].text, table.cells[b].text, direction) for a, b, direction in relations)


def _extent(start: int, count: int) -> range:
    return range(start, start + count)


def _next_text(
    table: Table, place: dict[tuple[int, int], int], row: int, column: int, down: int, right: int
) -> int | None:
    while (index := place.get((row, column))) is not None:
        if table.cells[index].text:
            return index
        row, column = row + down, column + right
    return None


def grid_similarity(predicted: Table, expected: Table) -> float:
    """GriTS-Con, factored form, 0 to 1 (see the module's sources)."""
    one, other = predicted.grid(), expected.grid()
    if not one or not other:
        return float(not one and not other)
    cache: dict[tuple[str, str], float] = {}

    def alike(a: str, b: str) -> float:
        if (a, b) not in cache:
            cache[a, b] = similarity(a, b)
        return cache[a, b]

    rows = _align_lines(one, other, alike)
    columns = _align_lines(list(map(list, zip(*one, strict=True))), list(map(list, zip(*other, strict=True))), alike)
    total = sum(alike(one[a][c], other[b][d]) for a, b in rows for c, d in columns)
    return 2 * total / (len(one) * len(one[0]) + len(other) * len(other[0]))


def _align_lines(
    one: list[list[str]], other: list[list[str]], alike: Callable[[str, str], float]
) -> list[tuple[int, int]]:
    rewards = [[_best_reward([[alike(a, b) for b in right] for a in left])[-1][-1] for right in other] for left in one]
    best = _best_reward(rewards)
    i, j, pairs = len(one), len(other), []
    while i and j:
        if best[i][j] == best[i - 1][j]:
            i -= 1
        elif best[i][j] == best[i][j - 1]:
            j -= 1
        else:
            i, j = i - 1, j - 1
            pairs.append((i, j))
    return pairs[::-1]


def _best_reward(rewards: list[list[float]]) -> list[list[float]]:
    """Most reward that an alignment in order can collect, for every pair of prefixes."""
    width = len(rewards[0])
    best = [[0.0] * (width + 1)]
    for row in rewards:
        above, line = best[-1], [0.0]
        for j, reward in enumerate(row):
            line.append(max(above[j] + reward, above[j + 1], line[j]))
        best.append(line)
    return best


@dataclass(frozen=True, slots=True)
class TableScore:
    """How well the tables of a document were read.

    Attributes:
        adjacency: Adjacency relations over all expected tables.
        grid_similarity: Mean GriTS-Con over the expected tables; 0 for one that was not found.
        rows: Rows whose cells are all right and in order, whichever table they stand in.
        tables: Tables found (similarity above 0), predicted and expected.
    """

    adjacency: Matches
    grid_similarity: float
    rows: Matches
    tables: Matches


def score_tables(predicted: Sequence[Table], expected: Sequence[Table]) -> TableScore:
    """Pairs tables by similarity, the most alike first, and scores them.

    Tables beyond the expected ones cost nothing in `adjacency` and `grid_similarity`, because ground truths often
    hold some of a page's tables only; they show in `tables.predicted`.

    Args:
        predicted: Tables of the output, texts normalised.
        expected: Tables of the ground truth, texts normalised in the same way.
    """
    pairs = sorted(
        ((grid_similarity(p, e), i, j) for i, p in enumerate(predicted) for j, e in enumerate(expected)),
        key=lambda pair: -pair[0],
    )
    used: set[int] = set()
    similarities: dict[int, float] = {}
    adjacency = Matches()
    for value, i, j in pairs:
        if value > 0 and i not in used and j not in similarities:
            used.add(i)
            similarities[j] = value
            adjacency += adjacency_matches(predicted[i], expected[j])
    for j, table in enumerate(expected):
        if j not in similarities:
            adjacency += Matches(expected=_adjacency(table).total())
    found_rows = [row for table in predicted for row in table.rows()]
    wanted_rows = [row for table in expected for row in table.rows() if row]
    return TableScore(
        adjacency=adjacency,
        grid_similarity=sum(similarities.values()) / len(expected) if expected else 1.0,
        rows=Matches(sum(row in found_rows for row in wanted_rows), len(found_rows), len(wanted_rows)),
        tables=Matches(len(similarities), len(predicted), len(expected)),
    )
