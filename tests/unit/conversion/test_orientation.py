from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image, ImageDraw, ImageFont

from fake_openai import Answer, FakeServer, Request
from pagemill import ConversionOptions, convert_async
from pagemill.conversion.orientation import turned, turns_to_try
from pagemill.domain import PageFlag, PageImage

TEXT = [
    "The council approved the second phase of the river project, and",
    "engineers will build a dike behind the old mill. Residents asked",
    "about noise, the footpath and what it all would finally cost them;",
    "they were told that half of the bill had been paid already. All of",
    "this took the better part of an hour, but that did not bother the",
    "chairman, who had slept badly and looked forward to his tea break.",
] * 4


def encoded(image: Image.Image) -> PageImage:
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return PageImage(0, buffer.getvalue(), "image/png", *image.size)


def upright() -> PageImage:
    image = Image.new("L", (1089, 1540), 248)
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default(26)
    for row, line in enumerate(TEXT):
        draw.text((90, 100 + row * 44), line, fill=15, font=font)
    return encoded(image)


@pytest.mark.parametrize(
    ("lies", "tries"),
    [(0, (0,)), (180, (0, 180)), (90, (270, 90)), (270, (90, 270))],
)
def test_pages_on_their_side_or_head_are_suspected(lies: int, tries: tuple[int, ...]) -> None:
    assert turns_to_try(turned(upright(), lies)) == tries


@pytest.mark.parametrize("picture", [Image.new("L", (800, 1100), 250), Image.effect_noise((800, 1100), 60)])
def test_pages_without_lines_are_left_alone(picture: Image.Image) -> None:
    assert turns_to_try(encoded(picture)) == (0,)


def test_four_quarter_turns_are_none() -> None:
    page = upright()
    there_and_back = turned(turned(page, 90), 270)
    assert Image.open(io.BytesIO(there_and_back.data)).tobytes() == Image.open(io.BytesIO(page.data)).tobytes()


async def test_the_better_reading_is_kept(tmp_path: Path, make_pdf: Callable[..., Path]) -> None:
    sideways = turned(upright(), 90)
    (tmp_path / "a.png").write_bytes(sideways.data)
    right_way = Image.open(io.BytesIO(upright().data)).tobytes()

    def script(request: Request) -> Answer:
        read = Image.open(io.BytesIO(request.image)).convert("L").tobytes() == right_way
        return Answer("The council approved the plan.\n" if read else "ǝɥʇ xzq vvv\n")

    async with FakeServer(script) as server:
        options = {"endpoints": [server.url]}
        (result,) = await convert_async(tmp_path / "a.png", engine_options=options)
        assert len(server.requests) == 2
        assert result.pages[0].markdown.startswith("The council")
        assert PageFlag.ROTATED in result.pages[0].flags
        await convert_async(tmp_path / "a.png", engine_options=options, options=ConversionOptions(orient=False))
        assert len(server.requests) == 3
