"""Vertical writing: columns of characters laid out as a line that the recogniser can read."""

from __future__ import annotations

import numpy as np
from PIL import Image

from pagemill.engines.embedded.recognition import HEIGHT

_EM = 40
"""Width in pixels to which a column is scaled; its characters then fill most of the recogniser's height."""
_GAP = 4


def laid_out(column: Image.Image) -> Image.Image | None:
    """Puts the characters of a column side by side, top to bottom becoming left to right.

    Args:
        column: The column cut out of the page (RGB, dark on light), a little wider than its characters.

    Returns:
        A line `HEIGHT` pixels high, or None where no characters can be told apart.
    """
    scaled = column.resize((_EM, max(1, round(column.height * _EM / column.width))), Image.Resampling.BICUBIC)
    cells = _cells(np.asarray(scaled.convert("L")))
    if len(cells) < 2:
        return None
    line = Image.new("RGB", (len(cells) * (_EM + _GAP) + _GAP, HEIGHT), "white")
    for position, (top, bottom) in enumerate(cells):
        offset = max(0, (HEIGHT - (bottom - top)) // 2)
        line.paste(scaled.crop((0, top, _EM, min(bottom, top + HEIGHT))), (_GAP + position * (_EM + _GAP), offset))
    return line


def _cells(grey: np.ndarray[tuple[int, int], np.dtype[np.uint8]]) -> list[tuple[int, int]]:
    """Top and bottom of each character, cut at rows without ink; parts of one character stay together."""
    dark = grey.astype(np.int16)
    level = (int(np.percentile(dark, 5)) + int(np.percentile(dark, 80))) // 2
    rows = np.concatenate([[False], (dark < level).any(axis=1), [False]])
    edges = np.flatnonzero(rows[1:] != rows[:-1])
    cells: list[tuple[int, int]] = []
    for top, bottom in zip(edges[::2], edges[1::2], strict=True):
        if cells and bottom - cells[-1][0] <= 0.95 * _EM:
            cells[-1] = (cells[-1][0], int(bottom))
        else:
            cells.append((int(top), int(bottom)))
    return cells
