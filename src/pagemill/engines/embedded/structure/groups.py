"""Groups: lines that belong together, before they become blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pagemill.domain import BlockKind, BoundingBox
from pagemill.engines.embedded.elements import Line
from pagemill.engines.embedded.structure.metrics import box_of
from pagemill.engines.embedded.structure.tables import Table


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Lines that belong together; compared by identity, as two groups may look alike.

    Attributes:
        kind: What they are taken for so far.
        box: Where they stand, in pixels.
        lines: The lines, in no particular order.
        score: Score of the layout model's region; 0 where none proposed the group.
        table: The table that the lines make, for tables.
        has_picture: Whether a picture is cropped for it.
    """

    kind: BlockKind
    box: BoundingBox
    lines: tuple[Line, ...] = ()
    score: float = 0.0
    table: Table | None = None
    has_picture: bool = False

    @property
    def text(self) -> str:
        """Texts of its lines, for looking at rather than for printing."""
        return " ".join(line.text for line in self.lines)

    def with_lines(self, lines: tuple[Line, ...]) -> Group:
        """The same kind of group around other lines; its box shrinks or grows to them."""
        return replace(self, lines=lines, box=box_of(lines))


def text_group(lines: tuple[Line, ...], kind: BlockKind = BlockKind.TEXT, score: float = 0.0) -> Group:
    """A group around `lines`, which must not be empty."""
    return Group(kind, box_of(lines), lines, score)
