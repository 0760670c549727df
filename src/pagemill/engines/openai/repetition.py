"""Finding a text that has fallen into a loop, while it is written.

A model that loops repeats a piece of text until it runs out of tokens. Forms repeat too: rows of dots, empty table
cells, ruled lines, numbered grids. What tells them apart is what is repeated: a loop repeats words, or goes on far
longer than any page could.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_WINDOW = 8000
"""Characters at the end of the text that are looked at."""
_LONGEST_UNIT = 1200
_MIN_SPAN = 240
"""Characters that repetitions of worded text must cover before they count: about three lines of print."""
_MIN_COUNT = 6
_MIN_COUNT_LONG = 6
_LONG_UNIT = 80
_WORDLESS_SPAN = 3000
"""Characters of dots, dashes or empty cells that no page has in one run: a page of dot leaders has 40 x 60."""
_MIN_ROWS = 40
_MIN_ROWS_SPAN = 1500
"""Equal table rows: more of them, and more characters, than a page of print holds."""
_DRIFT_LINES = 12
_WORD = re.compile(r"[^\W\d_]{2,}")
_DIGITS = re.compile(r"\d+")
_MARKUP = re.compile(r"</?[a-z][^>]*>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop at the end of a text.

    Attributes:
        start: Where it begins; the text before is good.
        unit: What is repeated.
        count: How many times it stands there.
    """

    start: int
    unit: str
    count: int


def find_loop(text: str) -> Loop | None:
    """The loop that `text` ends in, if it does.

    The first repetition is kept as good text: `text[:loop.start + len(loop.unit)]` loses nothing that was on the page.
    """
    return _exact_loop(text) or _drifting_loop(text)


def _exact_loop(text: str) -> Loop | None:
    """A piece of text that stands at the end many times over, letter by letter."""
    tail = text[-_WINDOW:]
    length = len(tail)
    # borders[i] is the length of the longest proper prefix of reversed[:i] that is also its suffix (Knuth, Morris and
    # Pratt 1977); reversed, because the loop is at the end and what comes before it is free.
    reverse = tail[::-1]
    borders = [0] * (length + 1)
    best: Loop | None = None
    matched = 0
    for position in range(1, length):
        while matched and reverse[position] != reverse[matched]:
            matched = borders[matched]
        if reverse[position] == reverse[matched]:
            matched += 1
        borders[position + 1] = matched
        covered = position + 1
        period = covered - matched
        if period <= _LONGEST_UNIT and covered >= 2 * period:
            unit = tail[length - period :]
            if _is_loop(unit, covered // period, covered):
                best = Loop(
                    len(text) - covered, text[len(text) - covered : len(text) - covered + period], covered // period
                )
    return best


def _is_loop(unit: str, count: int, span: int) -> bool:
    if not _WORD.search(_MARKUP.sub(" ", unit)):
        # Dots, cells, rules, digits: forms are full of them.
        return span >= _WORDLESS_SPAN
    if "|" in unit or "<t" in unit:
        # Tables have equal rows: a timetable, a register of yes and no.
        return count >= _MIN_ROWS and span >= _MIN_ROWS_SPAN
    if len(unit) >= _LONG_UNIT:
        return count >= _MIN_COUNT_LONG
    return count >= _MIN_COUNT and span >= _MIN_SPAN


def _drifting_loop(text: str) -> Loop | None:
    """Lines at the end that are the same but for their numbers: a loop that counts."""
    lines = text[-_WINDOW:].split("\n")
    if len(lines) <= _DRIFT_LINES:
        return None
    lines = lines[1:]
    shapes = [_DIGITS.sub("0", line.strip()) for line in lines]
    last = next((shape for shape in reversed(shapes[:-1]) if shape), "")
    if len(_WORD.findall(_MARKUP.sub(" ", last))) < 4 or last.startswith(("|", "<t")):
        return None
    run = 0
    start = len(lines) - 1
    for index in range(len(lines) - 2, -1, -1):
        if shapes[index] and shapes[index] != last:
            break
        run += bool(shapes[index])
        start = index
    if run < _DRIFT_LINES:
        return None
    offset = len(text) - sum(len(line) + 1 for line in lines[start:]) + 1
    return Loop(max(0, offset), lines[start] + "\n", run)


class LoopWatch:
    """Looks for a loop while text streams in, at a cost that does not grow with the text.

    Args:
        every: New characters between two looks.
    """

    def __init__(self, every: int = 400) -> None:
        self._every = every
        self._pieces: list[str] = []
        self._length = 0
        self._looked = 0

    @property
    def text(self) -> str:
        """All text so far."""
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""

    def feed(self, piece: str) -> Loop | None:
        """Takes a piece of text; gives the loop that the text now ends in, if any."""
        self._pieces.append(piece)
        self._length += len(piece)
        if self._length - self._looked < self._every:
            return None
        self._looked = self._length
        return find_loop(self.text)
