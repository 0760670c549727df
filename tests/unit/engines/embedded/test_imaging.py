from __future__ import annotations

import dataclasses
import io

import numpy as np
import pytest
from PIL import Image, ImageDraw

from drawn_pages import drawn, page_image
from pagemill.domain.errors import RequestRejectedError
from pagemill.engines.embedded import imaging
from pagemill.engines.embedded.imaging import Rotation, Sheet, decode, paper_brightness


@pytest.mark.parametrize("image_format", ["PNG", "JPEG", "WEBP"])
def test_every_encoding_of_the_capabilities_is_decoded(image_format: str) -> None:
    sheet = decode(page_image(drawn(), image_format=image_format))
    assert (sheet.width, sheet.height) == (800, 1100)
    assert sheet.grey.min() < 40


def test_transparency_becomes_white_paper() -> None:
    image = Image.new("RGBA", (40, 30), (0, 0, 0, 0))
    assert decode(page_image(image)).grey.min() == 255


@pytest.mark.parametrize("mode", ["1", "P", "I;16", "CMYK", "LA"])
def test_every_colour_mode_is_decoded(mode: str) -> None:
    image = Image.new("I;16", (40, 30), 65535) if mode == "I;16" else Image.new("L", (40, 30), 255).convert(mode)
    page = page_image(image, image_format="TIFF" if mode == "CMYK" else "PNG")
    assert decode(page).grey.min() == 255


@pytest.mark.parametrize("data", [b"", b"no image at all", b"\x89PNG\r\n\x1a\n"])
def test_broken_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(RequestRejectedError, match="page 1"):
        decode(dataclasses.replace(page_image(drawn()), data=data))


def test_a_cut_image_is_refused() -> None:
    page = page_image(drawn())
    with pytest.raises(RequestRejectedError, match="cannot be decoded"):
        decode(dataclasses.replace(page, data=page.data[: len(page.data) // 2]))


def test_too_many_pixels_are_refused_before_they_are_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imaging, "MAX_PIXELS", 1000)
    with pytest.raises(RequestRejectedError, match="1,000"):
        decode(page_image(Image.new("L", (200, 200))))


def test_turning_four_times_gives_the_page_again() -> None:
    sheet = Sheet(drawn())
    once = sheet.turned(1)
    assert (once.width, once.height) == (sheet.height, sheet.width)
    assert once.grey[80, -120] == sheet.grey[119, 80]
    np.testing.assert_array_equal(once.turned(1).turned(2).grey, sheet.grey)
    assert sheet.turned(0) is sheet


def test_paper_is_seen_through_text_and_shading() -> None:
    shade = np.linspace(255, 150, 800)
    page = np.minimum(np.asarray(drawn()), shade[None, :]).astype(np.uint8)
    paper = paper_brightness(page)
    assert paper.shape == page.shape
    assert np.abs(paper.astype(float) - shade[None, :]).max() < 12


@pytest.mark.parametrize("size", [(1, 1), (5, 3), (33, 64), (100, 31)])
def test_paper_of_tiny_pages_is_measured_too(size: tuple[int, int]) -> None:
    page = np.full(size, 200, dtype=np.uint8)
    np.testing.assert_array_equal(paper_brightness(page), page)


@pytest.mark.parametrize("degrees", [-7.0, -1.0, 2.5, 15.0])
def test_points_and_pixels_turn_alike_and_nothing_is_cut_off(degrees: float) -> None:
    image = Image.new("RGB", (300, 200), "white")
    spots = np.array([[5.5, 5.5], [294.5, 5.5], [150.5, 100.5], [294.5, 194.5]])
    for x, y in spots:
        ImageDraw.Draw(image).rectangle((x - 3, y - 3, x + 2, y + 2), fill="black")
    rotation = Rotation(degrees, image.size)
    turned = rotation.apply(Sheet(image))
    assert (turned.width, turned.height) == rotation.canvas
    for x, y in rotation.points(spots):
        assert turned.grey[int(y), int(x)] < 60
    assert turned.grey[0, 0] > 200


def test_a_line_that_falls_to_the_right_becomes_level() -> None:
    rotation = Rotation(10.0, (400, 300))
    (left, right) = rotation.points(np.array([[100.0, 100.0], [200.0, 100.0 + 100 * np.tan(np.radians(10))]]))
    assert left[1] == pytest.approx(right[1])


def test_saved_bytes_are_not_touched() -> None:
    page = page_image(drawn())
    before = bytes(page.data)
    decode(page)
    assert page.data == before
    assert Image.open(io.BytesIO(page.data)).size == (800, 1100)
