"""Blocks from groups: the last step, where everything gets its Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pagemill.domain import Block, BlockKind, BoundingBox, TextLine
from pagemill.engines.embedded.elements import Line
from pagemill.engines.embedded.structure.code import render_code
from pagemill.engines.embedded.structure.groups import Group
from pagemill.engines.embedded.structure.joining import Vocabulary
from pagemill.engines.embedded.structure.lists import Item, render_list
from pagemill.engines.embedded.structure.markdown import escape_block, escape_heading
from pagemill.engines.embedded.structure.metrics import PageMetrics, box_of, visual_rows
from pagemill.engines.embedded.structure.paragraphs import Segment, segment
from pagemill.engines.embedded.structure.scripts import ends_sentence, starts_like_continuation, text_length
from pagemill.engines.embedded.structure.tables import render_table

# Shorter lines than this, in Latin letter widths, are no full lines of a column.
_FULL_LENGTH = 16.0
# A line break that Markdown keeps: two spaces at the end of the line.
_HARD_BREAK = "  \n"


@dataclass(slots=True)
class BlockBuilder:
    """Makes blocks, and notes which pictures they want.

    Args:
        index: Position of the page in the document, from 0.
        metrics: Sizes of the page's running text.
        vocabulary: Words of the page.
        right_to_left: Whether the page's script runs from right to left.
    """

    index: int
    metrics: PageMetrics
    vocabulary: Vocabulary
    right_to_left: bool = False
    crops: list[tuple[str, BoundingBox]] = field(default_factory=list)

    def build(self, groups: Sequence[Group], levels: dict[int, int]) -> list[Block]:
        """Makes the blocks of all groups, in their order.

        Args:
            groups: Groups in reading order.
            levels: Heading levels by position in `groups`.
        """
        blocks: list[Block] = []
        pending: list[Segment] = []
        for position, group in enumerate(groups):
            if position in levels:
                blocks.extend(self._flush(pending))
                blocks.append(self._heading(group, levels[position]))
            elif group.kind in {BlockKind.TEXT, BlockKind.TITLE, BlockKind.LIST} and group.lines:
                pending.extend(segment(group.lines, self.metrics, right_to_left=self.right_to_left))
            else:
                blocks.extend(self._flush(pending))
                blocks.append(self._special(group))
        blocks.extend(self._flush(pending))
        return blocks

    def _flush(self, segments: list[Segment]) -> list[Block]:
        """Turns segments into blocks; items that follow each other become one list. Empties `segments`."""
        blocks: list[Block] = []
        items: list[Segment] = []
        for part in self._with_broken_paragraphs_joined(segments):
            if part.marker is not None:
                items.append(part)
                continue
            blocks.extend(self._list(items))
            items = []
            blocks.append(_block(BlockKind.TEXT, self._paragraph(part), part.lines))
        blocks.extend(self._list(items))
        segments.clear()
        return blocks

    def _with_broken_paragraphs_joined(self, segments: Sequence[Segment]) -> list[Segment]:
        """Joins paragraphs that go on in the next column: one breaks off in a sentence, the next goes on in it."""
        joined: list[Segment] = []
        for part in segments:
            if joined and part.marker is None and self._goes_on(joined[-1], part):
                joined[-1] = Segment([*joined[-1].rows, *part.rows], joined[-1].marker, set(joined[-1].breaks))
            else:
                joined.append(part)
        return joined

    def _goes_on(self, before: Segment, part: Segment) -> bool:
        last, first = before.rows[-1], part.rows[0]
        if not starts_like_continuation(first.text) or ends_sentence(last.text) or before.breaks or part.breaks:
            return False
        gap = first.top - last.bottom
        if gap > 0.6 * last.height and first.left < last.right and last.left < first.right:
            return False
        sizes = [self.metrics.relative_size(row.lines[0]) for row in (last, first)]
        widest = max(row.right - row.left for row in before.rows)
        full = last.right - last.left > 0.8 * widest and text_length(last.text) > _FULL_LENGTH
        return full and abs(sizes[0] - sizes[1]) < 0.25 * max(sizes)

    def _list(self, items: Sequence[Segment]) -> list[Block]:
        if not items:
            return []
        listed = [
            Item(item.marker, item.text(self.vocabulary).replace("\n", " "), item.rows[0].left)
            for item in items
            if item.marker is not None
        ]
        lines = [line for item in items for line in item.lines]
        return [_block(BlockKind.LIST, render_list(listed, self.metrics.em), lines)]

    def _paragraph(self, part: Segment) -> str:
        return escape_block(part.text(self.vocabulary)).replace("\n", _HARD_BREAK)

    def _running_text(self, lines: Sequence[Line]) -> str:
        return self.vocabulary.join_all(line.text.strip() for row in visual_rows(lines) for line in row)

    def _heading(self, group: Group, level: int) -> Block:
        text = escape_heading(self._running_text(group.lines))
        return _block(BlockKind.TITLE, f"{'#' * level} {text}", _in_rows(group.lines), level=level)

    def _special(self, group: Group) -> Block:
        if group.kind is BlockKind.TABLE and group.table is not None:
            return _block(group.kind, render_table(group.table), _in_rows(group.lines), box=group.table.box)
        if group.kind is BlockKind.FIGURE:
            name = self._crop(group, "figure")
            return _block(group.kind, f"![figure]({name})", _in_rows(group.lines), box=group.box)
        if group.kind is BlockKind.EQUATION:
            name = self._crop(group, "equation")
            text = escape_block(self._running_text(group.lines))
            return _block(group.kind, f"![equation]({name})\n{text}".rstrip(), _in_rows(group.lines), box=group.box)
        if group.kind is BlockKind.CODE:
            return _block(group.kind, render_code(group.lines), _in_rows(group.lines))
        return _block(group.kind, escape_block(self._running_text(group.lines)), _in_rows(group.lines))

    def _crop(self, group: Group, kind: str) -> str:
        prefix = f"p{self.index + 1:04d}-{kind}-"
        name = f"{prefix}{sum(name.startswith(prefix) for name, _ in self.crops) + 1}.png"
        self.crops.append((name, group.box))
        return name


def _in_rows(lines: Iterable[Line]) -> list[Line]:
    return [line for row in visual_rows(list(lines)) for line in row]


def _block(
    kind: BlockKind, markdown: str, lines: Sequence[Line], *, box: BoundingBox | None = None, level: int = 0
) -> Block:
    weights = [max(1, len(line.text)) for line in lines]
    confidence = (
        sum(line.confidence * weight for line, weight in zip(lines, weights, strict=True)) / sum(weights)
        if lines
        else 1.0
    )
    return Block(
        kind=kind,
        markdown=markdown,
        box=box if box is not None else box_of(lines),
        confidence=confidence,
        level=level,
        lines=tuple(TextLine(line.text, line.box, line.confidence) for line in lines),
    )
