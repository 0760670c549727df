"""Which way up a page may be, from the ink alone.

A cheap look that says no more than what is worth trying: lines of print make the rows of an upright page change between
ink and paper, and in most scripts more ink stands above the small letters (ascenders) than below them (descenders). The
reading decides.
"""

from __future__ import annotations

import io
import re
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from PIL import Image

from pagemill.domain import PageImage, PageResult

_SIDE = 1000
_SIDEWAYS = 1.6
"""How much stronger the columns must alternate than the rows before a page counts as lying on its side."""
_UPSIDE_DOWN = 1.25
_MIN_LINES = 4
_MIN_ROWS, _MAX_ROWS = 5, 60
_WORD = re.compile(r"[^\W\d_]{2,}")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_VOWEL = re.compile(r"[aeiouyàáâãäåæèéêëìíîïòóôõöøùúûüœ]", re.IGNORECASE)


def turns_to_try(page: PageImage) -> tuple[int, ...]:
    """Clockwise turns in degrees under which a page may be upright, the likeliest first; `(0,)` for most pages."""
    mask = _ink(page)
    rows, columns = _alternation(mask.mean(axis=1)), _alternation(mask.mean(axis=0))
    if columns > _SIDEWAYS * rows and columns > 0:
        standing = np.rot90(mask, -1)
        return (270, 90) if _is_upside_down(standing) else (90, 270)
    return (0, 180) if _is_upside_down(mask) else (0,)


def turned(page: PageImage, degrees: int) -> PageImage:
    """The page turned clockwise by 0, 90, 180 or 270 degrees."""
    turns = {90: Image.Transpose.ROTATE_270, 180: Image.Transpose.ROTATE_180, 270: Image.Transpose.ROTATE_90}
    if degrees == 0:
        return page
    with Image.open(io.BytesIO(page.data)) as image:
        result = image.transpose(turns[degrees])
    buffer = io.BytesIO()
    result.save(buffer, "PNG", compress_level=1)
    return replace(
        page, data=buffer.getvalue(), media_type="image/png", width=result.width, height=result.height, text_layer=None
    )


def reading_quality(result: PageResult) -> float:
    """How much a reading looks like language: words with vowels and CJK characters, less if it did not end well."""
    words = _WORD.findall(result.markdown)
    good = sum(1 for word in words if _VOWEL.search(word) and len(word) < 30) + len(_CJK.findall(result.markdown)) / 2
    return good if result.ok else good / 4


def _ink(page: PageImage) -> npt.NDArray[np.float64]:
    with Image.open(io.BytesIO(page.data)) as opened:
        image = opened.convert("L")
    image.thumbnail((_SIDE, _SIDE), Image.Resampling.BOX)
    grey = np.asarray(image).astype(np.float64)
    paper = np.percentile(grey, 90)
    margin = max(1, round(min(grey.shape) * 0.02))
    return np.asarray(grey < paper - 60, np.float64)[margin:-margin, margin:-margin]


def _alternation(profile: npt.NDArray[np.float64]) -> float:
    """How strongly a profile goes up and down from one row to the next."""
    return float(np.square(np.diff(profile)).sum())


def _is_upside_down(mask: npt.NDArray[np.float64]) -> bool:
    """Whether the lines have clearly more ink below their small letters than above."""
    profile = mask.mean(axis=1)
    inked = profile > profile.mean() * 0.3
    edges = np.flatnonzero(np.diff(np.concatenate([[False], inked, [False]]).astype(np.int8)))
    above = below = 0.0
    lines = 0
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        if not _MIN_ROWS <= end - start <= _MAX_ROWS:
            continue
        line = profile[start:end]
        body = np.flatnonzero(line > 0.6 * line.max())
        above += float(line[: body[0]].sum()) / float(line.sum())
        below += float(line[body[-1] + 1 :].sum()) / float(line.sum())
        lines += 1
    return lines >= _MIN_LINES and below > _UPSIDE_DOWN * above and below - above > 0.03 * lines
