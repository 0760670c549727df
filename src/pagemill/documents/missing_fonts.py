"""Text that cannot be drawn: its font is not in the file, and this machine has none with its letters.

PDFium then draws nothing, silently. Documents from China and Japan often leave out their fonts, and small servers and
containers have none for them: their pages would come out blank.
"""

from __future__ import annotations

import ctypes

import pypdfium2.raw as pdfium

from pagemill.documents.page_images import page_objects
from pagemill.documents.pdf_types import Handle

_MOST_NAMES = 5


def missing_fonts(page: Handle) -> tuple[str, ...]:
    """Names of fonts whose text on the page is not drawn, in order; a few of them at most.

    Args:
        page: A loaded page.
    """
    suspects = [item for item, _ in page_objects(page) if _is_text_without_ink(item)]
    if not suspects:
        return ()
    text_page = pdfium.FPDFText_LoadPage(page)
    if not text_page:
        return ()
    try:
        names = (_font_name(item) for item in suspects if not _is_spaces(item, text_page))
        return tuple(dict.fromkeys(names))[:_MOST_NAMES]
    finally:
        pdfium.FPDFText_ClosePage(text_page)


def _is_text_without_ink(item: Handle) -> bool:
    if pdfium.FPDFPageObj_GetType(item) != pdfium.FPDF_PAGEOBJ_TEXT:
        return False
    font = pdfium.FPDFTextObj_GetFont(item)
    if not font or pdfium.FPDFFont_GetIsEmbedded(font) != 0:
        return False
    bounds = [ctypes.c_float() for _ in range(4)]
    if not pdfium.FPDFPageObj_GetBounds(item, *bounds):
        return False
    left, bottom, right, top = (bound.value for bound in bounds)
    # It moves the pen along one axis and has no extent across it; an empty string moves it nowhere.
    return (right - left) * (top - bottom) == 0 and max(right - left, top - bottom) > 0


def _is_spaces(item: Handle, text_page: Handle) -> bool:
    """Whether PDFium finds spaces in it and nothing else; of vertical text it finds nothing."""
    length = pdfium.FPDFTextObj_GetText(item, text_page, None, 0)
    buffer = (ctypes.c_ushort * (length // 2 + 1))()
    pdfium.FPDFTextObj_GetText(item, text_page, buffer, length)
    text = bytes(buffer).decode("utf-16-le", "replace").strip("\x00")
    return bool(text) and not text.strip()


def _font_name(item: Handle) -> str:
    buffer = ctypes.create_string_buffer(128)
    length = pdfium.FPDFFont_GetBaseFontName(pdfium.FPDFTextObj_GetFont(item), buffer, len(buffer))
    return buffer.raw[: max(0, min(length, len(buffer)) - 1)].decode("utf-8", "replace") or "unnamed"
