"""What the modules that talk to PDFium share: its handles, and the way from points to pixels."""

from __future__ import annotations

import ctypes
import math
from typing import Any, TypeAlias

import pypdfium2.raw as pdfium

Handle: TypeAlias = Any
"""A pointer that PDFium gave out; its Python bindings are not typed."""

_DEVICE = 1_000_000  # PDFium gives device positions in whole units; a device this large keeps the fractions


class Affine:
    """Maps points of the page to pixels of its image, honouring crop box and rotation.

    Args:
        page: A loaded page.
        width: Width of the image in pixels.
        height: Its height.
    """

    def __init__(self, page: Handle, width: int, height: int) -> None:
        x, y = ctypes.c_int(), ctypes.c_int()

        def pixel(page_x: float, page_y: float) -> tuple[float, float]:
            pdfium.FPDF_PageToDevice(page, 0, 0, _DEVICE, _DEVICE, 0, page_x, page_y, x, y)
            return x.value * width / _DEVICE, y.value * height / _DEVICE

        # A long base keeps the error of whole device units small.
        base = max(pdfium.FPDF_GetPageWidthF(page), pdfium.FPDF_GetPageHeightF(page))
        self.e, self.f = pixel(0, 0)
        right, up = pixel(base, 0), pixel(0, base)
        self.a, self.b = (right[0] - self.e) / base, (right[1] - self.f) / base
        self.c, self.d = (up[0] - self.e) / base, (up[1] - self.f) / base

    @property
    def scale(self) -> float:
        """Pixels per point."""
        return math.sqrt(abs(self.a * self.d - self.b * self.c))

    def box(self, left: float, bottom: float, right: float, top: float) -> tuple[float, float, float, float]:
        """Left, top, right, bottom in pixels of a box in points; turns are quarter turns, so it stays a box."""
        x0, x1 = self.a * left + self.c * bottom + self.e, self.a * right + self.c * top + self.e
        y0, y1 = self.b * left + self.d * bottom + self.f, self.b * right + self.d * top + self.f
        if x0 > x1:
            x0, x1 = x1, x0
        if y0 > y1:
            y0, y1 = y1, y0
        return x0, y0, x1, y1
