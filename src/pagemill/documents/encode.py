"""Encoding page images: lossless PNG written fast, or Pillow's JPEG and WebP.

A page is text on flat ground or a photograph. Pillow's PNG writer tries five filters on each row of either and costs
several times what rendering does. Here a sample of the page decides: flat pages compress best unfiltered, and
noisy ones by the difference to the row above. Figures are in docs/benchmarks.md (bench/render.py).
"""

from __future__ import annotations

import io
import struct
import zlib

from PIL import Image, ImageChops
from zlib_ng import zlib_ng

from pagemill.documents.options import RenderOptions

_FILTER_NONE, _FILTER_UP = 0, 2  # PNG specification, 9.2
_FLAT_LEVEL = 5
_NOISY_COLOUR_LEVEL = 6
_SAMPLE_LEVEL = 3
_SAMPLE_BANDS, _BAND_ROWS = 8, 12
_UP_GAIN = 0.93
"""The row above is subtracted only where the sample then takes less than this share of its unfiltered size."""


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
    sample = _sample(image)
    flat = _deflate(_rows(sample, _FILTER_NONE), _SAMPLE_LEVEL)
    above = _deflate(_rows(_minus_row_above(sample), _FILTER_UP), _SAMPLE_LEVEL)
    if len(above) >= _UP_GAIN * len(flat):
        data = _deflate(_rows(image, _FILTER_NONE), _FLAT_LEVEL)
    elif image.mode == "L":
        # Grey noise has no repeats worth searching for: Huffman codes and runs give the same size in a third.
        data = _deflate(_rows(_minus_row_above(image), _FILTER_UP), 1, zlib.Z_RLE)
    else:
        data = _deflate(_rows(_minus_row_above(image), _FILTER_UP), _NOISY_COLOUR_LEVEL)
    colour_type = 0 if image.mode == "L" else 2
    header = struct.pack(">IIBBBBB", *image.size, 8, colour_type, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")


def _sample(image: Image.Image) -> Image.Image:
    """Bands of rows from all over the page, one below the other."""
    width, height = image.size
    if height <= _SAMPLE_BANDS * _BAND_ROWS:
        return image
    sample = Image.new(image.mode, (width, _SAMPLE_BANDS * _BAND_ROWS))
    for band in range(_SAMPLE_BANDS):
        top = (height - _BAND_ROWS) * band // (_SAMPLE_BANDS - 1)
        sample.paste(image.crop((0, top, width, top + _BAND_ROWS)), (0, band * _BAND_ROWS))
    return sample


def _minus_row_above(image: Image.Image) -> Image.Image:
    above = Image.new(image.mode, image.size)
    above.paste(image, (0, 1))
    return ImageChops.subtract_modulo(image, above)


def _rows(image: Image.Image, row_filter: int) -> bytes:
    """The image's bytes with the filter's number before each row."""
    stride = image.width * len(image.getbands())
    pixels = memoryview(image.tobytes())
    mark = bytes([row_filter])
    return mark + mark.join(pixels[at : at + stride] for at in range(0, stride * image.height, stride))


def _deflate(data: bytes, level: int, strategy: int = zlib.Z_DEFAULT_STRATEGY) -> bytes:
    compressor = zlib_ng.compressobj(level, zlib.DEFLATED, 15, 9, strategy)
    return compressor.compress(data) + compressor.flush()


def _chunk(kind: bytes, data: bytes) -> bytes:
    checksum = zlib.crc32(data, zlib.crc32(kind))
    return b"".join((struct.pack(">I", len(data)), kind, data, struct.pack(">I", checksum)))
