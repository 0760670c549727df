"""Tables that only alignment tells."""

from __future__ import annotations

from pagemill.domain import BlockKind, BoundingBox
from pagemill.engines.embedded.elements import Line, PageElements, RegionKind, Rulings
from pagemill.engines.embedded.structure import build_blocks, render_markdown
from structure_pages import line, lines, page, read, region, row

XS = [200, 500, 700]
ROWS = (["Site", "Year", "Cost"], ["Mill Bridge", "2021", "128,500"], ["Oak Weir", "2024", "14,300"])
EXPECTED = (
    "| Site | Year | Cost |\n| --- | ---: | ---: |\n| Mill Bridge | 2021 | 128,500 |\n| Oak Weir | 2024 | 14,300 |"
)


def tables(elements: PageElements) -> list[str]:
    return [block.markdown for block in build_blocks(elements).blocks if block.kind is BlockKind.TABLE]


def cells(*rows: list[str], top: float = 310, pitch: float = 40, xs: list[float] | None = None) -> list[Line]:
    return [item for k, texts in enumerate(rows) for item in row(texts, xs or XS, top + k * pitch)]


def test_a_table_that_the_model_proposes() -> None:
    table = region(RegionKind.TABLE, 190, 300, 800, 420)
    assert tables(page(cells(*ROWS), (table,))) == [EXPECTED]


def test_a_table_that_the_model_misses() -> None:
    assert tables(page(cells(*ROWS))) == [EXPECTED]


def test_a_column_outside_the_proposed_region_belongs_to_the_table() -> None:
    table = region(RegionKind.TABLE, 480, 300, 800, 420)
    assert tables(page(cells(*ROWS), (table,))) == [EXPECTED]


def test_wrapped_cells_leave_the_first_column_empty() -> None:
    content = [
        *cells(["Post", "Duties", "Rank"], ["Mate", "checks the list", "2"]),
        line("and signs it", 500, 376),
        *cells(["Cook", "serves meals", "4"], top=420),
    ]
    table = region(RegionKind.TABLE, 190, 300, 800, 450)
    assert tables(page(content, (table,))) == [
        (
            "| Post | Duties | Rank |\n| --- | --- | ---: |\n| Mate | checks the list and signs it | 2 |\n"
            "| Cook | serves meals | 4 |"
        )
    ]


def test_dense_rows_of_a_scan_whose_boxes_overlap_stay_apart() -> None:
    content = [
        item for k in range(6) for item in (read(f"Town {k}", 200, 310 + 20 * k), read(f"{k}4,5", 500, 310 + 20 * k))
    ]
    table = region(RegionKind.TABLE, 190, 300, 800, 460)
    (markdown,) = tables(page(content, (table,)))
    assert markdown.count("\n") == 6


def test_a_heading_over_several_columns_by_the_ruling_below_it() -> None:
    content = [
        *row(["2023"], [600], 300),
        *cells(["Region", "Q1", "Q2"], ["North", "12", "15"], ["South", "7", "9"], top=340),
    ]
    rulings = Rulings(
        (
            BoundingBox(200, 290, 740, 291),
            BoundingBox(500, 325, 740, 326),
            BoundingBox(200, 365, 740, 366),
            BoundingBox(200, 450, 740, 451),
        )
    )
    table = region(RegionKind.TABLE, 190, 285, 750, 455)
    (markdown,) = tables(page(content, (table,), rulings))
    assert '<tr><th rowspan="2">Region</th><th colspan="2">2023</th></tr>' in markdown
    assert "<tr><th>Q1</th><th>Q2</th></tr>" in markdown


def test_amounts_that_were_run_together_are_parted() -> None:
    content = [
        *cells(["Town", "2009", "2010"], ["Mill", "60,400", "42,600"], ["Oak", "50,000", "5,000"], xs=[200, 500, 572]),
        line("All", 200, 430),
        line("1,190,000 1,010,000", 470, 430),
    ]
    table = region(RegionKind.TABLE, 190, 300, 800, 460)
    (markdown,) = tables(page(content, (table,)))
    assert markdown.endswith("| All | 1,190,000 | 1,010,000 |")


def test_items_of_an_invoice_with_lines_of_details() -> None:
    content = [
        *cells(["Pos.", "Text", "Sum"], ["1", "Hosting", "3,89"], ["", "basic fee", ""], ["2", "Domain", "5,39"]),
        line("basic fee", 500, 470),
    ]
    (markdown,) = tables(page(content))
    assert "| 2 | Domain" in markdown
    assert "basic fee" in markdown.splitlines()[-1]


def test_labels_and_values_stay_side_by_side() -> None:
    content = cells(["Subtotal", "112.00"], ["Tax 15%", "16.94"], ["Total", "128.94"], xs=[200, 500])
    assert tables(page(content)) == ["| Subtotal | 112.00 |\n| --- | ---: |\n| Tax 15% | 16.94 |\n| Total | 128.94 |"]


def test_two_columns_of_prose_are_no_table() -> None:
    prose = "running text that fills its column to the edge"
    content = [*lines([prose] * 8, 100, 300), *lines([prose] * 8, 700, 300)]
    assert tables(page(content)) == []


def test_a_table_in_one_of_two_columns() -> None:
    prose = "running text that fills its column to the edge"
    content = [*lines([prose] * 8, 100, 300), *cells(*ROWS, top=330, xs=[700, 900, 1050])]
    blocks = build_blocks(page(content)).blocks
    assert [block.kind for block in blocks] == [BlockKind.TEXT, BlockKind.TABLE]
    assert blocks[1].markdown == EXPECTED


def test_two_address_blocks_are_no_table() -> None:
    left = ["Pino Bluebird", "Sesamestreet 32", "1025 RX Amsterdam", "Factuur 993548900"]
    right = ["Coolblue B.V.", "Weena 664", "3012 CN Rotterdam", "www.example.org"]
    content = [*lines(left, 100, 300), *lines(right, 1100, 300)]
    assert tables(page(content)) == []
    assert "Sesamestreet 32  \n1025 RX" in render_markdown(build_blocks(page(content)).blocks)


def test_bullets_are_no_column() -> None:
    content = [item for k in range(4) for item in row(["•", f"item number {k}"], [200, 260], 300 + 28 * k)]
    assert tables(page(content)) == []


def test_labels_of_a_chart_are_no_table() -> None:
    content = cells(["54,000", "", "0.50"], ["53,000", "income", "0.48"], ["52,000", "", "0.46"])
    figure = region(RegionKind.FIGURE, 190, 290, 850, 450)
    assert tables(page(content, (figure,))) == []


def test_a_dense_table_that_the_model_takes_for_a_figure() -> None:
    figure = region(RegionKind.FIGURE, 190, 290, 850, 450)
    assert tables(page(cells(*ROWS), (figure,))) == [EXPECTED]


def test_the_scattered_parts_of_a_formula_are_no_table() -> None:
    content = cells(["k", "e", "q"], ["z", "=", "p"], ["0", "-", "k"], ["1", "+", "z"], pitch=26)
    assert tables(page(content)) == []
    parts = cells(["1.5", "2.5", "3.5"], ["4.5", "5.5", "6.5"], ["7.5", "8.5", "9.5"], pitch=26)
    equation = region(RegionKind.EQUATION, 190, 300, 800, 400, score=0.8)
    assert tables(page(parts, (equation,))) == []
