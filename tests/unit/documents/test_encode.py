from __future__ import annotations

import io
import random

import pytest
from PIL import Image, ImageDraw

from pagemill.documents.encode import encode, encode_png
from pagemill.documents.options import RenderOptions

NOISE = random.Random(7)


def text(mode: str) -> Image.Image:
    image = Image.new(mode, (500, 700), "white")
    draw = ImageDraw.Draw(image)
    for y in range(20, 680, 14):
        draw.text((20, y), "".join(NOISE.choices("etaoin shrdlu", k=60)), fill="black")
    if mode == "RGB":
        draw.rectangle((50, 50, 200, 90), fill=(10, 120, 250))
    return image


def noise(mode: str) -> Image.Image:
    smooth = Image.linear_gradient("L").resize((500, 700))
    grain = Image.frombytes("L", (500, 700), NOISE.randbytes(350_000)).point(lambda value: value // 16)
    band = Image.blend(smooth, grain, 0.3)
    return band if mode == "L" else Image.merge("RGB", (band, band.rotate(180), grain))


PAGES = {
    "text grey": text("L"),
    "text colour": text("RGB"),
    "noise grey": noise("L"),
    "noise colour": noise("RGB"),
    "one pixel": Image.new("L", (1, 1), 9),
    "one row": Image.effect_noise((400, 1), 50),
    "one column": Image.effect_noise((1, 400), 50).convert("RGB"),
    "blank": Image.new("RGB", (300, 300), "white"),
}


@pytest.mark.parametrize("name", PAGES)
def test_png_keeps_every_pixel(name: str) -> None:
    image = PAGES[name]
    with Image.open(io.BytesIO(encode_png(image))) as decoded:
        decoded.load()
        assert decoded.format == "PNG"
        assert decoded.mode == image.mode
        assert decoded.tobytes() == image.tobytes()


@pytest.mark.parametrize("name", ["text grey", "text colour", "noise grey", "noise colour"])
def test_png_is_no_larger_than_that_of_pillow(name: str) -> None:
    target = io.BytesIO()
    PAGES[name].convert("RGB").save(target, "PNG")
    assert len(encode_png(PAGES[name])) <= 1.02 * len(target.getvalue())


@pytest.mark.parametrize(("media_type", "kind"), [("image/jpeg", "JPEG"), ("image/webp", "WEBP")])
def test_other_encodings(media_type: str, kind: str) -> None:
    data = encode(PAGES["text colour"], RenderOptions(media_type=media_type))
    with Image.open(io.BytesIO(data)) as decoded:
        assert decoded.format == kind
        assert decoded.size == (500, 700)


def test_webp_is_lossless() -> None:
    data = encode(PAGES["noise colour"], RenderOptions(media_type="image/webp"))
    assert Image.open(io.BytesIO(data)).convert("RGB").tobytes() == PAGES["noise colour"].tobytes()
