"""Pages of vertical Chinese and Japanese, laid out as if they were horizontal.

A page turned by a quarter against the clock has its columns of characters as rows from left to right, the first
column on top: everything else then works on it unchanged.
"""

from __future__ import annotations

from dataclasses import replace

from pagemill.domain import Block, BoundingBox
from pagemill.engines.embedded.elements import PageElements, Region, Rulings
from pagemill.engines.embedded.structure.scripts import unspaced_share

_MIN_SHARE = 0.6


def is_vertical_page(page: PageElements) -> bool:
    """Whether most characters of the page stand in vertical lines of a script that is written so."""
    total = sum(len(line.text) for line in page.lines)
    vertical = [line for line in page.lines if line.vertical and unspaced_share(line.text) > 0.5]
    return len(vertical) >= 2 and sum(len(line.text) for line in vertical) > _MIN_SHARE * total


def turned(page: PageElements) -> PageElements:
    """The page turned so that vertical lines are horizontal, and the other way round."""
    width = float(page.width)

    def turn(box: BoundingBox) -> BoundingBox:
        return BoundingBox(box.top, width - box.right, box.bottom, width - box.left)

    return replace(
        page,
        width=page.height,
        height=page.width,
        lines=tuple(replace(line, box=turn(line.box), vertical=not line.vertical) for line in page.lines),
        regions=tuple(Region(region.kind, turn(region.box), region.score) for region in page.regions),
        rulings=Rulings(
            tuple(turn(box) for box in page.rulings.vertical), tuple(turn(box) for box in page.rulings.horizontal)
        ),
        images=tuple(turn(box) for box in page.images),
    )


def turned_back(block: Block, width: float) -> Block:
    """A block of a turned page with its boxes on the page as it was; `width` is that page's width in pixels."""
    return replace(
        block,
        box=box_turned_back(block.box, width),
        lines=tuple(replace(line, box=box_turned_back(line.box, width)) for line in block.lines),
    )


def box_turned_back(box: BoundingBox, width: float) -> BoundingBox:
    """A box of a turned page on the page as it was."""
    return BoundingBox(width - box.bottom, box.left, width - box.top, box.right)
