"""Layout regions: PicoDet trained on CDLA.

Yu et al., "PP-PicoDet: A Better Real-Time Object Detector on Mobile Devices", 2021. Each cell of four grids votes
for a class and for its distances to the four sides; each distance comes as a distribution (generalised focal loss).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from PIL import Image

from pagemill.domain import BoundingBox
from pagemill.engines.embedded.elements import Region, RegionKind
from pagemill.engines.embedded.imaging import Sheet
from pagemill.engines.embedded.sessions import FloatArray, Session

_HEIGHT, _WIDTH = 800, 608
_STRIDES = (8, 16, 32, 64)
_MEAN = np.array([0.485, 0.456, 0.406], dtype=np.float32) * 255
_STD = np.array([0.229, 0.224, 0.225], dtype=np.float32) * 255
_MIN_SCORE = 0.3
_MAX_OVERLAP = 0.5

Boxes = npt.NDArray[np.float64]


class LayoutModel:
    """Proposes regions of a page.

    Args:
        session: The layout model, whose metadata lists the classes.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._kinds = [RegionKind(name) for name in session.metadata["character"].split("\n")]

    def regions(self, sheet: Sheet) -> list[Region]:
        """All regions with a score from 0.3, the best first within each kind; kinds may overlap."""
        picture = whitened(sheet).resize((_WIDTH, _HEIGHT), Image.Resampling.BILINEAR)
        pixels = np.asarray(picture, dtype=np.float32)
        tensor = np.stack([(pixels - mean) / std for mean, std in zip(_MEAN, _STD, strict=True)])[None]
        outputs = self._session.run(np.ascontiguousarray(tensor, dtype=np.float32))
        scores, boxes = decode(outputs)
        scale = np.array([sheet.width / _WIDTH, sheet.height / _HEIGHT] * 2)
        limit = np.array([sheet.width, sheet.height] * 2, dtype=np.float64)
        found = []
        for index, kind in enumerate(self._kinds):
            candidates = np.nonzero(scores[:, index] > _MIN_SCORE)[0]
            for row in suppress(boxes[candidates], scores[candidates, index]):
                box = np.clip(boxes[candidates[row]] * scale, 0, limit)
                found.append(Region(kind, BoundingBox(*(float(v) for v in box)), float(scores[candidates[row], index])))
        return found


def whitened(sheet: Sheet) -> Image.Image:
    """The page in grey with white paper and black ink: the model fails on the grey paper of scans."""
    ink = sheet.ink.astype(np.float32)
    noise = sheet.noise
    floor = max(10.0, 2.2 * noise)
    strokes = ink[ink > floor]
    full = max(
        float(np.percentile(strokes[:: max(1, len(strokes) // 50_000)], 85)) if len(strokes) else 60.0, floor + 20
    )
    white = 255 - np.clip((ink - floor) * (255 / (full - floor)), 0, 255)
    return Image.fromarray(white.astype(np.uint8))


def decode(outputs: list[FloatArray]) -> tuple[Boxes, Boxes]:
    """Scores `(cells, classes)` and boxes `(cells, 4)` in pixels of the network's input, of all grids."""
    grids = len(_STRIDES)
    boxes = []
    for stride, distances in zip(_STRIDES, outputs[grids:], strict=True):
        rows, columns = -(-_HEIGHT // stride), -(-_WIDTH // stride)
        y, x = np.divmod(np.arange(rows * columns), columns)
        bins = distances[0].reshape(rows * columns, 4, -1).astype(np.float64)
        bins = np.exp(bins - bins.max(axis=2, keepdims=True))
        sides = (bins * np.arange(bins.shape[2])).sum(axis=2) / bins.sum(axis=2) * stride
        center = (np.stack([x, y, x, y], axis=1) + 0.5) * stride
        boxes.append(center + sides * np.array([-1, -1, 1, 1]))
    return np.concatenate([scores[0] for scores in outputs[:grids]]).astype(np.float64), np.concatenate(boxes)


def suppress(boxes: Boxes, scores: Boxes) -> list[int]:
    """Indices of the boxes that no better one overlaps by half (intersection over union), the best first."""
    order = np.argsort(-scores)
    area = np.prod(np.maximum(boxes[:, 2:] - boxes[:, :2], 0), axis=1)
    kept: list[int] = []
    while len(order):
        best, rest = order[0], order[1:]
        kept.append(int(best))
        low, high = np.maximum(boxes[best, :2], boxes[rest, :2]), np.minimum(boxes[best, 2:], boxes[rest, 2:])
        shared = np.prod(np.maximum(high - low, 0), axis=1)
        order = rest[shared <= _MAX_OVERLAP * (area[best] + area[rest] - shared)]
    return kept
