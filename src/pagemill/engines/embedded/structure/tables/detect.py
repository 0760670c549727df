"""Tables that no model proposed: rows of text with the same wide gaps."""

from __future__ import annotations

import itertools
import re
import statistics
from collections.abc import Sequence

from pagemill.engines.embedded.elements import Line
from pagemill.engines.embedded.structure.metrics import PageMetrics, visual_rows
from pagemill.engines.embedded.structure.scripts import ends_sentence, text_length
from pagemill.engines.embedded.structure.tables.columns import find_separators
from pagemill.engines.embedded.structure.tables.model import is_numeric

_MIN_ROWS = 3
# A cell reads as prose from this many Latin letter widths on.
_PROSE_LENGTH = 28.0
_BULLET = re.compile(r"^\s*(?:[•●▪■◦·∙○◆▸►‣–—*-]|\(?\d{1,2}[.)])\s")


def find_aligned_tables(lines: Sequence[Line], metrics: PageMetrics, depth: int = 0) -> list[list[Line]]:
    """Finds runs of rows that make a table.

    A run has at least three consecutive rows of at least two cells whose gaps line up. Columns of running text are
    no table columns: the run is split there and both sides are looked at on their own.

    Args:
        lines: Horizontal lines that belong to no table yet.
        metrics: Sizes of the page's running text.
        depth: How often the page was split already; three times is enough for any page.

    Returns:
        The lines of each table.
    """
    tables: list[list[Line]] = []
    for run in _runs(visual_rows(lines), metrics):
        separators = find_separators(run, 1.2 * metrics.em)
        if not separators:
            continue
        columns = _columns(run, separators)
        prose = [k for k, column in enumerate(columns) if _is_prose(column, metrics)]
        if prose and len(columns) - len(prose) < 2 and depth < 3:
            for column in _sides(run, separators, prose):
                tables.extend(find_aligned_tables(column, metrics, depth + 1))
        elif not prose and _is_table(run, columns, metrics):
            tables.append([line for row in run for line in row])
    return tables


def _runs(rows: Sequence[Sequence[Line]], metrics: PageMetrics) -> list[list[Sequence[Line]]]:
    """Maximal runs of rows with wide gaps; a row of one cell may stand between two of them."""
    runs: list[list[Sequence[Line]]] = []
    current: list[Sequence[Line]] = []
    pending: list[Sequence[Line]] = []
    for row in rows:
        last = (pending or current)[-1:] if current else []
        if last and _gap(last[0], row) > 2.2 * metrics.line_height:
            runs.append(current)
            current, pending = [], []
        if _has_wide_gap(row, metrics):
            current = [*current, *pending, row] if current else [row]
            pending = []
        elif current:
            pending.append(row)
            if len(pending) > 1:
                runs.append(current)
                current, pending = [], []
    runs.append(current)
    return [run for run in runs if sum(len(row) > 1 for row in run) >= _MIN_ROWS]


def _gap(above: Sequence[Line], below: Sequence[Line]) -> float:
    return min(line.box.top for line in below) - max(line.box.bottom for line in above)


def _has_wide_gap(row: Sequence[Line], metrics: PageMetrics) -> bool:
    return any(b.box.left - a.box.right > 1.2 * metrics.em for a, b in itertools.pairwise(row))


def _columns(rows: Sequence[Sequence[Line]], separators: Sequence[float]) -> list[list[Line]]:
    columns: list[list[Line]] = [[] for _ in range(len(separators) + 1)]
    for row in rows:
        for line in row:
            columns[sum(x < line.box.center_x for x in separators)].append(line)
    return columns


def _sides(rows: Sequence[Sequence[Line]], separators: Sequence[float], prose: Sequence[int]) -> list[list[Line]]:
    """Runs of neighbouring columns that are no prose, each as the lines it holds."""
    sides: list[list[Line]] = [[]]
    for k, column in enumerate(_columns(rows, separators)):
        if k in prose:
            sides.append([])
        else:
            sides[-1].extend(column)
    return [side for side in sides if side]


def _is_prose(column: Sequence[Line], metrics: PageMetrics) -> bool:
    """Whether the lines of a column read as running text: long, equally wide, mostly no end of a sentence."""
    long = [line for line in column if text_length(line.text) >= _PROSE_LENGTH]
    if len(column) < 2 or len(long) < 0.5 * len(column):
        return False
    widest = max(line.box.width for line in column)
    full = sum(line.box.width > 0.8 * widest for line in column)
    continued = sum(line.text[:1].islower() for line in column)
    open_ends = sum(not ends_sentence(line.text) for line in column)
    return (full >= 0.5 * len(column) and open_ends >= 0.5 * len(column)) or continued >= 0.4 * len(column)


def _is_table(rows: Sequence[Sequence[Line]], columns: Sequence[Sequence[Line]], metrics: PageMetrics) -> bool:
    filled = [column for column in columns if column]
    if len(filled) < 2 or sum(len(row) > 1 for row in rows) < _MIN_ROWS:
        return False
    if any(sum(bool(_BULLET.match(line.text)) for line in column) > 0.5 * len(column) for column in filled[1:]):
        return False
    regular = sum(_is_aligned(column, metrics) for column in filled)
    numbers = sum(
        sum(is_numeric(line.text) for line in column) >= 0.6 * len(column) and len(column) >= 2 for column in filled
    )
    several = sum(len(column) >= _MIN_ROWS for column in filled)
    if several < 2:
        return False
    if len(filled) == 2 and not numbers:
        labels = filled[0]
        short = statistics.median(text_length(line.text) for line in labels) <= 24
        return short and regular == 2 and len(labels) >= 0.6 * len(rows)
    return regular >= max(2, 0.6 * len(filled))


def _is_aligned(column: Sequence[Line], metrics: PageMetrics) -> bool:
    """Whether most lines share a left edge, a right edge or a middle."""
    tolerance = 0.6 * metrics.em
    for edges in (
        [line.box.left for line in column],
        [line.box.right for line in column],
        [line.box.center_x for line in column],
    ):
        middle = statistics.median(edges)
        if sum(abs(edge - middle) <= tolerance for edge in edges) >= 0.7 * len(edges):
            return True
    return False
