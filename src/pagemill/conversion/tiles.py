"""Cutting a page image into pieces that are read one by one, and joining what was read.

Pieces are cut where no ink is, if there is such a place near; else they overlap, and lines that were read twice are
found and kept once.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

import numpy as np
import numpy.typing as npt
from PIL import Image

from pagemill.domain import PageImage

_OVERLAP = 0.08
"""Share of a piece that it has in common with the next where no blank row was found: about four lines of print."""
_SEARCH = 0.12
"""Share of a piece within which a blank row is looked for, before and after the ideal place."""
_BLANK_ROWS = 6
"""Rows without ink that make a gap; the space between lines of 9-point print at 132 dpi has about as many."""
_INK = 60
_PAPER_REACH = 60
_SAME_LINE = 0.8
_COMPARED_LINES = 14
_CUT_LINES = 3
"""Lines at the start of a piece that may be remains of a line cut in half."""
_MARKS = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class Tile:
    """A piece of a page.

    Attributes:
        image: The piece.
        left: Where its left edge is on the page, in pixels.
        top: Where its top edge is.
        overlaps: Whether it repeats the end of the piece before.
    """

    image: PageImage
    left: int
    top: int
    overlaps: bool


def resized(page: PageImage, long_side: int) -> PageImage:
    """The page fitted into `long_side` pixels, by Lanczos; a smaller page is returned as it is."""
    if max(page.width, page.height) <= long_side:
        return page
    with Image.open(io.BytesIO(page.data)) as image:
        scale = long_side / max(image.size)
        size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
        return _encoded(page, image.resize(size, Image.Resampling.LANCZOS))


def tiles_needed(page: PageImage, long_side: int) -> int:
    """How many pieces of at most `long_side` pixels a page needs along its longer side."""
    longest = max(page.width, page.height)
    if longest <= long_side:
        return 1
    step = long_side * (1 - _OVERLAP - _SEARCH)
    return int(np.ceil((longest - long_side) / step)) + 1


def cut(page: PageImage, count: int) -> list[Tile]:
    """Cuts a page into `count` pieces along its longer side, in reading order (from the top, or from the left)."""
    with Image.open(io.BytesIO(page.data)) as opened:
        image = opened.convert("RGB") if opened.mode not in ("L", "RGB") else opened.copy()
    along_height = page.height >= page.width
    length = page.height if along_height else page.width
    blank = _blank_rows(image, along_height=along_height)
    piece = length / count
    starts, ends, overlapping = [0], [], [False]
    for number in range(1, count):
        ideal = round(number * piece)
        gap = _nearest_gap(blank, ideal, round(piece * _SEARCH))
        if gap is None:
            half = round(piece * _OVERLAP / 2)
            ends.append(min(length, ideal + half))
            starts.append(max(0, ideal - half))
        else:
            ends.append(gap)
            starts.append(gap)
        overlapping.append(gap is None)
    ends.append(length)
    tiles = []
    for start, end, overlaps in zip(starts, ends, overlapping, strict=True):
        box = (0, start, page.width, end) if along_height else (start, 0, end, page.height)
        tiles.append(Tile(_encoded(page, image.crop(box)), box[0], box[1], overlaps))
    return tiles


def _blank_rows(image: Image.Image, *, along_height: bool) -> npt.NDArray[np.bool_]:
    """Which rows (or columns) of the image hold no ink."""
    grey = np.asarray(image.convert("L"))
    if not along_height:
        grey = grey.T
    # The paper's brightness is that of the brightest rows around: a row may be ink from edge to edge.
    bright = np.pad(np.percentile(grey, 90, axis=1), _PAPER_REACH, mode="edge")
    paper = np.lib.stride_tricks.sliding_window_view(bright, 2 * _PAPER_REACH + 1).max(axis=1)
    blank: npt.NDArray[np.bool_] = grey.min(axis=1) >= paper - _INK
    return blank


def _nearest_gap(blank: npt.NDArray[np.bool_], ideal: int, reach: int) -> int | None:
    """Middle of the widest run of blank rows near `ideal`; None where there is none."""
    low, high = max(0, ideal - reach), min(len(blank), ideal + reach)
    best: tuple[int, int] | None = None
    start = None
    for row in range(low, high + 1):
        if row < high and blank[row]:
            start = row if start is None else start
        elif start is not None:
            width = row - start
            if width >= _BLANK_ROWS and (best is None or width > best[0]):
                best = (width, start + width // 2)
            start = None
    return None if best is None else best[1]


def _encoded(page: PageImage, image: Image.Image) -> PageImage:
    buffer = io.BytesIO()
    image.save(buffer, "PNG", compress_level=1)
    return replace(page, data=buffer.getvalue(), media_type="image/png", width=image.width, height=image.height)


def join(texts: list[str], overlaps: list[bool]) -> str:
    """Joins the texts of pieces; lines that an overlapping piece read again are kept once.

    Args:
        texts: Markdown of the pieces, in order.
        overlaps: For each piece whether it repeats the end of the one before.
    """
    whole = texts[0].strip("\n")
    for text, overlapping in zip(texts[1:], overlaps[1:], strict=True):
        following = text.strip("\n")
        merged = _merged(whole, following) if overlapping else None
        whole = merged or "\n\n".join(part for part in (whole, following) if part)
    return whole + "\n" if whole else ""


def _merged(before: str, after: str) -> str | None:
    """Both texts with the lines that end one and begin the other standing once; None where there are no such lines."""
    ends, begins = before.split("\n"), after.split("\n")
    tail, head = ends[-_COMPARED_LINES:], begins[:_COMPARED_LINES]
    best_shared = 0
    best: tuple[int, int] | None = None
    for first in (number for number, line in enumerate(tail) if _bare(line)):
        for skipped in (number for number, line in enumerate(head[:_CUT_LINES]) if _bare(line)):
            shared = _shared_lines(tail[first:], head[skipped:])
            if shared > best_shared:
                best_shared, best = shared, (first, skipped)
    if best is None:
        return None
    first, skipped = best
    kept = ends[: len(ends) - len(tail) + first]
    # A line at the very edge of a piece may be cut in half: the copy from the middle of the other piece is whole.
    return "\n".join([*kept, *begins[skipped:]])


def _shared_lines(tail: list[str], head: list[str]) -> int:
    """How many worded lines `tail` and `head` have in common from their starts; 0 unless all of `tail` recurs."""
    ours = [line for line in tail if _bare(line)]
    theirs = [line for line in head if _bare(line)][: len(ours)]
    if not ours or len(theirs) < len(ours):
        return 0
    # The last line may have been cut by the edge of the piece.
    checked = ours[:-1] if len(ours) > 1 else ours
    same = all(_similar(one, other) for one, other in zip(checked, theirs, strict=False))
    return len(ours) if same else 0


def _similar(one: str, other: str) -> bool:
    a, b = _bare(one), _bare(other)
    return SequenceMatcher(None, a, b, autojunk=False).ratio() >= _SAME_LINE


def _bare(line: str) -> str:
    return _MARKS.sub("", line).casefold()
