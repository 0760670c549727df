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
# How far apart rows may be, in line heights: in general, and where their cells are flush.
_NEAR, _FAR = 2.2, 5.0
# Headings of columns: at most so many rows, each of at most so many Latin letter widths.
_MAX_HEADINGS, _HEADING_LENGTH = 3, 24.0
# Labels are mostly no longer than this, in Latin letter widths.
_LABEL_LENGTH = 24.0
# How far values stand from their labels at most, in em.
_LABEL_GAP = 12.0
# How many lines of one cell may follow a row.
_MAX_CONTINUED = 6
_BARE_BULLET = re.compile(r"^\s*[•●▪■◦·∙○◆▸►‣\uf0b7]\s*$")
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
    rows = visual_rows(lines)
    pending = _runs(rows, metrics)
    while pending:
        run = pending.pop(0)
        separators = find_separators(run, 1.2 * metrics.em)
        columns = _columns(run, separators)
        prose = [k for k, column in enumerate(columns) if _is_prose(column)]
        parts = _parted_where_cells_shift(run, metrics)
        inner = any(0 < k < len(columns) - 1 for k in prose) and len(columns) - len(prose) > 1
        if separators and prose and not inner and depth < 3:
            for column in _sides(run, separators, prose):
                tables.extend(find_aligned_tables(column, metrics, depth + 1))
        elif separators and not prose and _is_table(run, columns, metrics):
            taken = {id(line) for table in tables for line in table}
            whole = _with_neighbours(run, rows, metrics)
            tables.append([line for row in whole for line in row if id(line) not in taken])
        elif len(parts) > 1:
            pending[:0] = [part for part in parts if _enough_rows(part)]
    return tables


def _with_neighbours(
    run: Sequence[Sequence[Line]], rows: Sequence[Sequence[Line]], metrics: PageMetrics
) -> list[Sequence[Line]]:
    """Adds rows of headings right above a run, and the lines that continue its last row as others were continued."""
    places = {id(row[0]): k for k, row in enumerate(rows)}
    start, end = places[id(run[0][0])], places[id(run[-1][0])] + 1
    extents = _extents(run)
    while (
        start > 0 and end - start < len(run) + _MAX_HEADINGS and _heads(rows[start - 1], rows[start], extents, metrics)
    ):
        start -= 1
    last = end - 1
    while (
        any(len(row) == 1 for row in run)
        and end < len(rows)
        and rows[end][0].box.left > extents[0][1]
        and end - last <= _MAX_CONTINUED
        and _starts_under(rows[last], rows[end], metrics)
        and _gap(rows[end - 1], rows[end]) < _NEAR * metrics.line_height
    ):
        end += 1
    return list(rows[start:end])


def _extents(run: Sequence[Sequence[Line]]) -> list[tuple[float, float]]:
    """Left and right edge of each column of a run, from the row with the most cells."""
    fullest = max(run, key=len)
    return [(line.box.left, line.box.right) for line in fullest]


def _heads(
    row: Sequence[Line], below: Sequence[Line], extents: Sequence[tuple[float, float]], metrics: PageMetrics
) -> bool:
    """Whether a row consists of short headings, each over one column, close above the row `below`."""
    gap = _gap(row, below)
    if gap > 1.2 * metrics.line_height or (len(row) < 2 and gap > 0):
        return False
    slack = 0.5 * metrics.em
    return all(
        text_length(line.text) < _HEADING_LENGTH
        and sum(line.box.left - slack < high and low < line.box.right + slack for low, high in extents) == 1
        for line in row
    )


def _parted_where_cells_shift(run: Sequence[Sequence[Line]], metrics: PageMetrics) -> list[list[Sequence[Line]]]:
    """Parts a run between rows whose cells are not flush: tables that follow each other closely."""
    parts: list[list[Sequence[Line]]] = []
    last: Sequence[Line] | None = None
    for row in run:
        if len(row) < 2 and parts:
            parts[-1].append(row)
            continue
        if last is not None and parts and _matches(last, row, metrics):
            parts[-1].append(row)
        else:
            parts.append([row])
        last = row
    return parts


def _runs(rows: Sequence[Sequence[Line]], metrics: PageMetrics) -> list[list[Sequence[Line]]]:
    """Maximal runs of rows with wide gaps.

    One row of a single cell may stand between two of them, or several that continue a cell of the row above.
    """
    runs: list[list[Sequence[Line]]] = []
    current: list[Sequence[Line]] = []
    pending: list[Sequence[Line]] = []
    for row in rows:
        wide = _has_wide_gap(row, metrics)
        if current and not _follows(current[-1], pending, row, metrics, wide=wide):
            runs.append(current)
            current, pending = [], []
        if wide:
            current = [*current, *pending, row]
            pending = []
        elif current:
            pending.append(row)
    runs.append(current)
    return [run for run in runs if _enough_rows(run)]


def _enough_rows(run: Sequence[Sequence[Line]]) -> bool:
    """Three rows make a table, or two of at least three cells each below one another."""
    multi = [row for row in run if len(row) > 1]
    return len(multi) >= _MIN_ROWS or (len(multi) == 2 and all(len(row) >= 3 for row in multi))


def _follows(
    last: Sequence[Line], pending: Sequence[Sequence[Line]], row: Sequence[Line], metrics: PageMetrics, *, wide: bool
) -> bool:
    """Whether a row goes on with a run whose last row of several cells is `last`."""
    gap = _gap((pending or [last])[-1], row)
    if wide:
        matched = _matches(last, row, metrics)
        reach = _FAR if matched else _NEAR
        return gap <= reach * metrics.line_height and (matched or len(pending) < 2)
    continued = _starts_under(last, row, metrics)
    return gap <= _NEAR * metrics.line_height and len(pending) < (_MAX_CONTINUED if continued else 1)


def _matches(above: Sequence[Line], below: Sequence[Line], metrics: PageMetrics) -> bool:
    """Whether at least two cells of a row, and half of them, stand flush with cells of the row above."""
    tolerance = 0.6 * metrics.em
    flush = sum(
        any(
            abs(line.box.left - other.box.left) < tolerance or abs(line.box.right - other.box.right) < tolerance
            for other in above
        )
        for line in below
    )
    return flush >= max(2, 0.5 * min(len(above), len(below)))


def _starts_under(above: Sequence[Line], below: Sequence[Line], metrics: PageMetrics) -> bool:
    """Whether a row is one piece of text that begins below a cell of the row above."""
    slack = 0.6 * metrics.em
    return len(below) == 1 and any(line.box.left - slack < below[0].box.left < line.box.right for line in above)


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


def _is_prose(column: Sequence[Line]) -> bool:
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
    if len(filled) < 2:
        return False
    if any(sum(bool(_BULLET.match(line.text)) for line in column) > 0.5 * len(column) for column in filled[1:]):
        return False
    if any(sum(bool(_BARE_BULLET.match(line.text)) for line in column) > 0.5 * len(column) for column in filled):
        return False
    if _is_formula([line for row in rows for line in row]):
        return False
    regular = sum(_is_aligned(column, metrics) for column in filled)
    numbers = sum(
        sum(is_numeric(line.text) for line in column) >= 0.6 * len(column) and len(column) >= 2 for column in filled
    )
    several = sum(len(column) >= min(_MIN_ROWS, len(rows)) for column in filled)
    if several < 2:
        return False
    if len(filled) == 2 and not numbers:
        return regular == 2 and _are_labels(filled[0], filled[1], rows, metrics)
    return regular >= max(2, 0.6 * len(filled))


def _is_formula(lines: Sequence[Line]) -> bool:
    """Whether most pieces are single letters and signs: a formula, whose parts a text layer scatters."""
    tiny = [line for line in lines if len(line.text.strip()) <= 2 and not line.text.strip().isdigit()]
    return len(tiny) > 0.4 * len(lines)


def _are_labels(
    labels: Sequence[Line], values: Sequence[Line], rows: Sequence[Sequence[Line]], metrics: PageMetrics
) -> bool:
    """Whether the first of two columns names what the second holds, rather than being another block of lines."""
    lengths = sorted(text_length(line.text) for line in labels)
    if lengths[len(lengths) // 2] > _LABEL_LENGTH or len(labels) < 0.6 * len(rows):
        return False
    if sum(length > _PROSE_LENGTH for length in lengths) > 0.2 * len(lengths):
        return False
    colons = sum(line.text.rstrip().endswith((":", "：")) for line in labels)
    if colons >= 0.5 * len(labels):
        return True
    if sum(len(row) > 1 for row in rows) < 0.8 * len(rows):
        return False
    bold = sum(line.bold for line in labels) >= 0.8 * len(labels) and not all(line.bold for line in values)
    worded = sum(any(char.isdigit() for char in line.text) for line in labels) <= 0.2 * len(labels)
    left, right = max(line.box.right for line in labels), min(line.box.left for line in values)
    return bold or (worded and right - left < _LABEL_GAP * metrics.em)


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
