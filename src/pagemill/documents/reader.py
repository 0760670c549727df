"""What readers of documents have in common."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pagemill.documents.options import RenderOptions
from pagemill.documents.sniff import HEAD_BYTES, detect_format
from pagemill.domain import Page, TextLayer
from pagemill.domain.errors import SourceNotFoundError

if TYPE_CHECKING:
    from PIL import Image


@dataclass(frozen=True, slots=True)
class Raster:
    """A page as pixels, before encoding.

    Attributes:
        image: Mode `L` or `RGB`.
        text_layer: The page's own text, where it was asked for and the source has one.
        warnings: What was lost or repaired, in words.
    """

    image: Image.Image
    text_layer: TextLayer | None = None
    warnings: tuple[str, ...] = ()


class Reader(Protocol):
    """An opened document."""

    format: str
    warnings: tuple[str, ...]

    def pages(self) -> tuple[Page, ...]:
        """All pages, also those that cannot be rendered (their size is 0).

        Raises:
            InputError: The document is damaged or over a limit.
        """
        ...

    def render(self, index: int, *, text_layer: bool) -> Raster:
        """One page as pixels.

        Raises:
            InputError: The page is damaged or over a limit.
        """
        ...

    def close(self) -> None:
        """Frees the file and all memory."""
        ...


def open_reader(path: Path, name: str, passwords: tuple[str, ...], options: RenderOptions) -> Reader:
    """Opens a document by its content.

    Args:
        path: The file.
        name: What to call it in messages.
        passwords: Tried in turn on an encrypted PDF.
        options: Limits and sizes.

    Raises:
        InputError: The file cannot be read, by the fitting subclass.
    """
    # Imported late: a run over PDFs never loads the image code, and the other way round.
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError as error:
        raise SourceNotFoundError(f"{name} cannot be read: {error.strerror}.", "Check its path and rights.") from error
    kind = detect_format(head, name)
    if kind == "pdf":
        from pagemill.documents.pdf import PdfReader  # noqa: PLC0415

        return PdfReader(path, name, passwords, options)
    from pagemill.documents.image import ImageReader  # noqa: PLC0415

    return ImageReader(path, name, kind, options)


def fit(width: float, height: float, long_side: int) -> tuple[int, int]:
    """Whole pixels of a box scaled so that its longer side is `long_side`; no side is below one pixel."""
    scale = long_side / max(width, height)
    # Rounded up, less what floating point adds: a sliver of a pixel at the edge is kept, as PDFium's tools do.
    columns, rows = (max(1, min(long_side, _ceil(side * scale))) for side in (width, height))
    return columns, rows


def _ceil(value: float) -> int:
    return -int(-(value - 1e-6) // 1)
