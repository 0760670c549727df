"""The raster images of a PDF page: where they stand, what they hide, and how large they are."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pypdfium2.raw as pdfium

from pagemill.documents.pdf_types import Affine, Handle
from pagemill.domain import BoundingBox

_MAX_OBJECTS = 20_000
_MAX_FORM_DEPTH = 6


@dataclass(frozen=True, slots=True)
class PageImages:
    """The raster images of a page.

    Attributes:
        boxes: Where they stand, in pixels; strips of one picture are joined.
        hidden_text: Addresses of text objects that lie under an opaque image as large as the page.
        largest: Where the image with most pixels stands, and how many those are.
    """

    boxes: tuple[BoundingBox, ...]
    hidden_text: frozenset[int]
    largest: tuple[BoundingBox, int] | None


def read_images(page: Handle, affine: Affine, width: int, height: int) -> PageImages:
    """Finds raster images, also inside form objects.

    Args:
        page: A loaded page.
        affine: Its mapping to pixels.
        width: Width of the page image.
        height: Its height.
    """
    frame = BoundingBox(0, 0, width, height)
    boxes: list[BoundingBox] = []
    texts: list[int] = []
    hidden: set[int] = set()
    largest: tuple[BoundingBox, int] | None = None
    for item, matrix in page_objects(page):
        kind = pdfium.FPDFPageObj_GetType(item)
        if kind == pdfium.FPDF_PAGEOBJ_TEXT:
            texts.append(ctypes.cast(item, ctypes.c_void_p).value or 0)
        if kind != pdfium.FPDF_PAGEOBJ_IMAGE:
            continue
        box = _object_box(item, matrix, affine)
        box = BoundingBox(max(box.left, 0), max(box.top, 0), min(box.right, width), min(box.bottom, height))
        if box.width < 2 or box.height < 2:
            continue
        boxes.append(box)
        if largest is None or _pixel_count(item) > largest[1]:
            largest = (box, _pixel_count(item))
        if frame.share_inside(box) > 0.9 and not pdfium.FPDFPageObj_HasTransparency(item):
            hidden.update(texts)
    return PageImages(tuple(_join_strips(boxes)), frozenset(hidden), largest)


def _pixel_count(item: Handle) -> int:
    width, height = ctypes.c_uint(), ctypes.c_uint()
    ok = pdfium.FPDFImageObj_GetImagePixelSize(item, width, height)
    return width.value * height.value if ok else 0


def page_objects(page: Handle) -> Iterator[tuple[Handle, tuple[float, ...]]]:
    """All page objects in drawing order with the matrix of the form they are in."""
    budget = _MAX_OBJECTS

    def visit(
        count: int, get: Callable[[int], Handle], outer: tuple[float, ...], depth: int
    ) -> Iterator[tuple[Handle, tuple[float, ...]]]:
        nonlocal budget
        for index in range(count):
            budget -= 1
            if budget < 0:
                return
            item = get(index)
            if item and pdfium.FPDFPageObj_GetType(item) == pdfium.FPDF_PAGEOBJ_FORM and depth < _MAX_FORM_DEPTH:
                inner = _product(_matrix(item), outer)

                def child(at: int, form: Handle = item) -> Handle:
                    return pdfium.FPDFFormObj_GetObject(form, at)

                yield from visit(pdfium.FPDFFormObj_CountObjects(item), child, inner, depth + 1)
            elif item:
                yield item, outer

    identity = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)
    yield from visit(
        pdfium.FPDFPage_CountObjects(page), lambda index: pdfium.FPDFPage_GetObject(page, index), identity, 0
    )


def _matrix(item: Handle) -> tuple[float, ...]:
    matrix = pdfium.FS_MATRIX()
    if not pdfium.FPDFPageObj_GetMatrix(item, matrix):
        return (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)
    return (matrix.a, matrix.b, matrix.c, matrix.d, matrix.e, matrix.f)


def _product(first: tuple[float, ...], then: tuple[float, ...]) -> tuple[float, ...]:
    a, b, c, d, e, f = first
    p, q, r, s, t, u = then
    return (
        a * p + b * r,
        a * q + b * s,
        c * p + d * r,
        c * q + d * s,
        e * p + f * r + t,
        e * q + f * s + u,
    )


def _object_box(item: Handle, matrix: tuple[float, ...], affine: Affine) -> BoundingBox:
    bounds = [ctypes.c_float() for _ in range(4)]
    if not pdfium.FPDFPageObj_GetBounds(item, *bounds):
        return BoundingBox(0, 0, 0, 0)
    left, bottom, right, top = (bound.value for bound in bounds)
    a, b, c, d, e, f = matrix
    xs = [a * x + c * y + e for x in (left, right) for y in (bottom, top)]
    ys = [b * x + d * y + f for x in (left, right) for y in (bottom, top)]
    return BoundingBox(*affine.box(min(xs), min(ys), max(xs), max(ys)))


def _join_strips(boxes: list[BoundingBox]) -> list[BoundingBox]:
    """Joins boxes of the same width that touch one below the other: scanners cut pages into strips."""
    joined: list[BoundingBox] = []
    for box in sorted(boxes, key=lambda box: (round(box.left), round(box.right), box.top)):
        last = joined[-1] if joined else None
        if last and abs(last.left - box.left) < 2 and abs(last.right - box.right) < 2 and box.top <= last.bottom + 2:
            joined[-1] = BoundingBox.around((last, box))
        else:
            joined.append(box)
    return joined
