"""Heading levels that hold over a whole document.

An engine sees one page: the largest heading on it gets the first level, although the document's title may have been
larger. Here each size of heading keeps the level that it had when it first appeared.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from statistics import median

from pagemill.domain import Block, BlockKind, PageResult

_SAME_SIZE = 0.10
_DEEPEST = 6
_NUMBERED = re.compile(r"#+\s*\\?(\d+(\.\d+)*\.?|[IVXLC]+\.|第.{1,4}[章节條条節]|[一二三四五六七八九十]+、)\s?\S")
_MARKS = re.compile(r"^#+")


@dataclass
class HeadingLevels:
    """Levels of a document's headings, found by going once through its pages in order.

    Attributes:
        changes: New level by page index and position of the block.
    """

    changes: dict[int, dict[int, int]] = field(default_factory=dict)
    _known: list[tuple[float, int]] = field(default_factory=list)

    @classmethod
    def of(cls, pages: Iterable[PageResult]) -> HeadingLevels:
        """Goes through the pages of a document."""
        levels = cls()
        for page in pages:
            levels.add(page)
        return levels

    def add(self, page: PageResult) -> None:
        """Takes the next page; after the last one `apply` holds for all."""
        known_before = list(self._known)
        for position, block in enumerate(page.blocks):
            size = _relative_size(block, page)
            if block.kind is not BlockKind.TITLE or size is None:
                continue
            level = block.level
            # Numbers tell the level better than sizes do, and engines go by them already.
            if known_before and not _NUMBERED.match(block.markdown):
                level = _level_among(size, known_before, block.level)
            if level != block.level:
                self.changes.setdefault(page.index, {})[position] = level
            if not any(_similar(size, other) for other, _ in self._known):
                self._known.append((size, level))

    def apply(self, page: PageResult) -> PageResult:
        """The page with the document's levels."""
        changes = self.changes.get(page.index)
        if not changes:
            return page
        blocks = list(page.blocks)
        markdown = page.markdown
        for position, level in changes.items():
            old = blocks[position]
            new = _MARKS.sub("#" * level, old.markdown)
            blocks[position] = replace(old, level=level, markdown=new)
            line = re.compile(rf"^{re.escape(old.markdown)}$", re.MULTILINE)
            if found := line.search(markdown):
                markdown = markdown[: found.start()] + new + markdown[found.end() :]
        return replace(page, blocks=tuple(blocks), markdown=markdown)


def _relative_size(block: Block, page: PageResult) -> float | None:
    """Height of a heading's lines relative to the page's longer side; pages of one document may differ in pixels."""
    if not block.lines or not max(page.width, page.height):
        return None
    return median(min(line.box.height, line.box.width) for line in block.lines) / max(page.width, page.height)


def _similar(one: float, other: float) -> bool:
    return abs(one - other) <= _SAME_SIZE * max(one, other)


def _level_among(size: float, known: list[tuple[float, int]], own: int) -> int:
    """The level of the nearest known size; one deeper than the smallest larger size where none is near."""
    near = [(abs(size - other), level) for other, level in known if _similar(size, other)]
    if near:
        return min(near)[1]
    larger = [level for other, level in known if other > size]
    if not larger:
        return own
    return min(_DEEPEST, max(own, max(larger) + 1))
