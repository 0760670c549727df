"""Encoding page images: lossless PNG written fast, or Pillow's JPEG and WebP."""

from __future__ import annotations

import io
import struct
import zlib

from PIL import Image

from pagemill.documents.options import RenderOptions


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
    """Writes a PNG of mode `L` or `RGB`."""
    width, height = image.size
    channels = len(image.getbands())
    stride = width * channels
    raw = memoryview(image.tobytes())
    compressor = zlib.compressobj(1, zlib.DEFLATED, 15, 9)
    rows = b"\x00" + b"\x00".join(raw[at : at + stride] for at in range(0, stride * height, stride))
    data = compressor.compress(rows) + compressor.flush()
    header = struct.pack(">IIBBBBB", width, height, 8, 0 if channels == 1 else 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return b"".join((struct.pack(">I", len(data)), kind, data, struct.pack(">I", zlib.crc32(data, zlib.crc32(kind)))))
