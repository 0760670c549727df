"""Page images drawn with Pillow's own font, for tests of engines that read pixels."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from pagemill.domain import PageImage

WIDTH, HEIGHT = 800, 1100
PARAGRAPH = (
    "The mill stands on the north bank of",
    "the river and has ground flour since 1784.",
    "Two pairs of stones are still in use today,",
    "and visitors may watch them every Sunday.",
)


def drawn(
    lines: Sequence[str] = PARAGRAPH,
    *,
    size: int = 28,
    top: int = 120,
    left: int = 80,
    pitch: float = 1.6,
    ink: int = 0,
    paper: int = 255,
    canvas: tuple[int, int] = (WIDTH, HEIGHT),
) -> Image.Image:
    """Text lines under each other on an empty page."""
    image = Image.new("L", canvas, paper)
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default(size)
    for number, line in enumerate(lines):
        draw.text((left, top + number * size * pitch), line, fill=ink, font=font)
    return image


def noisy(image: Image.Image, deviation: float, seed: int = 1) -> Image.Image:
    """The image with Gaussian noise of that standard deviation in grey levels."""
    noise = np.random.default_rng(seed).normal(0, deviation, (image.height, image.width))
    return Image.fromarray(np.clip(np.asarray(image.convert("L")) + noise, 0, 255).astype(np.uint8))


def page_image(image: Image.Image, index: int = 0, image_format: str = "PNG") -> PageImage:
    """The image as an engine gets it."""
    buffer = io.BytesIO()
    image.save(buffer, image_format)
    return PageImage(index, buffer.getvalue(), f"image/{image_format.lower()}", image.width, image.height)
