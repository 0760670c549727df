"""Encoding page images: lossless PNG written fast, or Pillow's JPEG and WebP.

A page is text on flat ground or a photograph. Pillow's PNG writer tries five filters on each row of either and costs
several times what rendering does. Here a sample of each band of rows decides: flat ones compress best unfiltered,
noisy ones as differences to the row above. Figures are in docs/benchmarks.md (bench/render.py).
"""

from __future__ import annotations

import io
import itertools
import struct
import zlib

from PIL import Image, ImageChops
from zlib_ng import zlib_ng

from pagemill.documents.options import RenderOptions

_FILTER_NONE, _FILTER_UP = 0, 2  # PNG specification, 9.2
_FLAT_GREY_LEVEL, _FLAT_COLOUR_LEVEL = 3, 5
_NOISY_LEVEL, _NOISY_DEEP_LEVEL = 3, 6
_DEEP_GAIN = 0.9
"""The deep search, twice as slow, is for pages where it takes a sample below this share of its size."""
_BANDS, _SAMPLE_ROWS = 16, 6
_UP_GAIN = 0.93
"""The row above is subtracted in bands whose sample then takes less than this share of its unfiltered size."""


def encode(image: Image.Image, options: RenderOptions) -> bytes:
    """Encodes a page image of mode `L` or `RGB` as the options ask."""
    if options.media_type == "image/png":
        return encode_png(image)
    target = io.BytesIO()
    if options.media_type == "image/jpeg":
        image.save(target, "JPEG", quality=options.jpeg_quality)
    else:
        image.save(target, "WEBP", lossless=True, quality=0, method=1)
    return target.getvalue()


def encode_png(image: Image.Image) -> bytes:
    """Writes a PNG of an image of mode `L` or `RGB`."""
    edges = [image.height * band // _BANDS for band in range(_BANDS + 1)]
    samples = [_sample(image, top, bottom) for top, bottom in itertools.pairwise(edges)]
    noisy = [_size(above, _NOISY_LEVEL) < _UP_GAIN * _size(plain, _NOISY_LEVEL) for plain, above in samples]
    difference = _minus_row_above(image) if any(noisy) else image
    rows = b"".join(
        _rows(difference if band_is_noisy else image, top, bottom, _FILTER_UP if band_is_noisy else _FILTER_NONE)
        for band_is_noisy, (top, bottom) in zip(noisy, itertools.pairwise(edges), strict=True)
    )
    data = _deflate(rows, *_effort(image.mode, noisy, samples))
    colour_type = 0 if image.mode == "L" else 2
    header = struct.pack(">IIBBBBB", *image.size, 8, colour_type, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")


def _effort(mode: str, noisy: list[bool], samples: list[tuple[bytes, bytes]]) -> tuple[int, int]:
    """Level and strategy of the compression."""
    if not any(noisy):
        return (_FLAT_GREY_LEVEL if mode == "L" else _FLAT_COLOUR_LEVEL), zlib.Z_DEFAULT_STRATEGY
    if mode == "L" and all(noisy):
        # Grey noise has no repeats worth searching for: Huffman codes and runs give the same size in a third.
        return 1, zlib.Z_RLE
    differences = b"".join(above for is_noisy, (_, above) in zip(noisy, samples, strict=True) if is_noisy)
    pays = _size(differences, _NOISY_DEEP_LEVEL) < _DEEP_GAIN * _size(differences, _NOISY_LEVEL)
    return (_NOISY_DEEP_LEVEL if pays else _NOISY_LEVEL), zlib.Z_DEFAULT_STRATEGY


def _sample(image: Image.Image, top: int, bottom: int) -> tuple[bytes, bytes]:
    """A few rows from the middle of a band, as they are and as differences to the row above."""
    start = max(0, (top + bottom - _SAMPLE_ROWS) // 2 - 1)
    rows = image.crop((0, start, image.width, min(image.height, start + _SAMPLE_ROWS + 1)))
    body = (0, min(1, rows.height - 1), rows.width, rows.height)
    return rows.crop(body).tobytes(), _minus_row_above(rows).crop(body).tobytes()


def _minus_row_above(image: Image.Image) -> Image.Image:
    above = Image.new(image.mode, image.size)
    above.paste(image, (0, 1))
    return ImageChops.subtract_modulo(image, above)


def _rows(image: Image.Image, top: int, bottom: int, row_filter: int) -> bytes:
    """Rows with the filter's number before each."""
    if top == bottom:
        return b""
    stride = image.width * len(image.getbands())
    pixels = memoryview(image.crop((0, top, image.width, bottom)).tobytes())
    mark = bytes([row_filter])
    return mark + mark.join(pixels[at : at + stride] for at in range(0, len(pixels), stride))


def _size(data: bytes, level: int) -> int:
    return len(_deflate(data, level, zlib.Z_DEFAULT_STRATEGY))


def _deflate(data: bytes, level: int, strategy: int) -> bytes:
    compressor = zlib_ng.compressobj(level, zlib.DEFLATED, 15, 9, strategy)
    return compressor.compress(data) + compressor.flush()


def _chunk(kind: bytes, data: bytes) -> bytes:
    checksum = zlib.crc32(data, zlib.crc32(kind))
    return b"".join((struct.pack(">I", len(data)), kind, data, struct.pack(">I", checksum)))
