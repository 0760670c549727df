"""Joining the texts of consecutive lines into running text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from pagemill.engines.embedded.structure.scripts import is_unspaced

_WORD = re.compile(r"[^\W\d_]+(?:[-‐][^\W\d_]+)*")
_BROKEN_WORD = re.compile(r"([^\W\d_]+)[-‐]$")
_FIRST_WORD = re.compile(r"^[^\W\d_]+")
# "Vor- und Nachteile", "pre- and post-war": the hyphen stands for a part of the word that follows later.
_SUSPENDED = frozenset({"und", "oder", "bzw", "and", "or", "to", "och", "og", "en", "of", "et", "y", "e", "o"})
# First parts of English compounds that keep their hyphen wherever the line breaks.
_COMPOUND_FIRST = frozenset(
    [
        "all",
        "cross",
        "double",
        "ex",
        "fast",
        "first",
        "four",
        "full",
        "half",
        "hard",
        "high",
        "ill",
        "large",
        "left",
        "light",
        "long",
        "low",
        "multi",
        "non",
        "one",
        "open",
        "quasi",
        "real",
        "right",
        "second",
        "self",
        "semi",
        "short",
        "single",
        "slow",
        "small",
        "so",
        "third",
        "three",
        "two",
        "ultra",
        "well",
        "wide",
    ]
)
# "light- and heavy-|duty": what follows shares its last part with the suspended word, hyphen included.
_SHARED_PART = re.compile(r"[^\W\d_][-‐]\s+(?:and|or|und|oder|og|och|en|of)\s+[^\W\d_]+[-‐]$")
_OPEN_URL = re.compile(r"(?:https?://|www\.)\S*[/\-_?&=.]$", re.IGNORECASE)
_SOFT_HYPHEN = "\u00ad"


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Words that stand undivided elsewhere on the page: the evidence for or against a hyphen."""

    words: frozenset[str] = frozenset()

    @staticmethod
    def of(texts: Iterable[str]) -> Vocabulary:
        """Collects the words of `texts`, compounds with their hyphens, all in lower case."""
        return Vocabulary(
            frozenset(word.lower().replace("‐", "-") for text in texts for word in _WORD.findall(text) if len(word) > 3)
        )

    def join(self, first: str, second: str) -> str:
        """Joins two pieces of running text that were separated by a line break.

        A hyphen at the break is dropped where it only divides a word, and kept where it belongs to it.
        Scripts without spaces are joined without one.
        """
        first, second = first.rstrip(), second.lstrip()
        if not first or not second:
            return first or second
        if first.endswith(_SOFT_HYPHEN):
            return first[:-1] + second
        broken = _BROKEN_WORD.search(first)
        if broken:
            keeps = _SHARED_PART.search(first) is not None or self._keeps_hyphen(broken.group(1), second)
            return first + second if keeps else self._mend(first, second)
        if is_unspaced(first[-1]) or is_unspaced(second[0]) or _OPEN_URL.search(first):
            return first + second
        return f"{first} {second}"

    def join_all(self, texts: Iterable[str]) -> str:
        """Joins any number of pieces, left to right."""
        joined = ""
        for text in texts:
            joined = self.join(joined, text)
        return joined

    def _mend(self, first: str, second: str) -> str:
        following = _FIRST_WORD.match(second)
        if following and following.group().lower() in _SUSPENDED:
            return f"{first} {second}"
        return first[:-1] + second

    def _keeps_hyphen(self, start: str, second: str) -> bool:
        following = _FIRST_WORD.match(second)
        if following is None or not second[0].islower():
            return True
        end = following.group().lower()
        if end in _SUSPENDED:
            return False
        start = start.lower()
        if f"{start}{end}" in self.words:
            return False
        return f"{start}-{end}" in self.words or start in _COMPOUND_FIRST
