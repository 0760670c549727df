from __future__ import annotations

import dataclasses
import io

import pytest
from PIL import Image, ImageDraw, ImageFont, ImageOps

from drawn_pages import PARAGRAPH, drawn, page_image
from pagemill.domain import BoundingBox, PageFlag, PageImage, PageResult, TextLayer, TextSpan, TextVerdict
from pagemill.engines.embedded.pipeline import PagePipeline

FONT = ImageFont.load_default(28)


def check() -> None:
    """Goes on."""


def with_layer(
    image: Image.Image, spans: list[TextSpan], images: tuple[BoundingBox, ...] = (), **layer: object
) -> PageImage:
    verdict = layer.get("verdict", TextVerdict.SANE)
    assert isinstance(verdict, TextVerdict)
    return dataclasses.replace(page_image(image), text_layer=TextLayer(verdict, tuple(spans), images))


def spans_of(lines: tuple[str, ...] = PARAGRAPH, *, sane: bool = True) -> list[TextSpan]:
    return [
        TextSpan(
            text, BoundingBox(80, 122 + 44.8 * number, 80 + FONT.getlength(text), 152 + 44.8 * number), 28, sane=sane
        )
        for number, text in enumerate(lines)
    ]


def words(result: PageResult) -> str:
    return " ".join(result.markdown.split())


ALL = " ".join(PARAGRAPH)


def test_pixels_become_markdown_with_blocks_and_confidence(pipeline: PagePipeline) -> None:
    result = pipeline.process(page_image(drawn(), index=4), check)
    assert result.ok
    assert result.index == 4
    assert words(result) == ALL
    assert result.flags == ()
    assert result.confidence is not None
    assert result.confidence > 0.9
    assert result.blocks
    assert (result.width, result.height) == (800, 1100)
    assert result.duration_s > 0


def test_a_blank_page_is_marked_and_says_nothing(pipeline: PagePipeline) -> None:
    result = pipeline.process(page_image(drawn([])), check)
    assert (result.markdown, result.flags, result.confidence) == ("", (PageFlag.BLANK,), None)
    assert result.ok


def test_print_shining_through_is_blank(pipeline: PagePipeline) -> None:
    through = drawn(ink=205, paper=245).transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    result = pipeline.process(page_image(through), check)
    assert result.markdown == ""
    assert PageFlag.BLANK in result.flags


def test_turned_and_skewed_pages_are_flagged(pipeline: PagePipeline) -> None:
    turned = pipeline.process(page_image(drawn().transpose(Image.Transpose.ROTATE_90)), check)
    assert turned.flags == (PageFlag.ROTATED,)
    assert (turned.width, turned.height) == (800, 1100)
    skewed = pipeline.process(page_image(drawn().rotate(3, fillcolor=255)), check)
    assert skewed.flags == (PageFlag.DESKEWED,)
    assert words(skewed) == ALL


def test_a_sane_layer_is_taken_at_its_word(pipeline: PagePipeline) -> None:
    told = tuple(line.replace("mill", "MILL!") for line in PARAGRAPH)
    result = pipeline.process(with_layer(drawn(), spans_of(told)), check)
    assert words(result) == " ".join(told)
    assert result.flags == (PageFlag.TEXT_LAYER,)
    assert result.confidence == 1


@pytest.mark.parametrize("verdict", [TextVerdict.HIDDEN, TextVerdict.GARBLED, TextVerdict.ABSENT])
def test_a_layer_that_is_not_sane_is_not_believed(pipeline: PagePipeline, verdict: TextVerdict) -> None:
    page = with_layer(drawn(), spans_of(("□□□ wrong",)), verdict=verdict)
    result = pipeline.process(page, check)
    assert words(result) == ALL
    assert PageFlag.TEXT_LAYER not in result.flags


def test_text_inside_a_picture_is_read_beside_the_layer(pipeline: PagePipeline) -> None:
    image = drawn()
    image.paste(drawn(["Scanned stamp of the office"], top=20, left=30, ink=40, paper=225, canvas=(600, 90)), (80, 600))
    page = with_layer(image, spans_of(), (BoundingBox(80, 600, 680, 690),))
    result = pipeline.process(page, check)
    assert ALL in words(result)
    assert "Scanned stamp of the office" in words(result)
    assert result.flags == (PageFlag.TEXT_LAYER, PageFlag.MIXED)


def test_a_background_picture_under_the_text_is_not_read_again(pipeline: PagePipeline) -> None:
    page = with_layer(drawn(), spans_of(), (BoundingBox(0, 0, 800, 300),))
    result = pipeline.process(page, check)
    assert words(result) == ALL
    assert result.flags == (PageFlag.TEXT_LAYER,)


def test_spans_of_an_unusable_font_are_read_from_pixels(pipeline: PagePipeline) -> None:
    spans = [*spans_of(PARAGRAPH[:3]), dataclasses.replace(spans_of()[3], text="\x01\x02\x03", sane=False)]
    result = pipeline.process(with_layer(drawn(), spans), check)
    assert words(result) == ALL
    assert PageFlag.MIXED in result.flags


def test_text_drawn_as_outlines_is_found(pipeline: PagePipeline) -> None:
    outlined = ("These words are drawn as shapes", "and no layer tells a thing of them.")
    result = pipeline.process(with_layer(drawn((*PARAGRAPH, "", "", *outlined)), spans_of()), check)
    assert ALL in words(result)
    assert all(line in words(result) for line in outlined)


def test_an_invisible_text_layer_over_empty_paper_still_counts(pipeline: PagePipeline) -> None:
    result = pipeline.process(with_layer(drawn([]), spans_of()), check)
    assert words(result) == ALL


def test_pictures_are_cropped_under_the_name_that_the_markdown_links_to(pipeline: PagePipeline) -> None:
    image = drawn().convert("RGB")
    photo = Image.linear_gradient("L").resize((500, 300)).convert("RGB")
    ImageDraw.Draw(photo).ellipse((120, 60, 360, 260), fill=(200, 60, 40))
    image.paste(photo, (150, 420))
    page = with_layer(image, spans_of(), (BoundingBox(150, 420, 650, 720),))
    result = pipeline.process(page, check)
    (figure,) = result.figures
    assert f"({figure.name})" in result.markdown
    crop = Image.open(io.BytesIO(figure.data))
    assert figure.media_type == Image.MIME[str(crop.format)]
    assert crop.size == (pytest.approx(500, abs=12), pytest.approx(300, abs=12))
    assert crop.convert("RGB").getpixel((crop.width // 2, crop.height // 2))[0] > 150  # type: ignore[index]


@pytest.mark.parametrize(
    "image",
    [
        Image.new("L", (1, 1)),
        Image.new("L", (3, 2000), 255),
        Image.new("L", (2000, 2), 128),
        Image.new("L", (900, 1200), 0),
        Image.effect_noise((700, 900), 120),
        Image.linear_gradient("L").resize((700, 900)),
        ImageOps.invert(drawn(["White on black"], size=40, canvas=(700, 200))),
    ],
    ids=["pixel", "sliver", "strip", "black", "noise", "gradient", "inverted"],
)
def test_odd_images_end_as_pages(pipeline: PagePipeline, image: Image.Image) -> None:
    result = pipeline.process(page_image(image), check)
    assert result.ok
    expected = "White on black" if image.size == (700, 200) else ""
    assert expected in result.markdown
    assert len(result.markdown) <= len(expected) + 40


def test_two_pages_of_another_size_share_nothing(pipeline: PagePipeline) -> None:
    first = pipeline.process(page_image(drawn(["Only on the first"])), check)
    second = pipeline.process(page_image(drawn(["Only on the second"], canvas=(500, 300))), check)
    assert "first" in first.markdown
    assert "first" not in second.markdown
    assert "second" in second.markdown


def test_pictures_on_a_dark_page_keep_their_colours(pipeline: PagePipeline) -> None:
    image = ImageOps.invert(drawn(paper=245)).convert("RGB")
    photo = Image.linear_gradient("L").resize((500, 300)).convert("RGB")
    ImageDraw.Draw(photo).ellipse((120, 60, 360, 260), fill=(200, 60, 40))
    image.paste(photo, (150, 420))
    result = pipeline.process(with_layer(image, spans_of(), (BoundingBox(150, 420, 650, 720),)), check)
    (figure,) = result.figures
    crop = Image.open(io.BytesIO(figure.data)).convert("RGB")
    assert crop.getpixel((crop.width // 2, crop.height // 2)) == (200, 60, 40)


def test_marks_that_cannot_be_read_are_not_called_blank(pipeline: PagePipeline) -> None:
    image = drawn([])
    draw = ImageDraw.Draw(image)
    for start in range(0, 360, 24):
        draw.arc(
            (200 + start / 4, 300 + start / 3, 620 - start / 3, 800 - start / 4), start, start + 200, fill=0, width=4
        )
    result = pipeline.process(page_image(image), check)
    assert PageFlag.BLANK not in result.flags
