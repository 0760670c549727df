"""The structure stage as a whole: from the elements of a page to its blocks in reading order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pagemill.domain import Block, BlockKind, BoundingBox
from pagemill.engines.embedded.elements import Line, PageElements
from pagemill.engines.embedded.structure.blocks import BlockBuilder
from pagemill.engines.embedded.structure.code import joined_code, mark_code
from pagemill.engines.embedded.structure.equations import is_equation
from pagemill.engines.embedded.structure.figures import find_figures, is_empty_margin
from pagemill.engines.embedded.structure.furniture import mark_furniture
from pagemill.engines.embedded.structure.groups import Group
from pagemill.engines.embedded.structure.headings import heading_levels, is_caption
from pagemill.engines.embedded.structure.joining import Vocabulary
from pagemill.engines.embedded.structure.markdown import FURNITURE
from pagemill.engines.embedded.structure.metrics import PROMINENT, PageMetrics, measure
from pagemill.engines.embedded.structure.order import reading_order
from pagemill.engines.embedded.structure.regions import group_lines
from pagemill.engines.embedded.structure.scripts import ends_sentence, is_right_to_left
from pagemill.engines.embedded.structure.tables import find_tables
from pagemill.engines.embedded.structure.vertical import box_turned_back, is_vertical_page, turned, turned_back

# Longer sentences that do not begin as captions do are text, whatever the layout model says.
_CAPTION_LENGTH = 160
# Captions are set in the size of the text or smaller; larger than this, in its size, they are something else.
_CAPTION_SIZE = 1.25


@dataclass(frozen=True, slots=True)
class Structure:
    """What the structure stage makes of a page.

    Attributes:
        blocks: Blocks in reading order; headers first and footers last. Every line with text is in exactly one.
        crops: Pictures that the Markdown links to: file name, and where to cut it out, in pixels.
    """

    blocks: tuple[Block, ...]
    crops: tuple[tuple[str, BoundingBox], ...] = ()


def build_blocks(page: PageElements) -> Structure:
    """Turns the elements of a page into blocks in reading order.

    Nothing is lost: every line with visible characters is among the `lines` of exactly one block.

    Args:
        page: Lines, layout regions, rulings and images of an upright page, boxes in pixels.
    """
    # Copies, so that every line is an object of its own: two that look alike are two.
    lines = tuple(replace(line) for line in page.lines if line.text.strip())
    page = replace(page, lines=lines)
    if not is_vertical_page(page):
        return _build(page)
    structure = _build(turned(page))
    width = float(page.width)
    return Structure(
        tuple(turned_back(block, width) for block in structure.blocks),
        tuple((name, box_turned_back(box, width)) for name, box in structure.crops),
    )


def _build(page: PageElements) -> Structure:
    metrics = measure(page)
    page = replace(page, regions=tuple(region for region in page.regions if not is_empty_margin(region, metrics)))
    vocabulary = Vocabulary.of(line.text for line in page.lines)
    right_to_left = is_right_to_left(" ".join(line.text for line in page.lines))
    groups = _groups(page, metrics, vocabulary)
    body = [group for group in groups if group.kind not in FURNITURE]
    ordered = joined_code(reading_order(body, metrics, right_to_left=right_to_left))
    levels = heading_levels(ordered, metrics, first_page=page.index == 0)
    builder = BlockBuilder(page.index, metrics, vocabulary, right_to_left)
    blocks = [
        *builder.build(_furniture(groups, BlockKind.HEADER), {}),
        *builder.build(ordered, levels),
        *builder.build(_furniture(groups, BlockKind.FOOTER), {}),
    ]
    return Structure(tuple(blocks), tuple(builder.crops))


def _groups(page: PageElements, metrics: PageMetrics, vocabulary: Vocabulary) -> list[Group]:
    tables = find_tables(page, metrics, vocabulary)
    rest = _without(page.lines, [line for found in tables for line in found.lines])
    figures = find_figures(page, rest, tables, metrics)
    rest = _without(rest, [line for figure in figures for line in figure.lines])
    groups = group_lines(rest, page.regions, metrics)
    groups = [_settled(group, metrics) for group in mark_code(groups)]
    groups += [Group(BlockKind.TABLE, found.table.box, found.lines, table=found.table) for found in tables]
    return mark_furniture([*groups, *figures], page.rulings, metrics)


def _settled(group: Group, metrics: PageMetrics) -> Group:
    """Gives up kinds that the text of a group speaks against, and finds captions by their first word."""
    if group.kind is BlockKind.CAPTION and not is_caption(group.text):
        large = min(metrics.relative_size(line) for line in group.lines) > _CAPTION_SIZE or (
            min(metrics.prominence(line) for line in group.lines) > PROMINENT
        )
        prose = len(group.text) > _CAPTION_LENGTH and ends_sentence(group.text)
        return replace(group, kind=BlockKind.TEXT) if large or prose else group
    if group.kind is BlockKind.EQUATION:
        return replace(group, has_picture=True) if is_equation(group) else replace(group, kind=BlockKind.TEXT)
    if group.kind in {BlockKind.TITLE, BlockKind.TEXT} and is_caption(group.text) and len(group.text) < 300:
        return replace(group, kind=BlockKind.CAPTION)
    return group


def _furniture(groups: Sequence[Group], kind: BlockKind) -> list[Group]:
    return sorted((group for group in groups if group.kind is kind), key=lambda g: (g.box.top, g.box.left))


def _without(lines: Sequence[Line], taken: Sequence[Line]) -> list[Line]:
    gone = {id(line) for line in taken}
    return [line for line in lines if id(line) not in gone]
