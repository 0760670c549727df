"""What the vision stages find on a page and the structure stage turns into blocks.

All boxes are in pixels of the upright, deskewed page image.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from pagemill.domain import BoundingBox


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text or a part of one (a table cell, one side of a column gutter).

    Attributes:
        text: Its characters.
        box: Tight box around it.
        confidence: 0 to 1; 1.0 for text from a sane text layer.
        font_size: Size of the font in pixels where a text layer tells it; 0 for OCR.
        bold: Whether the text layer says so; for OCR, False.
        italic: Whether the text layer says so; for OCR, False.
        monospace: Whether the text layer's font has one width for all characters; for OCR, False.
        stroke: Mean thickness of its strokes in pixels, measured in the image; 0 where not measured.
        vertical: Whether its characters run from top to bottom.
        from_text_layer: Whether it was taken from the text layer rather than read by OCR.
    """

    text: str
    box: BoundingBox
    confidence: float = 1.0
    font_size: float = 0.0
    bold: bool = False
    italic: bool = False
    monospace: bool = False
    stroke: float = 0.0
    vertical: bool = False
    from_text_layer: bool = False


class RegionKind(str, Enum):
    """Classes of the CDLA layout model."""

    TEXT = "text"
    TITLE = "title"
    FIGURE = "figure"
    FIGURE_CAPTION = "figure_caption"
    TABLE = "table"
    TABLE_CAPTION = "table_caption"
    HEADER = "header"
    FOOTER = "footer"
    REFERENCE = "reference"
    EQUATION = "equation"


@dataclass(frozen=True, slots=True)
class Region:
    """A region that the layout model proposes."""

    kind: RegionKind
    box: BoundingBox
    score: float


@dataclass(frozen=True, slots=True)
class Rulings:
    """Drawn straight lines on the page, each a thin box."""

    horizontal: tuple[BoundingBox, ...] = ()
    vertical: tuple[BoundingBox, ...] = ()


@dataclass(frozen=True, slots=True)
class PageElements:
    """Everything that the structure stage works from.

    Attributes:
        index: Position of the page in the document, from 0; names of cropped pictures carry it.
        width: Width of the page image in pixels.
        height: Height of the page image in pixels.
        lines: Lines in no particular order.
        regions: Regions of the layout model, unfiltered.
        rulings: Drawn lines.
        images: Raster images that the PDF places on the page (those that cover nearly all of it are left out).
    """

    index: int
    width: int
    height: int
    lines: tuple[Line, ...]
    regions: tuple[Region, ...] = ()
    rulings: Rulings = Rulings()
    images: tuple[BoundingBox, ...] = ()
