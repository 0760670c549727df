"""Width and height of images, from their first bytes: nothing is decoded, so no image can be a bomb here."""

from __future__ import annotations

import struct

_JPEG_WITHOUT_SIZE = frozenset({0xC4, 0xC8, 0xCC})
"""Markers in the range of frames that are none: tables, an extension, arithmetic conditioning (ITU T.81, table B.1)."""
_JPEG_ALONE = frozenset({0x01, *range(0xD0, 0xD9)})

_MOST_SEGMENTS = 4096
"""Files of cameras have some dozens."""


def image_size(data: bytes) -> tuple[int, int] | None:
    """Width and height in pixels as the file declares them.

    Args:
        data: The file, or its first bytes.

    Returns:
        The size; None where these bytes do not tell, or are no PNG, JPEG, WebP, GIF or BMP.
    """
    try:
        size = _declared(data)
    except struct.error:
        return None
    return size if size is not None and min(size) > 0 else None


def _declared(data: bytes) -> tuple[int, int] | None:
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return _two(">II", data, 16)
    if data.startswith(b"\xff\xd8"):
        return _jpeg(data)
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return _webp(data)
    if data.startswith((b"GIF87a", b"GIF89a")):
        return _two("<HH", data, 6)
    if data.startswith(b"BM"):
        width, height = _two("<ii", data, 18)
        # Rows from top to bottom have a negative height.
        return width, abs(height)
    return None


def _two(form: str, data: bytes, offset: int) -> tuple[int, int]:
    first, second = struct.unpack_from(form, data, offset)
    return int(first), int(second)


def _jpeg(data: bytes) -> tuple[int, int] | None:
    position = 2
    for _ in range(_MOST_SEGMENTS):
        start, marker = struct.unpack_from(">BB", data, position)
        if start != 0xFF:
            return None
        if marker == 0xFF:
            position += 1
            continue
        position += 2
        if marker in _JPEG_ALONE:
            continue
        if 0xC0 <= marker <= 0xCF and marker not in _JPEG_WITHOUT_SIZE:
            height, width = _two(">HH", data, position + 3)
            return width, height
        (length,) = struct.unpack_from(">H", data, position)
        if length < 2 or marker in (0xD9, 0xDA):
            return None
        position += length
    return None


def _webp(data: bytes) -> tuple[int, int] | None:
    kind = data[12:16]
    if kind == b"VP8X":
        canvas = data[24:30]
        if len(canvas) < 6:
            return None
        return 1 + int.from_bytes(canvas[:3], "little"), 1 + int.from_bytes(canvas[3:], "little")
    if kind == b"VP8L":
        (bits,) = struct.unpack_from("<I", data, 21)
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if kind == b"VP8 ":
        width, height = _two("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    return None
