"""Structure measures: headings, list items, reading order, running headers and footers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from pagemill.bench.quality.similarity import position_inside, similarity
from pagemill.bench.quality.tables import Matches
from pagemill.bench.quality.text import normalise, plain_text, squeezed

LEAST_SIMILARITY = 0.85
"""How alike a heading or list item must be to count as found: a misread character is no lost heading."""

_HEADING = re.compile(r"^[ ]{0,3}(#{1,6})\s+(.*?)(?:\s+#+)?\s*$", re.MULTILINE)
_ITEM = re.compile(r"^[ \t]*(?:[-*+][ \t]+|\d{1,3}\\?[.)][ \t]?|[a-zA-Z][.)][ \t])[ \t]*(\S.*?)\s*$", re.MULTILINE)
_ORDERED_MARK = re.compile(r"^\s*(?:\d{1,3}|[a-zA-Z])\\?[.)]\s*")


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading: its level from 1 and its text."""

    level: int
    text: str


@dataclass(frozen=True, slots=True)
class HeadingScore:
    """How well headings were told from text.

    Attributes:
        headings: Headings found, predicted and expected.
        levels_right: How many of those found have the right level.
    """

    headings: Matches
    levels_right: int


def headings_in(markdown: str) -> list[Heading]:
    """All ATX headings."""
    text = re.sub(r"<!--.*?-->", "", markdown, flags=re.DOTALL)
    return [Heading(len(marks), plain_text(title)) for marks, title in _HEADING.findall(text)]


def list_items_in(markdown: str) -> list[str]:
    """Texts of all list items, without their marks."""
    text = re.sub(r"<!--.*?-->", "", markdown, flags=re.DOTALL)
    return [plain_text(item) for item in _ITEM.findall(text)]


def score_headings(markdown: str, expected: Sequence[Heading], language: str) -> HeadingScore:
    """Compares the headings of an output with those expected, each used once."""
    found = headings_in(markdown)
    pairs = _pair([h.text for h in found], [h.text for h in expected], language)
    right = sum(found[i].level == expected[j].level for i, j in pairs)
    return HeadingScore(Matches(len(pairs), len(found), len(expected)), right)


def score_list_items(markdown: str, expected: Sequence[str], language: str) -> Matches:
    """Compares the list items of an output with those expected, each used once."""
    found = list_items_in(markdown)
    return Matches(len(_pair(found, expected, language)), len(found), len(expected))


def _pair(found: Sequence[str], expected: Sequence[str], language: str) -> list[tuple[int, int]]:
    ours = [squeezed(text, language) for text in found]
    pairs: list[tuple[int, int]] = []
    used: set[int] = set()
    for j, text in enumerate(expected):
        want = squeezed(text, language)
        best = max(
            (i for i in range(len(ours)) if i not in used), key=lambda i: similarity(ours[i], want), default=None
        )
        if best is not None and similarity(ours[best], want) > LEAST_SIMILARITY:
            used.add(best)
            pairs.append((best, j))
    return pairs


def score_order(markdown: str, snippets: Sequence[str], language: str) -> Matches:
    """How many neighbours among `snippets` stand in this order; one that is not found breaks its pairs."""
    text = normalise(plain_text(markdown), language)
    places = [position_inside(normalise(snippet, language), text, least=0.9) for snippet in snippets]
    right = sum(one is not None and other is not None and one < other for one, other in pairwise(places))
    pairs = max(0, len(snippets) - 1)
    return Matches(right, pairs, pairs)


def furniture_leaks(markdown: str, furniture: Sequence[str], language: str) -> int:
    """How many of the running headers and footers are in the visible text."""
    text = squeezed(plain_text(markdown), language)
    return sum(squeezed(item, language) in text for item in furniture)


def without_furniture(markdown: str, furniture: Sequence[str], language: str) -> str:
    """The Markdown without lines that are running headers or footers: these are counted as leaks instead."""
    unwanted = {squeezed(item, language) for item in furniture}
    return "\n".join(line for line in markdown.splitlines() if squeezed(plain_text(line), language) not in unwanted)


def without_item_numbers(markdown: str, items: Sequence[str], language: str) -> str:
    """The Markdown without the numbers of ordered lists, where the ground truth has items without numbers."""
    wanted = {squeezed(item, language) for item in items}
    lines = []
    for line in markdown.splitlines():
        bare = _ORDERED_MARK.sub("", line)
        known = any(similarity(squeezed(plain_text(bare), language), want) > LEAST_SIMILARITY for want in wanted)
        lines.append(bare if known else line)
    return "\n".join(lines)
