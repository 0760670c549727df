from __future__ import annotations

from pagemill.conversion.headings import HeadingLevels
from pagemill.domain import Block, BlockKind, BoundingBox, PageResult, TextLine


def page(index: int, *headings: tuple[str, int, float]) -> PageResult:
    blocks = []
    for row, (text, level, height) in enumerate(headings):
        box = BoundingBox(0, row * 100, 500, row * 100 + height)
        blocks.append(Block(BlockKind.TITLE, f"{'#' * level} {text}", box, 1.0, level, (TextLine(text, box, 1.0),)))
    markdown = "\n\n".join(block.markdown for block in blocks) + "\n"
    return PageResult(index, markdown, blocks=tuple(blocks), width=1000, height=1500)


def levelled(*pages: PageResult) -> list[str]:
    levels = HeadingLevels.of(pages)
    return [levels.apply(item).markdown for item in pages]


def test_a_size_keeps_the_level_of_its_first_appearance() -> None:
    first = page(0, ("Title", 1, 60), ("Part", 2, 40), ("Detail", 3, 30))
    second = page(1, ("Next part", 1, 41), ("Next detail", 2, 29))
    third = page(2, ("Only a detail", 1, 30))
    assert levelled(first, second, third) == [
        first.markdown,
        "## Next part\n\n### Next detail\n",
        "### Only a detail\n",
    ]


def test_a_new_smaller_size_goes_one_deeper() -> None:
    assert levelled(page(0, ("Title", 1, 60)), page(1, ("Part", 1, 30)))[1] == "## Part\n"


def test_a_new_larger_size_keeps_its_own_level() -> None:
    assert levelled(page(0, ("Foreword", 1, 40)), page(1, ("BOOK", 1, 80)))[1] == "# BOOK\n"


def test_numbers_go_before_sizes() -> None:
    pages = page(0, ("Title", 1, 60)), page(1, ("4 Discussion", 2, 60), ("4.1 Limits", 3, 60))
    assert levelled(*pages)[1] == "## 4 Discussion\n\n### 4.1 Limits\n"


def test_blocks_and_markdown_change_together_and_only_that_line() -> None:
    second = page(1, ("Part", 1, 30))
    second = PageResult(1, "# Part\n\nText # Part\n", blocks=second.blocks, width=1000, height=1500)
    changed = HeadingLevels.of([page(0, ("Title", 1, 60)), second]).apply(second)
    assert changed.markdown == "## Part\n\nText # Part\n"
    assert (changed.blocks[0].level, changed.blocks[0].markdown) == (2, "## Part")


def test_pages_without_blocks_are_left_alone() -> None:
    plain = PageResult(0, "# Title\n")
    assert levelled(plain) == ["# Title\n"]
