"""Choosing pages of a document."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pagemill.domain import Page
from pagemill.domain.errors import ConfigurationError, InputError

_RANGE = re.compile(r"(?P<first>\d*)\s*(?P<dash>-?)\s*(?P<last>\d*)")


@dataclass(frozen=True, slots=True)
class PageSelection:
    """Ranges of pages, counted from 1.

    Attributes:
        ranges: Pairs of first and last page, both included; None as the last page stands for the document's end.
            No range at all stands for every page.
    """

    ranges: tuple[tuple[int, int | None], ...] = ()

    @classmethod
    def parse(cls, text: str | None) -> PageSelection:
        """Reads ranges such as `1-3,7,10-,-2`: `10-` is page 10 to the end, `-2` the start to page 2.

        Args:
            text: The ranges; None for all pages.

        Raises:
            ConfigurationError: A range cannot be understood.
        """
        if text is None:
            return cls()
        return cls(tuple(_parse_range(part.strip(), text) for part in text.split(",")))

    def apply(self, pages: tuple[Page, ...]) -> tuple[Page, ...]:
        """The chosen pages, each once and in the document's order; ranges past its end are cut.

        Raises:
            InputError: None of the chosen pages exists in this document.
        """
        if not self.ranges:
            return pages
        count = len(pages)
        wanted: set[int] = set()
        for first, last in self.ranges:
            wanted.update(range(first, min(count, last or count) + 1))
        if not wanted:
            raise InputError(
                f"None of the pages {self} exists: the document has {count} page{'' if count == 1 else 's'}.",
                "Choose pages within it.",
            )
        return tuple(pages[number - 1] for number in sorted(wanted))

    def includes(self, number: int) -> bool:
        """Whether the page with that number, from 1, is chosen."""
        return not self.ranges or any(first <= number <= (last or number) for first, last in self.ranges)

    def __str__(self) -> str:
        """The ranges as they can be parsed again."""
        return ",".join(
            str(first) if last == first else f"{first}-{'' if last is None else last}" for first, last in self.ranges
        )


def _parse_range(part: str, whole: str) -> tuple[int, int | None]:
    match = _RANGE.fullmatch(part)
    remedy = "Write ranges such as 1-3,7,10- (page 10 to the end) or -2 (up to page 2)."
    if not match or not (match["first"] or match["last"]):
        raise ConfigurationError(f"'{part}' in the page ranges '{whole}' cannot be understood.", remedy)
    first = int(match["first"] or 1)
    last = int(match["last"]) if match["last"] else None if match["dash"] else first
    if first < 1 or last == 0:
        raise ConfigurationError(f"'{part}' in the page ranges '{whole}' names page 0.", "Pages count from 1.")
    if last is not None and last < first:
        raise ConfigurationError(f"'{part}' in the page ranges '{whole}' ends before it starts.", remedy)
    return first, last
