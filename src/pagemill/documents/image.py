"""Reading image files with Pillow.

Every frame of a TIFF is a page (reduced-resolution copies are not). All other formats give one page: of animated
GIF, WebP, PNG and AVIF files and of multi-picture JPEG and HEIC files the first or primary picture.
"""

from __future__ import annotations

import importlib
import itertools
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageFile, ImageOps, UnidentifiedImageError

from pagemill.documents.options import RenderOptions
from pagemill.documents.pixels import to_grey_or_rgb, to_resizable
from pagemill.documents.reader import Raster, fit
from pagemill.domain import Page
from pagemill.domain.errors import CorruptDocumentError, InputError, LimitExceededError, UnsupportedFormatError

_PLUGINS = {
    "png": ("PngImagePlugin", "PNG"),
    "jpeg": ("JpegImagePlugin", "JPEG"),
    "tiff": ("TiffImagePlugin", "TIFF"),
    "webp": ("WebPImagePlugin", "WEBP"),
    "gif": ("GifImagePlugin", "GIF"),
    "bmp": ("BmpImagePlugin", "BMP"),
    "ppm": ("PpmImagePlugin", "PPM"),
    "jp2": ("Jpeg2KImagePlugin", "JPEG2000"),
    "avif": ("AvifImagePlugin", "AVIF"),
}
_ORIENTATION_TAG = 0x0112
_ROTATION = {3: 180, 4: 180, 5: 90, 6: 90, 7: 270, 8: 270}
_SUBFILE_TYPE_TAG = 254
_REDUCED_RESOLUTION = 1  # bit 0 of NewSubfileType (TIFF 6.0, section 8)
_REDUCING_GAP = 2.0  # as Pillow recommends: visually the same as scaling in one step, several times faster

# Sizes are checked here against RenderOptions.max_pixels, before anything is decoded.
Image.MAX_IMAGE_PIXELS = None


@dataclass(frozen=True, slots=True)
class _Frame:
    number: int
    page: Page


class ImageReader:
    """An opened image file.

    Args:
        path: The file.
        name: What to call it in messages.
        kind: Format as told by `detect_format`.
        options: Limits and sizes.

    Raises:
        CorruptDocumentError: Its header cannot be read.
    """

    def __init__(self, path: Path, name: str, kind: str, options: RenderOptions) -> None:
        self.format = kind
        self.warnings: tuple[str, ...] = ()
        self._path = path
        self._name = name
        self._options = options
        self._image: Image.Image | None = None
        with self._decoding(name):
            self._frames = self._tiff_frames() if kind == "tiff" else [_Frame(0, _page(0, self._opened()))]

    def close(self) -> None:
        """Frees the file and the pixels."""
        if self._image is not None:
            self._image.close()
            self._image = None

    def pages(self) -> tuple[Page, ...]:
        """All pages; sizes are in pixels, as displayed."""
        return tuple(frame.page for frame in self._frames)

    def render(self, index: int, *, text_layer: bool) -> Raster:
        """Decodes one page and fits it into the options' long side; images have no text layer.

        Raises:
            CorruptDocumentError: The pixels cannot be decoded.
            LimitExceededError: It declares more pixels than allowed.
        """
        del text_layer
        where = self._name if len(self._frames) == 1 else f"Page {index + 1} of {self._name}"
        if not 0 <= index < len(self._frames):
            raise CorruptDocumentError(f"{self._name} has no page {index + 1}.")
        self._check_size(where, self._frames[index].page)
        try:
            with self._decoding(where):
                return Raster(self._decode(self._frames[index].number))
        except CorruptDocumentError as error:
            if "truncated" not in str(error.__cause__):
                raise
            # What came before the end is still worth reading; the page says that something is missing.
            with self._decoding(where), _lenient():
                image = self._decode(self._frames[index].number)
            if not _has_content(image):
                raise
            return Raster(image, warnings=("the image's data is cut short: a part of the page is missing",))
        finally:
            if len(self._frames) == 1:
                self.close()

    def _check_size(self, where: str, page: Page) -> None:
        pixels = page.width_pt * page.height_pt
        if pixels < 1:
            raise CorruptDocumentError(f"{where} has no usable header.", "Open it in a viewer to check it.")
        if pixels > self._options.max_pixels:
            raise LimitExceededError(
                f"{where} declares {page.width_pt:.0f} x {page.height_pt:.0f} pixels; "
                f"the limit is {self._options.max_pixels / 1e6:.0f} million.",
                "Scale the image down or raise max_pixels.",
            )

    @contextmanager
    def _decoding(self, where: str) -> Iterator[None]:
        """Turns whatever a decoder throws at damaged data into a `CorruptDocumentError`."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield
        except (InputError, MemoryError):
            self.close()
            raise
        except Exception as error:
            self.close()
            raise CorruptDocumentError(
                f"{where} is a damaged {self.format.upper()} image{_reason(error)}.", "Export or scan it again."
            ) from error

    def _opened(self) -> Image.Image:
        if self._image is None:
            if self.format == "heif":
                formats = (_register_heif(self._name),)
            else:
                plugin, name = _PLUGINS[self.format]
                importlib.import_module(f"PIL.{plugin}")
                formats = (name,)
            self._image = Image.open(self._path, formats=formats)
        return self._image

    def _tiff_frames(self) -> list[_Frame]:
        image = self._opened()
        frames: list[_Frame] = []
        reduced: list[_Frame] = []
        for number in itertools.count():
            try:
                image.seek(number)
                page = _page(len(frames), image)
                kind = image.tag_v2.get(_SUBFILE_TYPE_TAG, 0)  # type: ignore[attr-defined]
            except EOFError:
                break
            except Exception:
                if not frames:
                    raise
                self.warnings = (f"damaged from frame {number + 1} on: later frames cannot be found",)
                frames.append(_Frame(number, Page(len(frames), 0.0, 0.0)))
                break
            (reduced if kind & _REDUCED_RESOLUTION else frames).append(_Frame(number, page))
            if len(frames) > self._options.max_pages:
                raise LimitExceededError(
                    f"{self._name} has more than {self._options.max_pages} pages.",
                    "Split the document or raise max_pages.",
                )
        return frames or reduced[:1]

    def _decode(self, number: int) -> Image.Image:
        image = self._opened()
        if self.format == "tiff":
            image.seek(number)
        swapped = _orientation(image) >= 5 and self.format != "tiff"
        width, height = image.size[::-1] if swapped else image.size
        long_side = min(self._options.long_side_for(width, height), max(width, height))
        target = fit(width, height, long_side)
        if swapped:
            target = target[::-1]
        image.draft(None, (round(target[0] * _REDUCING_GAP), round(target[1] * _REDUCING_GAP)))
        image.load()
        pixels = to_resizable(image)
        if pixels.size != target:
            pixels = pixels.resize(target, Image.Resampling.LANCZOS, reducing_gap=_REDUCING_GAP)
        pixels = to_grey_or_rgb(pixels)
        if self.format != "tiff":  # Pillow turns TIFF frames itself while loading
            pixels.info.update(image.info)
            pixels = ImageOps.exif_transpose(pixels)
        return pixels.copy() if pixels is image else pixels


def _register_heif(name: str) -> str:
    """Makes Pillow read HEIC and gives its name of the format.

    Raises:
        UnsupportedFormatError: The optional package for it is not installed.
    """
    try:
        import pi_heif  # noqa: PLC0415 - optional, and loaded for HEIC files only
    except ImportError as error:
        raise UnsupportedFormatError(
            f"{name} is a HEIC image, and the package for those is not installed.",
            'Run: pip install "pagemill[heic]", or convert the image to JPEG.',
        ) from error
    pi_heif.register_heif_opener(thumbnails=False)
    return "HEIF"


def _page(index: int, image: Image.Image) -> Page:
    orientation = _orientation(image)
    width, height = image.size
    if orientation >= 5 and image.format != "TIFF":
        width, height = height, width
    return Page(index, float(width), float(height), _ROTATION.get(orientation, 0))


def _orientation(image: Image.Image) -> int:
    # The base class's method: that of PNG images decodes all pixels in search of a late chunk.
    value = Image.Image.getexif(image).get(_ORIENTATION_TAG, 1)
    return value if isinstance(value, int) and 1 <= value <= 8 else 1


def _reason(error: Exception) -> str:
    """What the decoder said; Pillow's message for an unreadable header only repeats the path."""
    return "" if isinstance(error, UnidentifiedImageError) else f" ({error})"


@contextmanager
def _lenient() -> Iterator[None]:
    ImageFile.LOAD_TRUNCATED_IMAGES = True
    try:
        yield
    finally:
        ImageFile.LOAD_TRUNCATED_IMAGES = False


def _has_content(image: Image.Image) -> bool:
    low, high = image.convert("L").getextrema()
    return bool(low != high)
