"""Figures, captions, equations and code."""

from __future__ import annotations

from dataclasses import replace

from pagemill.domain import BlockKind, BoundingBox
from pagemill.engines.embedded.elements import RegionKind
from pagemill.engines.embedded.structure import build_blocks, render_markdown
from structure_pages import line, lines, page, region

BODY = lines(["The council approved the second phase of the river project", "and the work will start soon."], 200, 300)
FIGURE = region(RegionKind.FIGURE, 200, 500, 1000, 1000)


def test_a_figure_is_cropped_and_keeps_its_labels() -> None:
    labels = [line("0.5", 220, 600), line("Year", 600, 960)]
    structure = build_blocks(page([*BODY, *labels], (FIGURE,), index=4))
    assert structure.crops == (("p0005-figure-1.png", FIGURE.box),)
    assert "![figure](p0005-figure-1.png)" in render_markdown(structure.blocks)
    (figure,) = [block for block in structure.blocks if block.kind is BlockKind.FIGURE]
    assert {item.text for item in figure.lines} == {"0.5", "Year"}
    assert "Year" not in render_markdown(structure.blocks)


def test_sentences_inside_a_figure_stay_in_the_text() -> None:
    note = line("The gauge stands below the old mill bridge", 220, 700)
    structure = build_blocks(page([*BODY, line("0.5", 220, 600), note], (FIGURE,)))
    assert note.text in render_markdown(structure.blocks)
    assert len(structure.crops) == 1


def test_a_figure_full_of_text_is_none() -> None:
    text = lines(["running text that was taken for a picture by mistake"] * 9, 220, 520)
    structure = build_blocks(page([*BODY, *text], (FIGURE,)))
    assert structure.crops == ()
    assert render_markdown(structure.blocks).count("taken for a picture") == 9


def test_empty_margins_of_a_scan_are_no_figure() -> None:
    margin = region(RegionKind.FIGURE, 2, 900, 1598, 2198, score=0.8)
    assert build_blocks(page(BODY, (margin,))).crops == ()


def test_icons_are_left_out_and_tiles_are_one_picture() -> None:
    icon = BoundingBox(100, 100, 140, 140)
    tiles = [BoundingBox(200, 500, 600, 900), BoundingBox(601, 500, 1000, 900)]
    structure = build_blocks(page(BODY, images=[icon, *tiles]))
    assert [box for _, box in structure.crops] == [BoundingBox(200, 500, 1000, 900)]


def test_a_background_image_under_text_is_no_figure() -> None:
    text = lines(["a caption on a banner that is a full sentence"] * 4, 220, 520)
    assert build_blocks(page(text, images=[BoundingBox(200, 500, 1000, 700)])).crops == ()


def test_captions_are_no_headings() -> None:
    content = [*BODY, line("Figure 3: Trout density by site", 200, 1020, bold=True)]
    blocks = build_blocks(page(content, (FIGURE,))).blocks
    assert [b.markdown for b in blocks if b.kind is BlockKind.CAPTION] == ["Figure 3: Trout density by site"]


def test_an_equation_is_cropped_with_its_text_beside() -> None:
    formula = line("E = mc2", 600, 420)
    box = region(RegionKind.EQUATION, 590, 410, 700, 450, score=0.8)
    structure = build_blocks(page([*BODY, formula], (box,)))
    assert structure.crops[0][0] == "p0001-equation-1.png"
    assert "![equation](p0001-equation-1.png)\nE = mc2" in render_markdown(structure.blocks)


def test_prose_that_the_model_calls_equation_is_text() -> None:
    sentence = line("where the decay time = the one that was measured", 200, 420)
    box = region(RegionKind.EQUATION, 190, 410, 800, 450, score=0.9)
    structure = build_blocks(page([*BODY, sentence], (box,)))
    assert structure.crops == ()
    assert all(block.kind is BlockKind.TEXT for block in structure.blocks)


def test_code_keeps_its_indentation_and_blank_lines() -> None:
    code = [
        line("def area(r):", 200, 420, monospace=True),
        line("if r < 0:", 240, 448, monospace=True),
        line("raise ValueError", 280, 476, monospace=True),
        line("return r * r", 240, 532, monospace=True),
    ]
    blocks = build_blocks(page([*BODY, *code])).blocks
    (found,) = [block for block in blocks if block.kind is BlockKind.CODE]
    assert found.markdown == ("```\ndef area(r):\n    if r < 0:\n        raise ValueError\n\n    return r * r\n```")


def test_a_typewritten_page_is_no_listing() -> None:
    blocks = build_blocks(page([replace(item, monospace=True) for item in BODY])).blocks
    assert [block.kind for block in blocks] == [BlockKind.TEXT]


def test_a_text_that_the_model_calls_figure_is_kept_line_by_line() -> None:
    box = region(RegionKind.FIGURE, 200, 500, 420, 640)
    inset = lines(["The terra-cotta", "roofs of", "Dubrovnik are", "mostly restored"], 205, 505, pitch=34, size=28)
    structure = build_blocks(page([*BODY, *inset], (box,)))
    assert structure.crops == ()
    assert "Dubrovnik" in render_markdown(structure.blocks)


def test_braces_beside_a_listing_belong_to_it() -> None:
    code = [
        line("int area()", 200, 420, monospace=True),
        line("{", 200, 448, monospace=True),
        line("return 1;", 240, 476, monospace=True),
        line("}", 200, 504, monospace=True),
    ]
    text = region(RegionKind.TEXT, 230, 470, 400, 500)
    blocks = build_blocks(page([*BODY, *code], (text,))).blocks
    assert [b.markdown for b in blocks if b.kind is BlockKind.CODE] == ["```\nint area()\n{\n    return 1;\n}\n```"]
