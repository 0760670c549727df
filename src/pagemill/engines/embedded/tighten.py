"""Loose boxes: the detector draws them too large around short words that stand alone, such as table cells."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pagemill.engines.embedded.detection import Quad
from pagemill.engines.embedded.imaging import Sheet
from pagemill.engines.embedded.ink import Mask, ink_mask

_LOOSE = 1.2
"""Boxes that are thicker than the page's usual line by this factor are looked at."""
_MARGIN = 0.22
"""Paper left above and below the ink, as a share of its height: about what the detector leaves around a line."""
_RULE = 0.85
"""Rows and columns of a box with more ink than this share are rules of the table around it."""
_MAX_SLOPE = 2.0
_MAX_ASPECT = 8.0


def tightened(quads: Sequence[Quad], sheet: Sheet) -> list[Quad]:
    """Shrinks loose boxes to their ink, but not below the page's usual line.

    Args:
        quads: Boxes on the page.
        sheet: The page.
    """
    level = [quad for quad in quads if not quad.tall]
    if not level:
        return list(quads)
    usual = _weighted_median([q.thickness for q in level], [q.length for q in level])
    mask = ink_mask(sheet)
    return [_tight(quad, mask, usual) if _is_suspect(quad, usual) else quad for quad in quads]


def _is_suspect(quad: Quad, usual: float) -> bool:
    return (
        quad.thickness > _LOOSE * usual
        and quad.length < _MAX_ASPECT * quad.thickness
        and quad.thickness < _MAX_ASPECT * quad.length
        and abs(quad.slope) < _MAX_SLOPE
    )


def _tight(quad: Quad, mask: Mask, usual: float) -> Quad:
    low = np.maximum(np.floor(quad.corners.min(axis=0)), 0).astype(int)
    high = np.ceil(quad.corners.max(axis=0)).astype(int)
    part = mask[low[1] : high[1], low[0] : high[0]]
    part = part & ~(part.mean(axis=1, keepdims=True) > _RULE)
    part = part & ~(part.mean(axis=0, keepdims=True) > _RULE)
    rows, columns = np.flatnonzero(part.any(axis=1)), np.flatnonzero(part.any(axis=0))
    if len(rows) == 0 or len(columns) == 0:
        return quad
    ink = rows[-1] + 1 - rows[0]
    height = max(ink * (1 + 2 * _MARGIN), usual)
    if height >= quad.thickness / _LOOSE:
        return quad
    middle = low[1] + (rows[0] + rows[-1] + 1) / 2
    side = (height - ink) / 2
    left = max(low[0] + columns[0] - side, quad.corners[0][0])
    right = min(low[0] + columns[-1] + 1 + side, quad.corners[1][0])
    top, bottom = middle - height / 2, middle + height / 2
    return Quad(np.array([[left, top], [right, top], [right, bottom], [left, bottom]]), quad.score)


def _weighted_median(values: Sequence[float], weights: Sequence[float]) -> float:
    order = np.argsort(values)
    share = np.cumsum(np.asarray(weights)[order])
    return float(np.asarray(values)[order][np.searchsorted(share, share[-1] / 2)])
