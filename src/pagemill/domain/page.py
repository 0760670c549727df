"""Pages of a source document, and the images and text layers made of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from pagemill.domain.geometry import BoundingBox


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a document before rendering.

    Attributes:
        index: Position in the document, from 0.
        width_pt: Width as displayed (after `rotation`), in points (1/72 inch); for an image, its pixels.
        height_pt: Height as displayed, in points; for an image, its pixels.
        rotation: Clockwise turn in degrees that an image file asks for (0, 90, 180, 270); already part of the
            size. 0 for PDFs, whose sizes are as displayed.
    """

    index: int
    width_pt: float
    height_pt: float
    rotation: int = 0


class TextVerdict(str, Enum):
    """What the text layer of a page is worth."""

    SANE = "sane"
    """Visible text that reads as language: exact, usable instead of OCR."""
    ABSENT = "absent"
    """No text, or next to none."""
    HIDDEN = "hidden"
    """Invisible text over an image: an earlier OCR of unknown quality."""
    GARBLED = "garbled"
    """Fonts without a usable mapping to Unicode, or text that is no language."""


@dataclass(frozen=True, slots=True)
class TextSpan:
    """A run of text on one line in one font, in reading direction of that line.

    Attributes:
        text: The characters, in Unicode NFC, without line breaks.
        box: Where it stands, in pixels of the page image.
        font_size: Size of the font in pixels of the page image.
        font: Name of the font without its subset prefix; empty where unknown.
        bold: Whether the font is bold by weight or name.
        italic: Whether the font is slanted by flags or name.
        sane: False where this span's font was judged unusable although the page as a whole is sane.
        vertical: Whether its characters run from top to bottom.
    """

    text: str
    box: BoundingBox
    font_size: float
    font: str = ""
    bold: bool = False
    italic: bool = False
    sane: bool = True
    vertical: bool = False


@dataclass(frozen=True, slots=True)
class TextLayer:
    """The text that a PDF page carries, judged.

    Attributes:
        verdict: Whether the layer as a whole may stand in for OCR.
        spans: All spans in content order, also those of an unusable layer (for checks).
        images: Boxes of raster images on the page, in pixels of the page image: text may be inside them.
        reasons: Why the verdict is not `SANE`; for logs and the sidecar.
    """

    verdict: TextVerdict
    spans: tuple[TextSpan, ...] = ()
    images: tuple[BoundingBox, ...] = ()
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PageImage:
    """An encoded image of a page, ready for an engine.

    Attributes:
        index: Position of the page in the document, from 0.
        data: The encoded image.
        media_type: `image/png`, `image/jpeg` or `image/webp`.
        width: Width in pixels.
        height: Height in pixels.
        text_layer: The page's own text, where the source has one and it was asked for.
        warnings: What of the page was lost or repaired while reading the source, in words.
    """

    index: int
    data: bytes
    media_type: str
    width: int
    height: int
    text_layer: TextLayer | None = None
    warnings: tuple[str, ...] = ()
