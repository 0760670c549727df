"""Tables with rulings."""

from __future__ import annotations

from pagemill.domain import BlockKind, BoundingBox
from pagemill.engines.embedded.elements import Line, PageElements, RegionKind, Rulings
from pagemill.engines.embedded.structure import build_blocks
from structure_pages import line, lines, mesh, page, read, region, row

XS = [200, 400, 600, 800]
TEXT_XS = [210, 410, 610]


def tables(elements: PageElements) -> list[str]:
    return [block.markdown for block in build_blocks(elements).blocks if block.kind is BlockKind.TABLE]


def cells(*rows: list[str], top: float = 310, pitch: float = 40) -> list[Line]:
    return [item for k, texts in enumerate(rows) for item in row(texts, TEXT_XS, top + k * pitch)]


def test_a_grid_is_a_table_without_any_model() -> None:
    content = cells(["Site", "Year", "Cost"], ["Mill Bridge", "2021", "128,500"], ["Oak Weir", "2024", "14,300"])
    assert tables(page(content, rulings=mesh(XS, [300, 340, 380, 420]))) == [
        "| Site | Year | Cost |\n| --- | ---: | ---: |\n| Mill Bridge | 2021 | 128,500 |\n| Oak Weir | 2024 | 14,300 |"
    ]


def test_empty_cells_are_kept() -> None:
    content = cells(["Site", "", "Cost"], ["Mill", "2021", ""], ["", "2022", "7"])
    assert tables(page(content, rulings=mesh(XS, [300, 340, 380, 420]))) == [
        "| Site |  | Cost |\n| --- | ---: | ---: |\n| Mill | 2021 |  |\n|  | 2022 | 7 |"
    ]


def test_merged_cells_become_html() -> None:
    rulings = Rulings(
        (
            BoundingBox(200, 299, 800, 301),
            BoundingBox(400, 339, 800, 341),
            BoundingBox(200, 379, 800, 381),
            BoundingBox(200, 419, 800, 421),
        ),
        (
            BoundingBox(199, 300, 201, 420),
            BoundingBox(399, 300, 401, 420),
            BoundingBox(599, 340, 601, 420),
            BoundingBox(799, 300, 801, 420),
        ),
    )
    content = [
        line("Region", 210, 330),
        line("2023", 580, 310),
        *row(["", "Q1", "Q2"], TEXT_XS, 350),
        *row(["North & South", "12", "15"], TEXT_XS, 390),
    ]
    assert tables(page(content, rulings=rulings)) == [
        (
            "<table>\n"
            '<tr><th rowspan="2">Region</th><th colspan="2">2023</th></tr>\n'
            "<tr><td>Q1</td><td>Q2</td></tr>\n"
            "<tr><td>North &amp; South</td><td>12</td><td>15</td></tr>\n"
            "</table>"
        )
    ]


def test_lines_of_a_cell_are_joined_and_pipes_escaped() -> None:
    content = [
        *cells(["Post", "Duties", "Rank"]),
        *lines(["Checks the car-", "go list | signs"], 410, 345, pitch=24),
        *row(["Mate", "", "2"], TEXT_XS, 355),
    ]
    assert tables(page(content, rulings=mesh(XS, [300, 340, 400]))) == [
        "| Post | Duties | Rank |\n| --- | --- | ---: |\n| Mate | Checks the cargo list \\| signs | 2 |"
    ]


def test_a_line_that_was_read_across_a_ruling_is_parted() -> None:
    content = [
        read("Site", 210, 310),
        read("Year", 410, 310),
        read("Mill 2021", 340, 350),
        read("Oak", 210, 390),
        read("2024", 410, 390),
    ]
    assert tables(page(content, rulings=mesh(XS[:3], [300, 340, 380, 420]))) == [
        "| Site | Year |\n| --- | ---: |\n| Mill | 2021 |\n| Oak | 2024 |"
    ]


def test_rows_inside_one_band_are_parted_by_their_numbers() -> None:
    content = cells(["Site", "Year", "Cost"], ["Mill", "2021", "128"], ["Oak", "2024", "14"], ["Ford", "2024", "9"])
    assert tables(page(content, rulings=mesh(XS, [300, 340, 470]))) == [
        "| Site | Year | Cost |\n| --- | ---: | ---: |\n| Mill | 2021 | 128 |\n| Oak | 2024 | 14 |\n| Ford | 2024 | 9 |"
    ]


def test_columns_inside_one_ruled_column_are_parted_by_alignment() -> None:
    rulings = mesh([200, 400, 800], [300, 340, 380, 420, 460])
    content = [
        line("Age", 210, 310),
        line("Men and women", 530, 310),
        *[item for k in range(3) for item in row(["1-2", f"{k}1,5", f"{k}2,5"], [210, 430, 650], 350 + 40 * k)],
    ]
    (table,) = tables(page(content, rulings=rulings))
    assert '<th colspan="2">Men and women</th>' in table
    assert "<td>01,5</td><td>02,5</td>" in table


def test_title_and_notes_inside_the_frame_stay_outside_the_table() -> None:
    rulings = Rulings(
        tuple(BoundingBox(200, y - 1, 800, y + 1) for y in (260, 300, 340, 380, 420, 480)),
        (
            BoundingBox(199, 260, 201, 480),
            BoundingBox(399, 300, 401, 420),
            BoundingBox(599, 300, 601, 420),
            BoundingBox(799, 260, 801, 480),
        ),
    )
    content = [
        line("Costs of the work", 210, 270),
        *cells(["Site", "Year", "Cost"], ["Mill", "2021", "128"], ["Oak", "2024", "14"]),
        *lines(
            ["All costs are in thousands of crowns and", "include the wages of the volunteers."], 210, 430, pitch=24
        ),
    ]
    blocks = build_blocks(page(content, rulings=rulings)).blocks
    assert [block.kind for block in blocks][1] is BlockKind.TABLE
    assert blocks[0].lines[0].text == "Costs of the work"
    assert blocks[1].markdown.startswith("| Site | Year | Cost |")
    assert blocks[2].markdown.startswith("All costs")


def test_a_frame_around_text_is_no_table() -> None:
    content = lines(["a paragraph inside a frame, as in a newsletter"] * 12, 210, 310)
    assert tables(page(content, rulings=mesh([200, 800], [300, 700]))) == []
    assert tables(page(content, rulings=mesh([200, 800, 1200], [300, 700]))) == []


def test_boxes_of_a_diagram_are_no_table() -> None:
    content = cells(["Hash", "Nonce", "Hash"], ["Tx", "Tx", "Tx"])
    figure = region(RegionKind.FIGURE, 190, 290, 810, 430)
    assert tables(page(content, (figure,), mesh(XS, [300, 340, 380, 420]))) == []


def test_underlines_and_single_rulings_are_no_grid() -> None:
    rulings = Rulings((BoundingBox(200, 330, 300, 332), BoundingBox(200, 900, 1400, 902)), ())
    assert tables(page(lines(["Underlined", "text below it"], 200, 300), rulings=rulings)) == []
