from __future__ import annotations

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFilter, ImageOps

from drawn_pages import drawn, noisy
from pagemill.engines.embedded.imaging import Sheet
from pagemill.engines.embedded.ink import ink_mask, is_blank


def empty(paper: int = 255) -> Image.Image:
    return drawn([], paper=paper)


@pytest.mark.parametrize("paper", [255, 200, 120])
def test_empty_paper_is_blank(paper: int) -> None:
    assert is_blank(Sheet(empty(paper)))


def test_empty_noisy_paper_is_blank() -> None:
    assert is_blank(Sheet(noisy(empty(230), 9)))


def test_shading_and_dust_are_blank() -> None:
    shade = np.tile(np.linspace(250, 180, 800), (1100, 1)).astype(np.uint8)
    generator = np.random.default_rng(3)
    shade[generator.integers(50, 1050, 60), generator.integers(50, 750, 60)] = 40
    assert is_blank(Sheet(Image.fromarray(shade)))


def test_dark_edges_of_a_scan_are_blank() -> None:
    image = empty()
    ImageDraw.Draw(image).rectangle((0, 0, 14, 1099), fill=30)
    ImageDraw.Draw(image).rectangle((0, 1090, 799, 1099), fill=60)
    assert is_blank(Sheet(image))


@pytest.mark.parametrize(("text", "ink", "paper"), [("17", 0, 255), ("17", 120, 235), ("A faint line", 190, 250)])
def test_a_page_number_and_faint_print_are_not_blank(text: str, ink: int, paper: int) -> None:
    assert not is_blank(Sheet(drawn([text], size=22, ink=ink, paper=paper)))


def test_white_print_on_a_dark_bar_is_not_blank() -> None:
    image = empty()
    image.paste(ImageOps.invert(drawn(["inverted"], top=10, canvas=(400, 60))), (100, 200))
    assert not is_blank(Sheet(image))


@pytest.mark.parametrize("deviation", [3.0, 8.0, 15.0])
def test_noise_is_measured_whatever_the_text(deviation: float) -> None:
    assert Sheet(noisy(drawn(paper=180), deviation)).noise == pytest.approx(deviation, rel=0.15)


def test_clean_pages_have_no_noise() -> None:
    assert Sheet(drawn()).noise == 0


def test_noise_is_no_ink() -> None:
    mask = ink_mask(Sheet(noisy(drawn([], paper=180).filter(ImageFilter.GaussianBlur(1)), 12)))
    assert mask.mean() < 1e-4
