import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from pagemill.gateway.image_heads import image_size


def encoded(kind, size=(301, 77), mode="RGB", **options):
    buffer = io.BytesIO()
    Image.new(mode, size, 1).save(buffer, kind, **options)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("PNG", {}),
        ("JPEG", {}),
        ("JPEG", {"progressive": True}),
        ("JPEG", {"exif": b"Exif\0\0" + b"x" * 60_000}),
        ("WEBP", {"lossless": False}),
        ("WEBP", {"lossless": True}),
        ("WEBP", {"exif": b"Exif\0\0MM"}),
        ("GIF", {}),
        ("BMP", {}),
    ],
)
def test_the_size_is_that_of_the_image(kind, options):
    assert image_size(encoded(kind, **options)) == (301, 77)


def test_bytes_behind_the_head_do_not_matter():
    assert image_size(encoded("PNG")[:24]) == (301, 77)


def test_a_bitmap_from_top_to_bottom_has_a_height():
    data = bytearray(encoded("BMP"))
    data[22:26] = (-77).to_bytes(4, "little", signed=True)
    assert image_size(bytes(data)) == (301, 77)


def test_a_head_that_is_too_short_tells_nothing():
    data = encoded("JPEG", exif=b"Exif\0\0" + b"x" * 60_000)
    assert image_size(data[:50_000]) is None


@pytest.mark.parametrize("data", [b"", b"text", b"%PDF-1.7", b"II*\0", b"\x89PNG\r\n\x1a\n" + b"\0" * 40])
def test_other_bytes_have_no_size(data):
    assert image_size(data) is None


@given(
    st.sampled_from([b"\xff\xd8", b"\x89PNG\r\n\x1a\n", b"RIFF0000WEBPVP8 ", b"RIFF0000WEBPVP8X", b"BM", b"GIF89a"]),
    st.binary(max_size=200),
)
def test_any_bytes_are_survived(head, rest):
    size = image_size(head + rest)
    assert size is None or min(size) > 0
