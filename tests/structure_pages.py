"""Small pages for the tests of the structure stage."""

from __future__ import annotations

from collections.abc import Sequence

from pagemill.domain import BoundingBox, TextSpan
from pagemill.engines.embedded.elements import Line, PageElements, Region, RegionKind, Rulings

LETTER = 10.0
"""Width in pixels of a letter of the test pages; their type is 20 pixels in size."""


def line(text: str, left: float, top: float, *, size: float = 20.0, **more: object) -> Line:
    """A line of the text layer; its width follows from its text."""
    width = sum(2 if ord(char) > 0x2E80 else 1 for char in text) * LETTER * size / 20
    box = BoundingBox(left, top, left + width, top + size)
    values = {"font_size": size, "from_text_layer": True, **more}
    return Line(text, box, **values)  # type: ignore[arg-type]


def read(text: str, left: float, top: float, *, height: float = 24.0, **more: object) -> Line:
    """A line as OCR reads it: no font, a box with a rim."""
    box = BoundingBox(left - 3, top, left + len(text) * LETTER + 3, top + height)
    return Line(text, box, confidence=0.95, **more)  # type: ignore[arg-type]


def lines(texts: Sequence[str], left: float, top: float, *, pitch: float = 28.0, **more: object) -> list[Line]:
    """Lines below each other."""
    return [line(text, left, top + k * pitch, **more) for k, text in enumerate(texts)]  # type: ignore[arg-type]


def row(texts: Sequence[str], lefts: Sequence[float], top: float, **more: object) -> list[Line]:
    """Lines side by side; empty texts are left out."""
    return [line(t, x, top, **more) for t, x in zip(texts, lefts, strict=True) if t]  # type: ignore[arg-type]


def span(text: str, left: float, top: float, *, size: float = 20.0, **more: object) -> TextSpan:
    """A span of a text layer."""
    box = BoundingBox(left, top, left + len(text) * LETTER * size / 20, top + size)
    return TextSpan(text, box, size, **more)  # type: ignore[arg-type]


def region(kind: RegionKind, left: float, top: float, right: float, bottom: float, score: float = 0.95) -> Region:
    """A proposal of the layout model."""
    return Region(kind, BoundingBox(left, top, right, bottom), score)


def page(
    content: Sequence[Line],
    regions: Sequence[Region] = (),
    rulings: Rulings | None = None,
    *,
    index: int = 0,
    images: Sequence[BoundingBox] = (),
    width: int = 1600,
    height: int = 2200,
) -> PageElements:
    """A page with the given content."""
    return PageElements(index, width, height, tuple(content), tuple(regions), rulings or Rulings(), tuple(images))


def mesh(xs: Sequence[float], ys: Sequence[float]) -> Rulings:
    """A complete grid of rulings."""
    return Rulings(
        tuple(BoundingBox(xs[0], y - 1, xs[-1], y + 1) for y in ys),
        tuple(BoundingBox(x - 1, ys[0], x + 1, ys[-1]) for x in xs),
    )
