from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from pagemill.conversion.checks import check_text
from pagemill.conversion.ink import measure_ink
from pagemill.domain import PageFlag, PageImage

WIDTH, HEIGHT = 1089, 1540


def encoded(image: Image.Image) -> PageImage:
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return PageImage(0, buffer.getvalue(), "image/png", *image.size)


def paper(level: int = 245, noise: float = 0.0) -> Image.Image:
    grain = np.random.default_rng(1).normal(level, noise, (HEIGHT, WIDTH))
    return Image.fromarray(np.clip(grain, 0, 255).astype(np.uint8))


def printed(text: str, level: int = 245, size: int = 18, ink: int = 20, noise: float = 0.0) -> Image.Image:
    image = paper(level, noise)
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default(size)
    for row, line in enumerate(text.splitlines()):
        draw.text((100, 100 + row * size * 1.5), line, fill=ink, font=font)
    return image


TEXT = "\n".join(f"Line {n} of a page of print with some forty letters in it" for n in range(30))


@pytest.mark.parametrize(
    "image",
    [
        paper(),
        paper(200, 6.0),
        paper(235, 12.0),
        printed(TEXT, ink=215).filter(ImageFilter.GaussianBlur(3)).transpose(Image.Transpose.FLIP_LEFT_RIGHT),
        printed(TEXT, level=225, ink=190, noise=4).filter(ImageFilter.GaussianBlur(2.5)),
    ],
    ids=["white", "grey", "noisy", "bleed-through", "noisy bleed-through"],
)
def test_pages_without_print_are_blank(image: Image.Image) -> None:
    assert measure_ink(encoded(image)).is_blank


@pytest.mark.parametrize(
    "image",
    [
        printed(TEXT),
        printed("7"),
        printed(TEXT, ink=160),
        printed(TEXT, level=210, ink=120, noise=6),
        printed("A faint stamp", ink=190),
    ],
    ids=["print", "a page number", "faint print", "faint noisy print", "a faint stamp"],
)
def test_pages_with_print_are_not(image: Image.Image) -> None:
    assert not measure_ink(encoded(image)).is_blank


def test_a_text_that_the_ink_cannot_be_is_flagged() -> None:
    ink = measure_ink(encoded(printed(TEXT)))
    assert check_text(TEXT, ink) == ()
    assert check_text(TEXT * 12, ink) == (PageFlag.TEXT_EXCEEDS_INK,)


@pytest.mark.parametrize("size", [11, 14, 24])
def test_print_of_usual_sizes_is_not_flagged(size: int) -> None:
    assert check_text(TEXT, measure_ink(encoded(printed(TEXT, size=size)))) == ()


@pytest.mark.parametrize(
    "text",
    [
        "河流治理年度报告，市议会批准了第二阶段的河流治理项目。",
        "河川再生事業の年次報告、ホタルなども戻ってきており",
        "Størrelsen af budgettet er større, og ålen vender tilbage til floden.",
        "Die Größe der Überschwemmungsfläche wächst: $\\alpha + \\beta = 𝛾$ für alle Flüsse",
    ],
)
def test_the_languages_of_the_model_are_known(text: str) -> None:
    assert PageFlag.UNKNOWN_SCRIPT not in check_text(text, measure_ink(encoded(printed(TEXT))))


@pytest.mark.parametrize(
    "text", ["Годовой отчёт о восстановлении реки и берегов", "التقرير السنوي عن استعادة الأنهار والضفاف"]
)
def test_other_scripts_are_flagged(text: str) -> None:
    assert PageFlag.UNKNOWN_SCRIPT in check_text(text, measure_ink(encoded(printed(TEXT))))
