"""How thick the strokes of a line are: bold print in scans."""

from __future__ import annotations

import numpy as np

from pagemill.domain import BoundingBox
from pagemill.engines.embedded.imaging import Sheet

_MIN_CONTRAST = 30.0


def stroke_thickness(sheet: Sheet, box: BoundingBox) -> float:
    """Mean thickness in pixels of the strokes inside `box`; 0 where there are none.

    A long stroke of thickness t and length l covers t * l and has a contour of 2 * l, so t is twice the area over the
    contour. Both are taken from grey levels, which keeps parts of pixels: the area is the sum of coverage, the
    contour its total variation (coarea formula).
    """
    top, bottom = max(0, int(box.top)), min(sheet.height, int(np.ceil(box.bottom)))
    left, right = max(0, int(box.left)), min(sheet.width, int(np.ceil(box.right)))
    if bottom - top < 3 or right - left < 3:
        return 0.0
    ink = sheet.ink[top:bottom, left:right].astype(np.float32)
    full = float(np.percentile(ink, 96))
    if full < _MIN_CONTRAST:
        return 0.0
    coverage = np.clip(ink / full * 1.2 - 0.2, 0.0, 1.0)
    across = np.diff(coverage, axis=1)[:-1]
    down = np.diff(coverage, axis=0)[:, :-1]
    contour = float(np.sqrt(across * across + down * down).sum())
    return 2.0 * float(coverage.sum()) / contour if contour > 1.0 else 0.0
