"""The characters of a PDF page, read from PDFium and placed in pixels of the page image.

A dense page has 5,000 characters and more, and one call costs little only if nothing is converted on the way. So
PDFium's functions are bound a second time here with plain integers for handles and addresses.
"""

from __future__ import annotations

import array
import ctypes
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import pypdfium2.raw as pdfium

from pagemill.documents.pdf_types import Affine, Handle

_MAX_CHARS = 500_000
_INVISIBLE_MODES = frozenset({3, 7})  # neither fill nor stroke (ISO 32000-1, table 106)
_STROKED_MODES = frozenset({2, 6})
_FORCE_BOLD = 1 << 18  # font descriptor flags (ISO 32000-1, table 123)
_ITALIC = 1 << 6
_BOLD_WEIGHT = 650
_BOLD_WORDS = ("bold", "black", "heavy", "demi")
_ITALIC_WORDS = ("italic", "oblique", "slanted", "kursiv")


@dataclass(frozen=True, slots=True)
class Font:
    """A font of a page.

    Attributes:
        name: Base font name without its subset prefix; empty where unknown.
        key: Tells fonts apart: the name, or a number where there is none.
        bold: Whether weight, flags or name say so.
        italic: Whether angle, flags or name say so.
    """

    name: str
    key: str
    bold: bool
    italic: bool


@dataclass(frozen=True, slots=True)
class Style:
    """What all characters of one text object share.

    Attributes:
        font: Their font.
        size: Font size in pixels of the page image.
        visible: False for render modes that draw nothing, and under an opaque image drawn later.
        bold: Whether they look bold, by font or by fill and stroke.
        direction: Writing direction in the image, in quarter turns clockwise from left-to-right; None if askew.
    """

    font: Font
    size: float
    visible: bool
    bold: bool
    direction: int | None


class Glyph(NamedTuple):
    """A character that stands on the page.

    Attributes:
        code: UTF-16 code unit or code point as PDFium maps it.
        mapped: False where the font has no mapping to Unicode and the code is but a guess.
        box: Left, top, right, bottom in pixels; its height is that of the font, not of the glyph.
        style: Shared with its text object.
    """

    code: int
    mapped: bool
    box: tuple[float, float, float, float]
    style: Style


SPACE = 32
"""Stands in the stream of `read_glyphs` for a space or a tab."""
BREAK = 10
"""Stands in the stream of `read_glyphs` for a line end that PDFium saw."""


def _bind(function: Any, result: Any, *arguments: Any) -> Callable[..., Any]:  # noqa: ANN401 - ctypes has no types
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    return ctypes.CFUNCTYPE(result, *arguments)(address)


_get_unicode = _bind(pdfium.FPDFText_GetUnicode, ctypes.c_uint, ctypes.c_void_p, ctypes.c_int)
_get_object = _bind(pdfium.FPDFText_GetTextObject, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)
_get_loose_box = _bind(pdfium.FPDFText_GetLooseCharBox, ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
_has_map_error = _bind(pdfium.FPDFText_HasUnicodeMapError, ctypes.c_int, ctypes.c_void_p, ctypes.c_int)


def read_glyphs(page: Handle, affine: Affine, hidden_text: frozenset[int]) -> list[Glyph | int]:
    """All characters in content order, with `SPACE` and `BREAK` between them.

    Args:
        page: A loaded page.
        affine: Its mapping to pixels.
        hidden_text: Addresses of text objects that cannot be seen.
    """
    text_page = pdfium.FPDFText_LoadPage(page)
    if not text_page:
        return []
    try:
        return _read_glyphs(text_page, affine, hidden_text)
    finally:
        pdfium.FPDFText_ClosePage(text_page)


def _read_glyphs(text_page: Handle, affine: Affine, hidden_text: frozenset[int]) -> list[Glyph | int]:
    count = min(pdfium.FPDFText_CountChars(text_page), _MAX_CHARS)
    handle = ctypes.cast(text_page, ctypes.c_void_p).value
    boxes = array.array("f", bytes(16 * max(count, 0)))
    address = boxes.buffer_info()[0]
    style_of = _Styles(text_page, affine, hidden_text).of
    place = affine.box
    stream: list[Glyph | int] = []
    for index in range(count):
        code = _get_unicode(handle, index)
        if code in (10, 13):
            stream.append(BREAK)
        elif code in (9, 32, 0xA0):
            stream.append(SPACE)
        else:
            item = _get_object(handle, index)
            if item and _get_loose_box(handle, index, address + 16 * index):
                left, top, right, bottom = boxes[4 * index : 4 * index + 4]
                box = place(left, bottom, right, top)
                stream.append(Glyph(code, not _has_map_error(handle, index), box, style_of(item, index)))
    return stream


class _Styles:
    """The styles of a page's text objects, each looked up once."""

    def __init__(self, text_page: Handle, affine: Affine, hidden_text: frozenset[int]) -> None:
        self._text_page = text_page
        self._affine = affine
        self._hidden_text = hidden_text
        self._by_object: dict[int, Style] = {}
        self._fonts: dict[int, Font] = {}

    def of(self, item: int, index: int) -> Style:
        style = self._by_object.get(item)
        if style is None:
            style = self._by_object[item] = self._look_up(item, index)
        return style

    def _look_up(self, item: int, index: int) -> Style:
        handle = ctypes.cast(item, pdfium.FPDF_PAGEOBJECT)
        size = ctypes.c_float()
        pdfium.FPDFTextObj_GetFontSize(handle, size)
        matrix = pdfium.FS_MATRIX()
        pdfium.FPDFText_GetMatrix(self._text_page, index, matrix)
        affine = self._affine
        along = (
            affine.a * matrix.a + affine.c * matrix.b,
            affine.b * matrix.a + affine.d * matrix.b,
        )
        mode = pdfium.FPDFTextObj_GetTextRenderMode(handle)
        font = self._font(pdfium.FPDFTextObj_GetFont(handle))
        return Style(
            font,
            abs(size.value) * math.hypot(matrix.c, matrix.d) * affine.scale,
            mode not in _INVISIBLE_MODES and item not in self._hidden_text,
            font.bold or mode in _STROKED_MODES,
            _quarter_turns(*along),
        )

    def _font(self, handle: Handle) -> Font:
        address = ctypes.cast(handle, ctypes.c_void_p).value or 0
        font = self._fonts.get(address)
        if font is None:
            number = f"font {len(self._fonts) + 1}"
            font = _describe_font(handle, number) if address else Font("", number, bold=False, italic=False)
            self._fonts[address] = font
        return font


def _quarter_turns(x: float, y: float) -> int | None:
    """Quarter turns clockwise of a direction in the image; None more than 10 degrees off."""
    if not (x or y):
        return 0
    turns = math.atan2(y, x) / (math.pi / 2)
    nearest = round(turns)
    return nearest % 4 if abs(turns - nearest) < 10 / 90 else None


def _describe_font(handle: Handle, number: str) -> Font:
    buffer = ctypes.create_string_buffer(256)
    length = pdfium.FPDFFont_GetBaseFontName(handle, buffer, len(buffer))
    name = buffer.raw[: max(0, min(length, len(buffer)) - 1)].decode("utf-8", "replace")
    prefix, plus, rest = name.partition("+")
    if plus and len(prefix) == 6 and prefix.isalpha():
        name = rest
    lower = name.lower()
    flags = max(0, pdfium.FPDFFont_GetFlags(handle))
    angle = ctypes.c_int()
    slanted = bool(pdfium.FPDFFont_GetItalicAngle(handle, angle)) and angle.value != 0
    return Font(
        name,
        name or number,
        bool(flags & _FORCE_BOLD)
        or pdfium.FPDFFont_GetWeight(handle) >= _BOLD_WEIGHT
        or any(word in lower for word in _BOLD_WORDS),
        bool(flags & _ITALIC) or slanted or any(word in lower for word in _ITALIC_WORDS),
    )
