"""Reading PDFs with PDFium.

PDFium may be used by one thread of a process at a time; the render pool gives each process one page at a time.
Form fields and annotations are drawn; JavaScript never runs (no JavaScript platform is handed to PDFium).
"""

from __future__ import annotations

import ctypes
import math
import os
from pathlib import Path

import pypdfium2.raw as pdfium
from PIL import Image

from pagemill.documents.missing_fonts import missing_fonts
from pagemill.documents.options import RenderOptions
from pagemill.documents.page_images import PageImages, read_images
from pagemill.documents.passwords import password_encodings
from pagemill.documents.pdf_types import Affine, Handle
from pagemill.documents.pixels import grey_if_colourless
from pagemill.documents.reader import Raster, fit
from pagemill.documents.text_layer import read_text_layer
from pagemill.domain import Page
from pagemill.domain.errors import CorruptDocumentError, EncryptedDocumentError, LimitExceededError

_MIN_SHORT_SIDE = 8
"""A page whose shorter side would have fewer pixels than this is refused: nothing on it could be read."""
_SUSPICIOUS_SHARE = 0.25
"""A picture whose pixels at 4 bytes take this share of the memory limit may have been left out."""


class PdfReader:
    """A PDF opened by PDFium.

    Args:
        path: The file.
        name: What to call it in messages.
        passwords: Tried in turn where the file wants one.
        options: Limits and sizes.

    Raises:
        EncryptedDocumentError: No password fits.
        CorruptDocumentError: The file is damaged beyond repair.
    """

    format = "pdf"

    def __init__(self, path: Path, name: str, passwords: tuple[str, ...], options: RenderOptions) -> None:
        self._name = name
        self._options = options
        self.warnings: tuple[str, ...] = ()
        self._document = _load(path, name, passwords)
        # The struct must live as long as the form environment, which keeps a pointer to it.
        self._form_info = pdfium.FPDF_FORMFILLINFO(version=2)
        self._form: Handle = None
        if pdfium.FPDF_GetFormType(self._document) != pdfium.FORMTYPE_NONE:
            self._form = pdfium.FPDFDOC_InitFormFillEnvironment(self._document, self._form_info)
        self._count = pdfium.FPDF_GetPageCount(self._document)

    def close(self) -> None:
        """Frees the document."""
        if self._form:
            pdfium.FPDFDOC_ExitFormFillEnvironment(self._form)
            self._form = None
        if self._document:
            pdfium.FPDF_CloseDocument(self._document)
            self._document = None

    def pages(self) -> tuple[Page, ...]:
        """All pages; those that PDFium cannot load have size 0.

        Their rotation is part of the size and given as 0: telling it would mean to parse every page.

        Raises:
            CorruptDocumentError: There is no page at all.
            LimitExceededError: There are too many.
        """
        if self._count < 1:
            raise CorruptDocumentError(f"{self._name} has no pages.", "Open it in a PDF viewer to check it.")
        if self._count > self._options.max_pages:
            raise LimitExceededError(
                f"{self._name} has {self._count} pages; the limit is {self._options.max_pages}.",
                "Split the document or raise max_pages.",
            )
        size = pdfium.FS_SIZEF()
        pages = []
        for index in range(self._count):
            ok = pdfium.FPDF_GetPageSizeByIndexF(self._document, index, size)
            pages.append(Page(index, size.width, size.height) if ok else Page(index, 0.0, 0.0))
        bad = [page.index + 1 for page in pages if page.width_pt <= 0]
        if bad:
            self.warnings = (*self.warnings, f"damaged page entries: {', '.join(map(str, bad[:20]))}")
        return tuple(pages)

    def render(self, index: int, *, text_layer: bool) -> Raster:
        """Renders one page on white.

        Raises:
            CorruptDocumentError: The page cannot be loaded.
            LimitExceededError: Its shape or size is out of bounds.
        """
        page = pdfium.FPDF_LoadPage(self._document, index) if 0 <= index < self._count else None
        if not page:
            raise CorruptDocumentError(
                f"Page {index + 1} of {self._name} is damaged and cannot be loaded.",
                "The other pages are not affected; repair the file or leave the page out.",
            )
        try:
            if self._form:
                pdfium.FORM_OnAfterLoadPage(page, self._form)
            width, height = self._pixels(page, index)
            image = grey_if_colourless(self._draw(page, width, height))
            affine = Affine(page, width, height)
            images = read_images(page, affine, width, height)
            self._check_largest(images, image, index)
            layer = read_text_layer(page, affine, images, width, height) if text_layer else None
            return Raster(image, layer, _missing_font_warnings(page))
        finally:
            if self._form:
                pdfium.FORM_OnBeforeClosePage(page, self._form)
            pdfium.FPDF_ClosePage(page)

    def _pixels(self, page: Handle, index: int) -> tuple[int, int]:
        width, height = pdfium.FPDF_GetPageWidthF(page), pdfium.FPDF_GetPageHeightF(page)
        where = f"Page {index + 1} of {self._name}"
        if not (math.isfinite(width) and math.isfinite(height) and width > 0 and height > 0):
            raise CorruptDocumentError(f"{where} has no usable size ({width:g} x {height:g} points).")
        longest = max(width, height)
        # Whole pixels per page first, then the cap: the cap must not change pages of common sizes by rounding.
        wanted = self._options.long_side_for(width, height)
        long_side = min(wanted, max(1, math.ceil(longest * self._options.max_pdf_scale)))
        pixels = fit(width, height, long_side)
        if min(pixels) < _MIN_SHORT_SIDE and longest > 40 * min(width, height):
            raise LimitExceededError(
                f"{where} measures {width:g} x {height:g} points: too long and narrow to be read as one image.",
                "Cut the page into parts, or correct its page box.",
            )
        return pixels

    def _check_largest(self, images: PageImages, image: Image.Image, index: int) -> None:
        """Refuses a page whose picture is missing: PDFium silently leaves out what it has no memory for."""
        limit = self._options.memory_limit_bytes
        if not limit or not images.largest or images.largest[1] * 4 < limit * _SUSPICIOUS_SHARE:
            return
        box = images.largest[0]
        part = image.crop((int(box.left), int(box.top), math.ceil(box.right), math.ceil(box.bottom))).convert("L")
        if part.getextrema() == (255, 255):
            raise LimitExceededError(
                f"Page {index + 1} of {self._name} holds a picture of {images.largest[1] / 1e6:.0f} million pixels "
                f"that cannot be drawn within {limit // 1024**2} MiB.",
                "Raise memory_limit_bytes or scale the picture down.",
            )

    def _draw(self, page: Handle, width: int, height: int) -> Image.Image:
        stride = width * 4
        pixels = bytearray(stride * height)
        buffer = (ctypes.c_ubyte * len(pixels)).from_buffer(pixels)
        bitmap = pdfium.FPDFBitmap_CreateEx(width, height, pdfium.FPDFBitmap_BGRx, buffer, stride)
        if not bitmap:
            raise MemoryError
        flags = pdfium.FPDF_ANNOT | pdfium.FPDF_REVERSE_BYTE_ORDER
        try:
            pdfium.FPDFBitmap_FillRect(bitmap, 0, 0, width, height, 0xFFFFFFFF)
            pdfium.FPDF_RenderPageBitmap(bitmap, page, 0, 0, width, height, 0, flags)
            if self._form:
                pdfium.FPDF_FFLDraw(self._form, bitmap, page, 0, 0, width, height, 0, flags)
        finally:
            pdfium.FPDFBitmap_Destroy(bitmap)
        # RGBX is the one layout that Pillow takes over without copying.
        return Image.frombuffer("RGBX", (width, height), pixels, "raw", "RGBX", stride, 1)


def _missing_font_warnings(page: Handle) -> tuple[str, ...]:
    names = missing_fonts(page)
    if not names:
        return ()
    fonts = ", ".join(names)
    warning = (
        f"text is not drawn because the file leaves out its font and this machine has none like it ({fonts}): "
        "install fonts for its script (fonts-noto-cjk for Chinese, Japanese and Korean)"
    )
    return (warning,)


def _load(path: Path, name: str, passwords: tuple[str, ...]) -> Handle:
    """Opens a document with the first password that fits.

    Raises:
        EncryptedDocumentError: None fits.
        CorruptDocumentError: PDFium cannot read the file.
    """
    attempts: list[bytes | None] = [None]
    for password in passwords:
        attempts.extend(password_encodings(password))
    error = 0
    for password_bytes in attempts:
        document = pdfium.FPDF_LoadDocument(os.fsencode(path), password_bytes)
        if document:
            return document
        error = pdfium.FPDF_GetLastError()
        if error != pdfium.FPDF_ERR_PASSWORD:
            break
    if error == pdfium.FPDF_ERR_PASSWORD:
        tried = "none of the given passwords opens it" if passwords else "it needs a password"
        raise EncryptedDocumentError(
            f"{name} is encrypted and {tried}.", "Give the right one with --password or --password-file."
        )
    if error == pdfium.FPDF_ERR_SECURITY:
        raise EncryptedDocumentError(
            f"{name} is encrypted in a way that is not supported.", "Save it without encryption."
        )
    raise CorruptDocumentError(f"{name} is damaged and cannot be opened as a PDF.", "Repair or re-export the file.")
