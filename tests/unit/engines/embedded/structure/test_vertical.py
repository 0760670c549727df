"""Vertical Chinese and Japanese."""

from __future__ import annotations

from pagemill.domain import BlockKind, BoundingBox
from pagemill.engines.embedded.elements import Line
from pagemill.engines.embedded.structure import build_blocks, render_markdown
from structure_pages import page


def column(text: str, right: float, top: float = 200, width: float = 30) -> Line:
    return Line(text, BoundingBox(right - width, top, right, top + 30 * len(text)), vertical=True)


FULL = "吾輩は猫である名前はまだ無いどこで生れたかとんと見当が"


def test_columns_are_read_from_right_to_left_and_joined() -> None:
    content = [column(FULL, 1000 - 50 * k) for k in range(3)] + [column("つかぬ。", 850)]
    structure = build_blocks(page(content[::-1]))
    assert render_markdown(structure.blocks) == FULL * 3 + "つかぬ。\n"
    (block,) = structure.blocks
    assert block.box == BoundingBox(820, 200, 1000, 200 + 30 * len(FULL))
    assert [item.box for item in block.lines] == [item.box for item in content]


def test_a_larger_first_column_is_a_heading() -> None:
    content = [column("猫の話", 1100, width=60), *[column(FULL, 950 - 50 * k) for k in range(4)]]
    blocks = build_blocks(page(content)).blocks
    assert next((block.kind, block.markdown) for block in blocks) == (BlockKind.TITLE, "# 猫の話")


def test_columns_far_apart_are_one_paragraph() -> None:
    content = [column(FULL, 1100 - 58 * k) for k in range(6)] + [column("つかぬ。", 752)]
    assert render_markdown(build_blocks(page(content)).blocks) == FULL * 6 + "つかぬ。\n"
