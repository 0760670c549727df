"""Paragraphs and list items from the rows of a group of running text."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from pagemill.engines.embedded.elements import Line
from pagemill.engines.embedded.structure.joining import Vocabulary
from pagemill.engines.embedded.structure.lists import Marker, is_sequence, parse_marker
from pagemill.engines.embedded.structure.metrics import PageMetrics, visual_rows
from pagemill.engines.embedded.structure.scripts import (
    ends_sentence,
    is_address,
    is_unspaced,
    starts_like_continuation,
    text_length,
    unspaced_share,
)

# Addresses and the like: at most so many rows, of at most so many Latin letter widths.
_MAX_ADDRESS_ROWS = 9
_MAX_ADDRESS_LENGTH = 48.0


@dataclass(frozen=True, slots=True)
class Row:
    """A visual row of a paragraph."""

    lines: tuple[Line, ...]
    text: str
    left: float
    right: float
    top: float
    bottom: float

    @property
    def height(self) -> float:
        """Height in pixels."""
        return self.bottom - self.top

    @property
    def letter_width(self) -> float:
        """Mean width in pixels of a Latin letter."""
        return (self.right - self.left) / max(1.0, text_length(self.text))


@dataclass(slots=True)
class Segment:
    """A paragraph, or a list item where `marker` is set.

    `breaks` counts the rows, from 1, before which the author broke the line inside the paragraph (addresses, verse).
    """

    rows: list[Row]
    marker: Marker | None = None
    breaks: set[int] = field(default_factory=set)

    @property
    def lines(self) -> tuple[Line, ...]:
        """All lines, in reading order."""
        return tuple(line for row in self.rows for line in row.lines)

    def text(self, vocabulary: Vocabulary) -> str:
        """Running text; a line feed stands where the author broke the line."""
        first = self.marker.rest if self.marker else self.rows[0].text
        parts = [first]
        for position, row in enumerate(self.rows[1:], start=1):
            if position in self.breaks:
                parts.append(row.text)
            else:
                parts[-1] = vocabulary.join(parts[-1], row.text)
        return "\n".join(parts)


def segment(lines: Sequence[Line], metrics: PageMetrics, *, right_to_left: bool = False) -> list[Segment]:
    """Parts a group of running text into paragraphs and list items.

    A new paragraph starts after a wider gap, at an indent, or where the row before ended early although the next
    word would have fitted and a sentence ended there.

    Args:
        lines: Lines of one column.
        metrics: Sizes of the page's running text.
        right_to_left: Whether the script runs from right to left; indents are on the other side then.
    """
    rows = [_row(row, right_to_left=right_to_left) for row in visual_rows(lines)]
    if not rows:
        return []
    shape = _Shape.of(rows, metrics, right_to_left=right_to_left)
    markers = _list_markers(rows, shape, metrics)
    segments: list[Segment] = []
    for position, row in enumerate(rows):
        marker = markers[position]
        if marker is not None or not segments:
            segments.append(Segment([row], marker))
            continue
        last = segments[-1]
        if shape.starts_paragraph(last, rows[position - 1], row):
            segments.append(Segment([row]))
        else:
            if shape.is_hard_break(last, rows[position - 1], row):
                last.breaks.add(len(last.rows))
            last.rows.append(row)
    return segments


@dataclass(frozen=True, slots=True)
class _Shape:
    """How a group of rows is set."""

    left: float
    right: float
    pitch: float
    em: float
    hanging: bool
    mirrored: bool
    centered: bool
    broken: bool

    @staticmethod
    def of(rows: Sequence[Row], metrics: PageMetrics, *, right_to_left: bool) -> _Shape:
        left, right = min(row.left for row in rows), max(row.right for row in rows)
        height = statistics.median(row.height for row in rows)
        em = max(1.0, height * metrics.em / metrics.line_height)
        steps = [b.top - a.top for a, b in itertools.pairwise(rows) if b.top > a.top]
        tight = [step for step in steps if step < 2.2 * height]
        pitch = statistics.median(tight) if len(tight) >= 3 else min(tight, default=1.4 * height)
        edges = [right - row.right if right_to_left else row.left - left for row in rows]
        indented = sum(0.7 * em < edge < 6 * em for edge in edges)
        hanging = len(rows) >= 3 and edges[0] < 0.5 * em and indented > 0.55 * len(rows)
        middle = (left + right) / 2
        on_axis = all(abs((row.left + row.right) / 2 - middle) < 0.6 * em for row in rows)
        centered = len(rows) > 1 and on_axis and max(row.left for row in rows) - left > em
        return _Shape(left, right, pitch, em, hanging, right_to_left, centered, _is_line_by_line(rows))

    def indent(self, row: Row) -> float:
        return self.right - row.right if self.mirrored else row.left - self.left

    def starts_paragraph(self, segment: Segment, above: Row, row: Row) -> bool:
        step = row.top - above.top
        gap = row.top - above.bottom
        if step > 1.35 * self.pitch and gap > 0.45 * above.height:
            return not (starts_like_continuation(row.text) and step < 1.7 * self.pitch)
        if segment.marker is not None:
            return self._leaves_item(segment, above, row)
        if self.hanging:
            return self.indent(row) < 0.5 * self.em and self.indent(above) > 0.7 * self.em
        indented = 0.7 * self.em < self.indent(row) < 6 * self.em
        if indented and self.indent(above) < 0.5 * self.em and not self._is_centered(row):
            return not starts_like_continuation(row.text)
        return self._ended_early(above, row) and ends_sentence(above.text) and _starts_sentence(row.text)

    def is_hard_break(self, segment: Segment, above: Row, row: Row) -> bool:
        if segment.marker is not None or starts_like_continuation(row.text) or above.text.endswith(("-", ",")):
            return self._is_short_line(above) and above.text.endswith(",") and not starts_like_continuation(row.text)
        return self._ended_early(above, row)

    def _is_short_line(self, row: Row) -> bool:
        return row.right < self.right - 0.35 * (self.right - self.left)

    def _is_centered(self, row: Row) -> bool:
        return abs((row.left - self.left) - (self.right - row.right)) < 1.2 * self.em

    def _leaves_item(self, segment: Segment, above: Row, row: Row) -> bool:
        """Whether a row after a list item is no part of it: left of its text, and not just its full line wrapped."""
        start = segment.rows[0]
        if row.left > start.left + 0.4 * self.em:
            return False
        if row.left < start.left - 0.7 * self.em:
            return True
        return not starts_like_continuation(row.text) and self._ended_early(above, row)

    def _ended_early(self, above: Row, row: Row) -> bool:
        """Whether the first word of `row` would have fitted behind `above`."""
        if self.broken:
            return True
        word = row.text.split(" ", 1)[0]
        width = row.letter_width * (text_length(row.text[0]) if is_unspaced(row.text[0]) else text_length(word) + 1)
        room = above.left - self.left if self.mirrored else self.right - above.right
        if self.centered:
            room = (self.right - self.left) - (above.right - above.left)
        return room > width + 1.2 * self.em


def _is_line_by_line(rows: Sequence[Row]) -> bool:
    """Whether rows end where their author wanted: few, uneven, none goes on in the middle of a sentence."""
    if not 2 <= len(rows) <= _MAX_ADDRESS_ROWS or any(starts_like_continuation(row.text) for row in rows[1:]):
        return False
    if any(row.text.rstrip().endswith(("-", ",")) or unspaced_share(row.text) > 0.3 for row in rows[:-1]):
        return False
    if any(is_address(row.text) and " " not in row.text for row in rows):
        return True
    widest = max(row.right - row.left for row in rows)
    fill = statistics.mean(row.right - row.left for row in rows[:-1]) / max(1.0, widest)
    return fill < 0.92 and all(text_length(row.text) < _MAX_ADDRESS_LENGTH for row in rows)


def _row(lines: Sequence[Line], *, right_to_left: bool) -> Row:
    ordered = list(reversed(lines)) if right_to_left else list(lines)
    text = ""
    for before, line in zip([None, *ordered], ordered, strict=False):
        piece = line.text.strip()
        tight = before is not None and text and is_unspaced(text[-1]) and is_unspaced(piece[:1] or " ")
        close = before is not None and abs(line.box.left - before.box.right) < 0.6 * line.box.height
        text += piece if not text or (tight and close) else f" {piece}"
    return Row(
        tuple(ordered),
        text,
        min(line.box.left for line in lines),
        max(line.box.right for line in lines),
        min(line.box.top for line in lines),
        max(line.box.bottom for line in lines),
    )


def _starts_sentence(text: str) -> bool:
    return not starts_like_continuation(text)


def _list_markers(rows: Sequence[Row], shape: _Shape, metrics: PageMetrics) -> list[Marker | None]:
    """Markers of the rows that really start list items.

    Bullets do wherever they stand at an item's edge. Numbers do where they count on, or where one starts the group;
    dashes and letters want company.
    """
    markers = [parse_marker(row.text) for row in rows]
    counted = [marker for marker in markers if marker is not None and not marker.kind.startswith("bullet")]
    sequences = {kind for kind in {m.kind for m in counted} if is_sequence([m for m in counted if m.kind == kind])}
    return [
        marker if marker is not None and _starts_item(position, marker, rows, shape, sequences) else None
        for position, marker in enumerate(markers)
    ]


def _starts_item(position: int, marker: Marker, rows: Sequence[Row], shape: _Shape, sequences: set[str]) -> bool:
    row = rows[position]
    if marker.kind.startswith("bullet"):
        if marker.text == "*" and sum(row.text.startswith("* ") for row in rows) < 2:
            return False
        if marker.text in "-–—*o·":
            return bool(marker.rest) and _stands_apart(position, rows, shape)
        return True
    if not marker.rest and len(rows) > 1:
        return False
    if marker.kind in sequences:
        return _stands_apart(position, rows, shape)
    lone = marker.kind in {"digit", "wide", "circled", "ideograph"} and marker.text[-1] != "、"
    return lone and position == 0 and len(marker.rest) > 1 and row.left <= shape.left + shape.em


def _stands_apart(position: int, rows: Sequence[Row], shape: _Shape) -> bool:
    """Whether the row above ended early, ended a sentence, or is an item itself: no number inside running text."""
    if position == 0:
        return True
    above, row = rows[position - 1], rows[position]
    if ends_sentence(above.text) or above.text.endswith((";", ",", "；", "，")) or parse_marker(above.text):
        return True
    return shape._ended_early(above, row) or row.left < above.left - 0.5 * shape.em
