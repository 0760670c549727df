"""Page images in memory: decoding, turning, background."""

from __future__ import annotations

import io
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageOps
from scipy import ndimage

from pagemill.domain import PageImage
from pagemill.domain.errors import RequestRejectedError

GreyArray = npt.NDArray[np.uint8]

MAX_PIXELS = 100_000_000
"""Larger page images are refused: their working arrays would not fit the memory this engine promises."""

_DARK = 80.0
"""Brightness below which paper is taken for dark; the worst photographs of white paper have about 90."""
_TILE = 32
"""Side in pixels of the tiles over which the paper's brightness is taken; a line of text is lower than that."""


class Sheet:
    """A decoded page.

    Args:
        image: The page, in RGB.
    """

    def __init__(self, image: Image.Image) -> None:
        self.image = image if image.mode == "RGB" else image.convert("RGB")

    @property
    def width(self) -> int:
        """Width in pixels."""
        return self.image.width

    @property
    def height(self) -> int:
        """Height in pixels."""
        return self.image.height

    @cached_property
    def grey(self) -> GreyArray:
        """Brightness, `(height, width)`, 0 is black."""
        return np.asarray(self.image.convert("L"))

    @cached_property
    def background(self) -> GreyArray:
        """Brightness of the paper at each pixel, as if there were no ink."""
        return paper_brightness(self.grey)

    @cached_property
    def ink(self) -> GreyArray:
        """How much darker each pixel is than the paper around it, 0 to 255."""
        return np.maximum(self.background, self.grey) - self.grey

    @cached_property
    def noise(self) -> float:
        """Standard deviation of the paper's brightness about its local level, in grey levels.

        Taken from the median absolute deviation, so that ink on up to nearly half of the page does not count.
        """
        rough = self.grey[::3, ::3].astype(np.int16) - self.background[::3, ::3]
        return 1.4826 * float(np.median(np.abs(rough - np.median(rough))))

    @cached_property
    def is_dark(self) -> bool:
        """Whether its paper is dark, so that print on it is bright (slides, screenshots)."""
        return float(np.median(self.background)) < _DARK

    def inverted(self) -> Sheet:
        """The page with dark for bright."""
        return Sheet(ImageOps.invert(self.image))

    def turned(self, quarter_turns: int) -> Sheet:
        """The page turned clockwise by `quarter_turns` times 90 degrees."""
        turns = {
            1: Image.Transpose.ROTATE_270,
            2: Image.Transpose.ROTATE_180,
            3: Image.Transpose.ROTATE_90,
        }
        turn = turns.get(quarter_turns % 4)
        return self if turn is None else Sheet(self.image.transpose(turn))


def decode(page: PageImage) -> Sheet:
    """Decodes a page image; transparency becomes white paper.

    Raises:
        RequestRejectedError: The bytes are no image, are cut, or hold too many pixels.
    """
    try:
        with Image.open(io.BytesIO(page.data)) as image:
            if image.width * image.height > MAX_PIXELS:
                raise RequestRejectedError(
                    f"The image of page {page.index + 1} has {image.width} x {image.height} pixels, "
                    f"more than {MAX_PIXELS:,}.",
                    "Render it smaller.",
                )
            if image.has_transparency_data:
                canvas = Image.new("RGBA", image.size, "white")
                canvas.alpha_composite(image.convert("RGBA"))
                return Sheet(canvas.convert("RGB"))
            return Sheet(image.convert("RGB"))
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise RequestRejectedError(
            f"The image of page {page.index + 1} ({page.media_type}) cannot be decoded ({error}).",
            "Render the page again.",
        ) from error


def paper_brightness(grey: GreyArray) -> GreyArray:
    """Estimates the paper's brightness at each pixel of `grey` (`(height, width)`, any size).

    A high percentile of each tile sees past the text; a median over neighbouring tiles sees past pictures and
    dark bars that fill a tile.
    """
    height, width = grey.shape
    rows, columns = math.ceil(height / _TILE), math.ceil(width / _TILE)
    padded = np.pad(
        grey[::2, ::2],
        ((0, rows * _TILE // 2 - len(grey[::2])), (0, columns * _TILE // 2 - len(grey[0, ::2]))),
        mode="edge",
    )
    side = _TILE // 2
    tiles = padded.reshape(rows, side, columns, side).swapaxes(1, 2).reshape(rows, columns, side * side)
    rank = int(0.75 * side * side)
    bright = np.partition(tiles, rank, axis=2)[:, :, rank]
    smooth = ndimage.median_filter(bright, size=5, mode="nearest")
    full = Image.fromarray(smooth).resize((columns * _TILE, rows * _TILE), Image.Resampling.BILINEAR)
    return np.asarray(full)[:height, :width]


@dataclass(frozen=True, slots=True)
class Rotation:
    """A turn of the page about its centre onto a canvas that holds all of it.

    Attributes:
        degrees: Angle by which text lines fall to the right in the source (positive: clockwise skew).
        size: Width and height of the source.
    """

    degrees: float
    size: tuple[int, int]

    @property
    def canvas(self) -> tuple[int, int]:
        """Width and height after the turn."""
        cos, sin = abs(math.cos(math.radians(self.degrees))), abs(math.sin(math.radians(self.degrees)))
        width, height = self.size
        return round(width * cos + height * sin), round(width * sin + height * cos)

    def points(self, points: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Where points (`(..., 2)`, x and y) of the source come to lie on the canvas."""
        cos, sin = math.cos(math.radians(self.degrees)), math.sin(math.radians(self.degrees))
        turn = np.array([[cos, sin], [-sin, cos]])
        moved: npt.NDArray[np.float64] = (points - np.array(self.size) / 2) @ turn.T + np.array(self.canvas) / 2
        return moved

    def apply(self, sheet: Sheet) -> Sheet:
        """The deskewed page; corners that were not on the source take the paper's brightness."""
        cos, sin = math.cos(math.radians(self.degrees)), math.sin(math.radians(self.degrees))
        (width, height), (wide, high) = self.size, self.canvas
        # Image.transform wants the inverse map: from the canvas to the source.
        matrix = (
            cos,
            -sin,
            width / 2 - cos * wide / 2 + sin * high / 2,
            sin,
            cos,
            height / 2 - sin * wide / 2 - cos * high / 2,
        )
        paper = tuple(int(v) for v in np.median(np.asarray(sheet.image)[::8, ::8].reshape(-1, 3), axis=0))
        image = sheet.image.transform(
            self.canvas, Image.Transform.AFFINE, matrix, Image.Resampling.BICUBIC, fillcolor=paper
        )
        return Sheet(image)
