"""Finding text lines: a DB detector and what turns its probability map into boxes.

Liao et al., "Real-time Scene Text Detection with Differentiable Binarization", AAAI 2020, section "Deformable
convolution / Label generation": the map shows shrunken lines, grown again by `area * ratio / perimeter`.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PIL import Image
from scipy import ndimage

from pagemill.engines.embedded.imaging import Sheet
from pagemill.engines.embedded.ink import ink_mask
from pagemill.engines.embedded.sessions import Session

_GRID = 32
"""The network halves its input five times."""
_PIXEL_THRESHOLD = 0.3
_BOX_THRESHOLD = 0.55
_UNCLIP_RATIO = 1.6
_MIN_ELONGATION = 2.2
_MIN_SIDE = 3.0
"""Shrunken lines thinner than this many pixels of the map are specks."""

_COARSE_AREA = 960 * 680
_TENSOR_AREA = 1540 * 1200
"""Pixels given to the network at once, a page in one piece; these take 300 MB."""
_FINEST_AREA = 4 * _TENSOR_AREA
_BAND_OVERLAP = 64
"""Pixels that neighbouring bands share at least on each side."""
_SMALL_PRINT = 16.5
"""Thickness of a line in pixels of the coarse look below which a fine one follows; measured: at 15.5 the share of
wrong characters in scans grows by half, at 14.5 lines begin to merge."""
_GOOD_PRINT = 18.0
_SMALL_PERCENTILE = 15
_MERGED_SHARE = 0.08
_LEVEL = 1.0
"""Degrees up to which rows of pixels tell rows of text apart."""
_BAND = 0.3

Points = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Quad:
    """A box around a line of text, turned with it.

    Attributes:
        corners: `(4, 2)`, x and y in pixels of the page: top left, top right, bottom right, bottom left as
            seen along the line.
        score: Mean probability, 0 to 1, that its pixels are text.
    """

    corners: Points
    score: float

    @property
    def slope(self) -> float:
        """Angle in degrees by which it falls to the right (between -45 and 45)."""
        dx, dy = self.corners[1] - self.corners[0]
        return math.degrees(math.atan2(dy, dx))

    @property
    def length(self) -> float:
        """Extent along the line in pixels."""
        return float(np.hypot(*(self.corners[1] - self.corners[0])))

    @property
    def thickness(self) -> float:
        """Extent across the line in pixels."""
        return float(np.hypot(*(self.corners[3] - self.corners[0])))

    @property
    def tall(self) -> bool:
        """Whether it is clearly taller than wide: vertical writing or sideways text."""
        low, high = self.corners.min(axis=0), self.corners.max(axis=0)
        return bool(high[1] - low[1] > 1.5 * (high[0] - low[0]))


class Detector:
    """Finds the lines of text of an image.

    Args:
        session: The detection model.
        at_once: Pages looked at at once; each takes up to 300 MB while it lasts.
    """

    def __init__(self, session: Session, at_once: int = 1) -> None:
        self._session = session
        self._slots = threading.BoundedSemaphore(at_once)

    def detect(self, sheet: Sheet) -> list[Quad]:
        """All lines of a page, in no particular order.

        Most pages need no more than a coarse look, at a quarter of the cost. Where that finds small print, boxes with
        several lines in them, or nothing, a fine one follows.
        """
        area = sheet.width * sheet.height
        coarse, finest = (min(1.0, math.sqrt(most / area)) for most in (_COARSE_AREA, _FINEST_AREA))
        quads = self._look_once(sheet.image, coarse)
        if finest <= coarse:
            return quads
        if not quads or merged_share(sheet, quads) > _MERGED_SHARE:
            return self._look(sheet.image, finest, quads)
        thin = np.percentile([min(quad.length, quad.thickness) * coarse for quad in quads], _SMALL_PERCENTILE)
        if thin >= _SMALL_PRINT:
            return quads
        return self._look(sheet.image, min(finest, coarse * _GOOD_PRINT / thin), quads)

    def _look(self, image: Image.Image, scale: float, coarse: Sequence[Quad]) -> list[Quad]:
        """Lines found at `scale`; a large image is looked at in bands that run along the lines found before."""
        count = math.ceil(image.width * image.height * scale * scale / _TENSOR_AREA)
        if count <= 1:
            return self._look_once(image, scale)
        sideways = sum(quad.thickness - quad.length for quad in coarse) > 0
        across, extent = (0, image.width) if sideways else (1, image.height)
        overlap = max([_BAND_OVERLAP / scale, *(1.2 * min(quad.length, quad.thickness) for quad in coarse)])
        quads = []
        for number in range(count):
            start, end = extent * number / count, extent * (number + 1) / count
            low, high = max(0, int(start - overlap)), min(extent, math.ceil(end + overlap))
            box = (low, 0, high, image.height) if sideways else (0, low, image.width, high)
            for quad in self._look_once(image.crop(box), scale):
                corners = quad.corners + np.array(box[:2])
                if start <= corners[:, across].mean() < end:  # the next band has the others whole
                    quads.append(Quad(corners, quad.score))
        return quads

    def _look_once(self, image: Image.Image, scale: float) -> list[Quad]:
        width, height = (max(_GRID, round(side * scale / _GRID) * _GRID) for side in image.size)
        pixels = np.asarray(image.resize((width, height), Image.Resampling.BILINEAR))
        tensor = np.ascontiguousarray(pixels[:, :, ::-1].transpose(2, 0, 1)[None], dtype=np.float32)
        tensor /= 127.5
        tensor -= 1.0
        with self._slots:
            probability = self._session.run(tensor)[0][0, 0]
        return quads_from_map(probability, np.array([image.width / width, image.height / height]))


def merged_share(sheet: Sheet, quads: Sequence[Quad]) -> float:
    """Share (by area) of the level boxes in which ink stands in two or more rows: lines too close for the network."""
    mask = ink_mask(sheet)
    merged = total = 0.0
    for quad in quads:
        if quad.length < 4 * quad.thickness or abs(quad.slope) > _LEVEL:
            continue
        (left, top), (right, bottom) = quad.corners[0].astype(int), quad.corners[2].astype(int)
        rows = mask[max(0, top) : max(0, bottom), max(0, left) : max(0, right)].mean(axis=1)
        area = quad.length * quad.thickness
        total += area
        if len(rows) and _bands(rows) > 1:
            merged += area
    return merged / total if total else 0.0


def _bands(rows: Points) -> int:
    """Number of rows of text in a profile of ink; underlines are too thin to count."""
    full = np.concatenate([[False], rows > _BAND * rows.max(), [False]])
    edges = np.flatnonzero(full[1:] != full[:-1])
    return int(np.count_nonzero(edges[1::2] - edges[::2] >= 3))


def quads_from_map(probability: npt.NDArray[np.float32], stretch: Points) -> list[Quad]:
    """Turns a probability map (`(height, width)`) into quads.

    Args:
        probability: Output of the network.
        stretch: Factors from pixels of the map to pixels of the page, for x and y.
    """
    labels, count = ndimage.label(probability > _PIXEL_THRESHOLD, structure=np.ones((3, 3)))
    if count == 0:
        return []
    ys, xs = np.nonzero(labels)
    owner = labels[ys, xs] - 1
    order = np.argsort(owner, kind="stable")
    ys, xs, owner = ys[order], xs[order], owner[order]
    size = np.bincount(owner, minlength=count)
    score = np.bincount(owner, probability[ys, xs], count) / size
    angle = _principal_angles(xs, ys, owner, size)
    starts = np.concatenate([[0], np.cumsum(size)])
    quads = []
    for index in np.nonzero((score >= _BOX_THRESHOLD) & (size >= _MIN_SIDE * _MIN_SIDE))[0]:
        part = slice(starts[index], starts[index + 1])
        box = _grown_box(
            np.add(xs[part], 0.5, dtype=np.float64), np.add(ys[part], 0.5, dtype=np.float64), float(angle[index])
        )
        if box is not None:
            quads.append(Quad(box * stretch, float(score[index])))
    return quads


def _principal_angles(
    xs: npt.NDArray[np.intp], ys: npt.NDArray[np.intp], owner: npt.NDArray[np.intp], size: npt.NDArray[np.intp]
) -> Points:
    """Angle in radians, -pi/2 to pi/2, of the long axis of each component, from its second moments.

    Components that are hardly longer than wide have no direction of their own; they count as level.
    """
    count = len(size)
    dx = xs - (np.bincount(owner, xs, count) / size)[owner]
    dy = ys - (np.bincount(owner, ys, count) / size)[owner]
    xx, yy, xy = (np.bincount(owner, values, count) for values in (dx * dx, dy * dy, dx * dy))
    angle: Points = 0.5 * np.arctan2(2 * xy, xx - yy)
    spread = np.hypot(2 * xy, xx - yy)
    long_axis, short_axis = xx + yy + spread, np.maximum(xx + yy - spread, 0)
    angle[long_axis < _MIN_ELONGATION**2 * short_axis] = 0.0
    return angle


def _grown_box(xs: Points, ys: Points, angle: float) -> Points | None:
    """Corners of the grown box around pixel centres of one component whose long axis has `angle`; None for a speck."""
    lean = angle - math.copysign(math.pi / 2, angle) if abs(angle) > math.pi / 4 else angle
    cos, sin = math.cos(lean), math.sin(lean)
    along, across = xs * cos + ys * sin, ys * cos - xs * sin
    x0, x1, y0, y1 = along.min() - 0.5, along.max() + 0.5, across.min() - 0.5, across.max() + 0.5
    width, height = x1 - x0, y1 - y0
    if min(width, height) < _MIN_SIDE:
        return None
    grow = width * height * _UNCLIP_RATIO / (2 * (width + height))
    box = np.array([[x0 - grow, y0 - grow], [x1 + grow, y0 - grow], [x1 + grow, y1 + grow], [x0 - grow, y1 + grow]])
    corners: Points = box @ np.array([[cos, sin], [-sin, cos]])
    return corners
