from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from pagemill.conversion.enhance import Enhancement, binarized, enhanced, equalized
from pagemill.conversion.ink import measure_ink
from pagemill.domain import PageImage


def printed(ink: int, paper: int, gradient: int = 0, noise: float = 0.0) -> Image.Image:
    image = Image.new("L", (700, 900), paper)
    draw = ImageDraw.Draw(image)
    for row in range(25):
        draw.text(
            (60, 60 + row * 30),
            f"Line {row} of a page of print that is faint",
            fill=ink,
            font=ImageFont.load_default(20),
        )
    values = np.asarray(image.filter(ImageFilter.GaussianBlur(0.5))).astype(float)
    values += np.linspace(0, -gradient, 700)[None, :] + np.random.default_rng(2).normal(0, noise, values.shape)
    return Image.fromarray(np.clip(values, 0, 255).astype(np.uint8))


def encoded(image: Image.Image) -> PageImage:
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return PageImage(0, buffer.getvalue(), "image/png", *image.size)


def contrast(image: Image.Image | np.ndarray) -> float:
    values = np.asarray(image).astype(float)
    return float(np.percentile(values, 90) - np.percentile(values, 2))


def test_auto_leaves_good_pages_as_they_are() -> None:
    page = encoded(printed(20, 245))
    assert enhanced(page, Enhancement.AUTO, measure_ink(page)) is page


def test_auto_gives_faint_pages_contrast() -> None:
    image = printed(165, 215, gradient=20)
    page = encoded(image)
    better = enhanced(page, Enhancement.AUTO, measure_ink(page))
    assert better is not page
    assert (better.width, better.height) == image.size
    assert contrast(Image.open(io.BytesIO(better.data))) > 1.5 * contrast(image)


def test_off_does_nothing_even_to_faint_pages() -> None:
    page = encoded(printed(165, 215))
    assert enhanced(page, Enhancement.OFF, measure_ink(page)) is page


@pytest.mark.parametrize("shape", [(900, 700), (97, 51), (16, 16), (8, 300)])
def test_any_shape_is_taken(shape: tuple[int, int]) -> None:
    grey = np.random.default_rng(3).integers(0, 255, shape).astype(np.uint8)
    assert equalized(grey).shape == shape
    assert set(np.unique(binarized(grey))) <= {0, 255}


def test_binarised_print_is_black_on_white_in_uneven_light() -> None:
    image = printed(60, 200, gradient=90, noise=4)
    clean = np.asarray(printed(0, 255)) < 128
    black = binarized(np.asarray(image)) == 0
    assert (black & clean).sum() > 0.85 * clean.sum()
    assert (black & ~clean).sum() < 0.6 * clean.sum()
