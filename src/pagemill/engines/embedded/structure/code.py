"""Program listings, told by the monospaced font of a text layer."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from pagemill.domain import BlockKind
from pagemill.engines.embedded.elements import Line
from pagemill.engines.embedded.structure.groups import Group
from pagemill.engines.embedded.structure.metrics import visual_rows
from pagemill.engines.embedded.structure.scripts import text_length

# A page set in one width throughout is typewritten, not a listing.
_MAX_PAGE_SHARE = 0.8


def mark_code(groups: Sequence[Group]) -> list[Group]:
    """Turns groups of monospaced rows into groups of kind CODE; the groups keep their order."""
    lines = [line for group in groups for line in group.lines]
    total = sum(len(line.text) for line in lines)
    mono = sum(len(line.text) for line in lines if line.monospace)
    if not mono or mono > _MAX_PAGE_SHARE * total:
        return list(groups)
    marked = [_as_code(group) if _is_code(group) else group for group in groups]
    return _with_lines_inside(marked)


def _with_lines_inside(groups: Sequence[Group]) -> list[Group]:
    """Moves monospaced rows that stand inside or right at a listing into it, such as braces in a line of their own."""
    result = list(groups)
    for group in groups:
        if group.kind is not BlockKind.TEXT or not all(line.monospace for line in group.lines):
            continue
        home = next((other for other in result if other.kind is BlockKind.CODE and _stands_in(group, other)), None)
        if home is not None:
            result = [
                home.with_lines((*home.lines, *group.lines)) if other is home else other
                for other in result
                if other is not group
            ]
    return result


def _stands_in(group: Group, code: Group) -> bool:
    height = statistics.median(line.box.height for line in code.lines)
    beside = code.box.left - 4 * height < group.box.left < code.box.right
    return beside and code.box.top - height < group.box.center_y < code.box.bottom + height


def joined_code(groups: Sequence[Group]) -> list[Group]:
    """Joins listings that blank lines part, and their single lines such as closing braces.

    Args:
        groups: Groups in reading order, after `mark_code`.
    """
    joined: list[Group] = []
    for group in groups:
        last = joined[-1] if joined else None
        if last is not None and last.kind is BlockKind.CODE and _goes_on(last, group):
            joined[-1] = last.with_lines((*last.lines, *group.lines))
        else:
            joined.append(group)
    return joined


def _goes_on(code: Group, group: Group) -> bool:
    if group.kind is not BlockKind.CODE and not (
        group.kind is BlockKind.TEXT and all(line.monospace for line in group.lines)
    ):
        return False
    height = statistics.median(line.box.height for line in code.lines)
    near = -0.5 * height < group.box.top - code.box.bottom < 2.5 * height
    return near and group.box.left > code.box.left - 0.5 * height


def render_code(lines: Sequence[Line]) -> str:
    """A fenced block; indentation is counted in widths of the font's characters."""
    rows = visual_rows(lines)
    left = min(line.box.left for line in lines)
    width = statistics.median(line.box.width / max(1.0, text_length(line.text)) for line in lines)
    width = max(1.0, width)
    height = statistics.median(line.box.height for line in lines)
    texts: list[str] = []
    bottom: float | None = None
    for row in rows:
        top = min(line.box.top for line in row)
        if bottom is not None and top - bottom > 1.2 * height:
            texts.append("")
        text = ""
        for line in row:
            column = round((line.box.left - left) / width)
            text = text.ljust(max(column, len(text) + 1 if text else 0)) + line.text
        texts.append(text.rstrip())
        bottom = max(line.box.bottom for line in row)
    body = "\n".join(texts)
    fence = "```"
    while fence in body:
        fence += "`"
    return f"{fence}\n{body}\n{fence}"


def _is_code(group: Group) -> bool:
    if group.kind not in {BlockKind.TEXT, BlockKind.TITLE, BlockKind.FIGURE} or group.has_picture:
        return False
    total = sum(len(line.text) for line in group.lines)
    mono = sum(len(line.text) for line in group.lines if line.monospace)
    return len(visual_rows(group.lines)) >= 2 and mono >= 0.7 * total


def _as_code(group: Group) -> Group:
    return Group(BlockKind.CODE, group.box, group.lines, group.score)
