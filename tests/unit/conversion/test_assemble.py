from __future__ import annotations

from pagemill.conversion import FurniturePolicy
from pagemill.conversion.assemble import document_markdown, page_markdown, page_marker
from pagemill.domain import Block, BlockKind, BoundingBox, Figure, FinishReason, PageError, PageFlag, PageResult

BOX = BoundingBox(0, 0, 1, 1)


def page(index: int, markdown: str, **fields: object) -> PageResult:
    return PageResult(index=index, markdown=markdown, **fields)  # type: ignore[arg-type]


def test_each_page_starts_with_its_marker_blank_and_failed_ones_too() -> None:
    pages = [
        page(0, "One\n"),
        page(1, "", flags=(PageFlag.BLANK,)),
        page(2, "", finish_reason=FinishReason.ERROR, error=PageError("render_failed", "It crashed.")),
        page(3, "begun", finish_reason=FinishReason.LENGTH),
    ]
    text = "".join(document_markdown(pages, FurniturePolicy.DROP))
    assert text == (
        "<!-- page 1 -->\n\nOne\n"
        "\n<!-- page 2: blank -->\n"
        "\n<!-- page 3: failed (render_failed) -->\n"
        "\n<!-- page 4: incomplete (length) -->\n\nbegun\n"
    )


def test_without_markers_only_failures_are_marked() -> None:
    pages = [
        page(0, "One\n"),
        page(1, "", flags=(PageFlag.BLANK,)),
        page(2, "Three"),
        page(3, "", finish_reason=FinishReason.ERROR),
    ]
    text = "".join(document_markdown(pages, FurniturePolicy.DROP, page_markers=False))
    assert text == "One\n\nThree\n\n<!-- page 4: failed (error) -->\n"


def test_headers_and_footers_are_dropped_commented_or_kept() -> None:
    result = page(0, "Body\n", blocks=(Block(BlockKind.HEADER, "Head -- 1", BOX), Block(BlockKind.FOOTER, "7", BOX)))
    assert page_markdown(result, FurniturePolicy.DROP) == "Body"
    assert page_markdown(result, FurniturePolicy.KEEP) == "Head -- 1\n\nBody\n\n7"
    assert page_markdown(result, FurniturePolicy.COMMENT) == "<!-- Head - 1 -->\n\nBody\n\n<!-- 7 -->"


def test_links_lead_into_the_picture_folder_and_only_own_pictures_are_touched() -> None:
    result = page(
        0,
        "![figure](p0001-figure-1.png) ![other](elsewhere.png)",
        figures=(Figure("p0001-figure-1.png", b"", "image/png", BOX),),
    )
    assert page_markdown(result, FurniturePolicy.DROP, "my report.assets") == (
        "![figure](my%20report.assets/p0001-figure-1.png) ![other](elsewhere.png)"
    )


def test_a_marker_cannot_be_closed_by_an_error() -> None:
    evil = page(0, "", finish_reason=FinishReason.ERROR, error=PageError("x --> <script>", ""))
    assert page_marker(evil).count("-->") == 1
