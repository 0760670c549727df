import base64

import pytest
from mistralai.client.models import OCRPageObject

from pagemill.domain import Block, BlockKind, BoundingBox, Figure, Page, PageResult, TextLine
from pagemill.gateway.mistral import OcrRequest
from pagemill.gateway.mistral_pages import PageShaper

BOX = BoundingBox(10, 20, 110.6, 220)
A4 = Page(0, 595.3, 841.9)


def request(**fields):
    return OcrRequest.model_validate({"document": {"document_url": "data:x"}, **fields}).wishes


def figure(name, box=BOX):
    return Figure(name, b"", "image/png", box)


def shape(result, page=A4, data=None, **fields):
    shaped = PageShaper(request(**fields)).shape(page, result, data or {})
    # What the real client makes of it is what counts.
    return OCRPageObject.model_validate_json(shaped.model_dump_json())


def test_pictures_get_the_names_that_clients_look_for():
    result = PageResult(0, "Text\n\n![figure](p0001-figure-1.png)\n", figures=(figure("p0001-figure-1.png"),))
    page = shape(result, data={"p0001-figure-1.png": b"PNG"})
    (image,) = page.images
    assert page.markdown == "Text\n\n![img-0.png](img-0.png)"
    assert image.id == "img-0.png"
    assert (image.top_left_x, image.top_left_y, image.bottom_right_x, image.bottom_right_y) == (10, 20, 111, 220)
    assert image.image_base64 == "data:image/png;base64," + base64.b64encode(b"PNG").decode()


def test_pictures_and_tables_are_numbered_through_the_document():
    shaper = PageShaper(request(table_format="markdown"))
    table = "| a |\n| --- |\n| 1 |"
    pages = [
        shaper.shape(A4, PageResult(index, f"![f](f.png)\n\n{table}\n", figures=(figure("f.png"),)), {})
        for index in range(2)
    ]
    assert [page.images[0].id for page in pages] == ["img-0.png", "img-1.png"]
    assert [page.tables[0].id for page in pages] == ["tbl-0.md", "tbl-1.md"]


def test_the_limit_on_pictures_counts_through_the_document():
    shaper = PageShaper(request(image_limit=1))
    results = [PageResult(index, "![f](f.png)", figures=(figure("f.png"),)) for index in range(2)]
    pages = [shaper.shape(A4, result, {}) for result in results]
    assert [len(page.images) for page in pages] == [1, 0]
    assert [page.markdown for page in pages] == ["![img-0.png](img-0.png)", ""]


def test_small_pictures_are_left_out_with_their_links():
    small = figure("small.png", BoundingBox(0, 0, 300, 40))
    result = PageResult(0, "![a](small.png) and ![b](large.png)", figures=(small, figure("large.png")))
    page = shape(result, image_min_size=50)
    assert page.markdown == " and ![img-0.png](img-0.png)"


FURNISHED = PageResult(
    0,
    "Body",
    blocks=(
        Block(BlockKind.HEADER, "Journal", BOX),
        Block(BlockKind.TEXT, "Body", BOX, 0.9, lines=(TextLine("Body", BOX, 0.5),)),
        Block(BlockKind.FOOTER, "Page 1", BOX),
    ),
    confidence=0.8,
)


@pytest.mark.parametrize(
    ("fields", "markdown", "header", "footer"),
    [
        ({}, "Journal\n\nBody\n\nPage 1", None, None),
        ({"extract_header": True}, "Body\n\nPage 1", "Journal", None),
        ({"extract_header": True, "extract_footer": True}, "Body", "Journal", "Page 1"),
    ],
)
def test_headers_and_footers_are_in_the_text_or_apart(fields, markdown, header, footer):
    page = shape(FURNISHED, **fields)
    assert (page.markdown, page.header, page.footer) == (markdown, header, footer)


def test_blocks_are_told_unless_they_are_not_wanted():
    blocks = shape(FURNISHED).blocks
    assert [(block.type, block.content) for block in blocks] == [
        ("header", "Journal"),
        ("text", "Body"),
        ("footer", "Page 1"),
    ]
    assert shape(FURNISHED, include_blocks=False).blocks is None
    assert shape(PageResult(0, "x")).blocks is None


def test_every_kind_of_block_is_one_that_the_client_knows():
    blocks = tuple(Block(kind, "![f](f.png)", BOX) for kind in BlockKind)
    shaped = shape(PageResult(0, "", blocks=blocks, figures=(figure("f.png"),))).blocks
    assert [block.type for block in shaped if block.type == "UNKNOWN"] == []
    (image,) = [block for block in shaped if block.type == "image"]
    assert (image.image_id, image.content) == ("img-0.png", "![img-0.png](img-0.png)")


def test_confidences_by_page_and_by_block():
    page = shape(FURNISHED, confidence_scores_granularity="page")
    assert page.confidence_scores.average_page_confidence_score == 0.8
    assert page.confidence_scores.minimum_page_confidence_score == 0.5
    assert page.blocks[1].confidence_scores is None
    (_, text, _) = shape(FURNISHED, confidence_scores_granularity="block").blocks
    assert text.confidence_scores.average_content_confidence_score == 0.9
    assert text.confidence_scores.minimum_content_confidence_score == 0.5


def test_dimensions_are_those_of_the_image():
    page = shape(PageResult(0, "", width=1089, height=1540))
    assert (page.dimensions.width, page.dimensions.height, page.dimensions.dpi) == (1089, 1540, 132)
    assert shape(PageResult(0, "")).dimensions is None


def test_a_page_that_was_turned_keeps_its_resolution():
    turned = shape(PageResult(0, "", width=1540, height=1089))
    assert turned.dimensions.dpi == 132


def test_links_are_listed_once():
    text = "[a](https://example.com/x) <https://example.org> [b](https://example.com/x) ![c](https://example.net/i.png)"
    assert shape(PageResult(0, text)).hyperlinks == ["https://example.com/x", "https://example.org"]
