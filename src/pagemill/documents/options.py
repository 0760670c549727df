"""How pages are rendered, and within which bounds."""

from __future__ import annotations

from dataclasses import dataclass

from pagemill.domain.errors import ConfigurationError

RENDERER_VERSION = 1
"""Raised whenever the same file and options may give other pixels or another text layer."""

_MIN_MEMORY = 256 * 1024**2

_NARROW_FACTOR = 4.0

MEDIA_TYPES = ("image/png", "image/jpeg", "image/webp")


@dataclass(frozen=True, slots=True)
class RenderOptions:
    """What a page image looks like and what rendering one may cost.

    Attributes:
        long_side: Pixels of the longer side of a page image. Larger images are scaled down to it; smaller ones
            stay as they are. PDF pages are rendered straight to it, whatever their size in points.
        narrow_ratio: A page that is more than so many times as long as it is wide (a receipt, a scroll) gets more
            pixels, up to four times `long_side`: fitting it into `long_side` would leave too few across its lines.
        max_pdf_scale: Most pixels per point for a PDF page (6.0 is 432 dpi), so that tiny pages are not blown up.
        media_type: Encoding: `image/png` and `image/webp` are lossless, `image/jpeg` is not.
        jpeg_quality: Quality of JPEG images, 1 to 95.
        max_pixels: Most pixels that an image file may declare; more is refused before anything is decoded.
        max_pages: Most pages of one document.
        page_timeout_s: Seconds that one page may take; then its process is killed.
        inspect_timeout_s: Seconds that opening and hashing a document may take.
        memory_limit_bytes: Address space of one render process (Linux and other Unixes), at least 256 MiB; 0 for
            no limit. Ordinary pages take 90 MB; an image file takes up to 8 bytes for each of its pixels.
        recycle_after_pages: A render process is replaced after so many pages.
        recycle_above_bytes: A render process is replaced once its resident memory is above this.
    """

    long_side: int = 1540
    narrow_ratio: float = 2.5
    max_pdf_scale: float = 6.0
    media_type: str = "image/png"
    jpeg_quality: int = 90
    max_pixels: int = 200_000_000
    max_pages: int = 10_000
    page_timeout_s: float = 60.0
    inspect_timeout_s: float = 120.0
    memory_limit_bytes: int = 2 * 1024**3
    recycle_after_pages: int = 200
    recycle_above_bytes: int = 768 * 1024**2

    def __post_init__(self) -> None:
        """Refuses values that cannot work.

        Raises:
            ConfigurationError: A value is out of range.
        """
        if self.media_type not in MEDIA_TYPES:
            raise ConfigurationError(
                f"Page images cannot be encoded as {self.media_type!r}.", f"Use one of {', '.join(MEDIA_TYPES)}."
            )
        bounds = {
            "long_side": (self.long_side, 32, 20_000),
            "narrow_ratio": (self.narrow_ratio, 1.5, 1000),
            "max_pdf_scale": (self.max_pdf_scale, 0.1, 100),
            "jpeg_quality": (self.jpeg_quality, 1, 95),
            "max_pixels": (self.max_pixels, 1, 2**40),
            "max_pages": (self.max_pages, 1, 2**31),
            "page_timeout_s": (self.page_timeout_s, 0.05, 86_400),
            "inspect_timeout_s": (self.inspect_timeout_s, 0.05, 86_400),
            "memory_limit_bytes": (self.memory_limit_bytes or _MIN_MEMORY, _MIN_MEMORY, 2**60),
            "recycle_after_pages": (self.recycle_after_pages, 1, 2**31),
            "recycle_above_bytes": (self.recycle_above_bytes, 64 * 1024**2, 2**60),
        }
        for name, (value, low, high) in bounds.items():
            if not low <= value <= high:
                raise ConfigurationError(f"{name} is {value}.", f"It must be from {low} to {high}.")

    def long_side_for(self, width: float, height: float) -> int:
        """Pixels of the longer side of a page of this shape, in any unit."""
        ratio = max(width, height) / min(width, height)
        return round(self.long_side * min(_NARROW_FACTOR, max(1.0, ratio / self.narrow_ratio)))

    def fingerprint(self) -> str:
        """What of these options decides a page's pixels, as a stable string for cache keys."""
        quality = f";q={self.jpeg_quality}" if self.media_type == "image/jpeg" else ""
        shape = f"{self.long_side};{self.narrow_ratio:g};{self.max_pdf_scale:g}"
        return f"render-{RENDERER_VERSION};{shape};{self.media_type}{quality}"
