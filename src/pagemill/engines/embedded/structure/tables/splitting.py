"""Splitting lines that recognition ran together across a column boundary."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from pagemill.domain import BoundingBox
from pagemill.engines.embedded.elements import Line
from pagemill.engines.embedded.structure.metrics import em_of
from pagemill.engines.embedded.structure.scripts import text_length
from pagemill.engines.embedded.structure.tables.model import is_numeric

# A number with separators or at least four digits, or a range of years.
_AMOUNT = re.compile(r"^[(*+\-–−$€£¥]*(?:\d{1,3}(?:[.,]\d{3})+(?:[.,]\d+)?|\d+[.,]\d+|\d{4,}|\d{4}[-–]\d{2,4})[%)*†]*$")
# Width of a digit in em, in most fonts.
_DIGIT_WIDTH = 0.56
# How far a line must reach over a boundary on both sides to count as crossing it, in em.
_REACH = 0.5
# How far from the boundary the nearest space may be estimated to lie, in em.
_SLACK = 1.2


def split_amounts(lines: Sequence[Line]) -> list[Line]:
    """Splits lines inside a table that are nothing but several amounts, each for a column of its own.

    Only tokens that are complete in themselves count, so that `1 234 567` stays one number.
    """
    return [piece for line in lines for piece in _amounts(line)]


def _amounts(line: Line) -> list[Line]:
    tokens = line.text.split()
    if len(tokens) < 2 or not all(map(_AMOUNT.match, tokens)):
        return [line]
    # Runs of spaces were collapsed to one: digits tell their width, and what is left is shared by the gaps.
    letters = sum(len(token) for token in tokens)
    unit = min(line.box.width / (letters + len(tokens) - 1), _DIGIT_WIDTH * em_of(line))
    gap = (line.box.width - letters * unit) / (len(tokens) - 1)
    pieces, left = [], line.box.left
    for token in tokens:
        right = left + len(token) * unit
        pieces.append(replace(line, text=token, box=BoundingBox(left, line.box.top, right, line.box.bottom)))
        left = right + gap
    return pieces


def split_at(row: Sequence[Line], boundaries: Sequence[float], em: float) -> list[Line]:
    """Splits the lines of a visual row at column boundaries that they cross.

    A line is split at a space that lies near the boundary by its share of the characters. Lines without such a
    space stay whole: they are headings over several columns, or long words.

    Args:
        row: Lines that stand side by side.
        boundaries: x positions in pixels.
        em: Width of an em in pixels.
    """
    pieces = []
    for line in row:
        crossed = [x for x in boundaries if line.box.left + _REACH * em < x < line.box.right - _REACH * em]
        pieces.extend(_split(line, crossed, em))
    return pieces


def split_numbers(row: Sequence[Line], boundaries: Sequence[float], em: float) -> list[Line]:
    """Splits lines that are numbers of several columns, run together because their gaps are narrow.

    Other lines that cross a boundary stay whole: they may be headings over several columns. The first piece may be
    the row's label.
    """
    result = []
    for line in row:
        pieces = _one_token_each(line, boundaries, em) or split_at([line], boundaries, em)
        numbers = len(pieces) > 1 and all(is_numeric(piece.text) for piece in pieces[1:])
        result.extend(pieces if numbers else [line])
    return result


def _one_token_each(line: Line, boundaries: Sequence[float], em: float) -> list[Line]:
    """Gives each column that a line covers one of its words, where these are as many; nothing otherwise."""
    inner = [x for x in boundaries if line.box.left + _REACH * em < x < line.box.right - _REACH * em]
    tokens = line.text.split()
    if not inner or len(tokens) != len(inner) + 1 or not all(map(is_numeric, tokens)):
        return []
    edges = [line.box.left, *inner, line.box.right]
    return [
        replace(line, text=token, box=BoundingBox(left, line.box.top, right, line.box.bottom))
        for token, (left, right) in zip(tokens, pairwise(edges), strict=True)
    ]


def _split(line: Line, boundaries: Sequence[float], em: float) -> list[Line]:
    pieces = []
    rest = line
    for x in boundaries:
        cut = _nearest_space(rest, x, _SLACK * em)
        if cut is None:
            continue
        position, at = cut
        before = replace(
            rest,
            text=rest.text[:position].rstrip(),
            box=BoundingBox(rest.box.left, rest.box.top, at, rest.box.bottom),
        )
        pieces.append(before)
        rest = replace(
            rest,
            text=rest.text[position:].lstrip(),
            box=BoundingBox(at, rest.box.top, rest.box.right, rest.box.bottom),
        )
    return [*pieces, rest]


def _nearest_space(line: Line, x: float, slack: float) -> tuple[int, float] | None:
    """The space in `line` whose estimated position is nearest to `x`: its index and that position."""
    total = text_length(line.text)
    if total <= 0:
        return None
    spaces = [
        (match.start(), line.box.left + line.box.width * text_length(line.text[: match.start()]) / total)
        for match in re.finditer(r"(?<=\S)\s+(?=\S)", line.text)
    ]
    best = min(spaces, key=lambda space: abs(space[1] - x), default=None)
    return best if best is not None and abs(best[1] - x) <= slack else None
