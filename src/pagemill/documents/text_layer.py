"""The text layer of a PDF page: characters joined to spans, spans judged.

A span ends where the font, its size, the line or the direction changes, and at gaps wider than about one em, so that
table cells and columns stay apart. Words are kept as PDFium found them; ligatures are resolved, soft hyphens become
visible ones (that is how they are drawn), Unicode is NFC, and text printed twice for a bold or shadow effect counts
once. Images are all raster images: a scan is one that covers the page.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from pagemill.documents.glyphs import BREAK, SPACE, Glyph, Style, read_glyphs
from pagemill.documents.page_images import PageImages
from pagemill.documents.pdf_types import Affine, Handle
from pagemill.documents.sanity import FontSample, judge
from pagemill.domain import BoundingBox, TextLayer, TextSpan

_WIDE_GAP = 1.0
_WIDE_GAP_AT_SPACE = 1.25  # justified lines stretch their spaces
_MISSING_SPACE = 0.28
_OVERPRINT = 0.15
_SHADOW = 0.25
_SAME_LINE = 0.5

_DROPPED = re.compile("[\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")
_SPACES = re.compile("[ \u00a0\u1680\u2000-\u200a\u202f\u205f]+")
_COMPATIBILITY = re.compile("[\u2e80-\u2fdf\ufb00-\ufdff\ufe70-\ufefc]+")
"""Ligatures, Arabic presentation forms and CJK radicals: glyph variants that fonts map to, not what was written."""
_LINE_END_HYPHEN = 0x02
_SUBSTITUTES = {_LINE_END_HYPHEN: "-", 0xAD: "-"}
"""PDFium gives U+0002 for a hyphen at the end of a line; a soft hyphen that is in the file is drawn as one."""
_SUBSTITUTES |= {0xF0B7: "•", 0xF0A7: "▪", 0xF0D8: "➢", 0xF0FC: "✓", 0xF076: "❖", 0xF06E: "■", 0xF0A8: "□"}
"""Wingdings and Symbol glyphs that word processors use as bullets, in the private use area where Windows maps them."""


@dataclass(slots=True)
class _Run:
    """A span in the making."""

    style: Style
    last_style: Style
    vertical: bool
    units: list[int] = field(default_factory=list)
    unmapped: int = 0
    boxes: list[tuple[float, float, float, float]] = field(default_factory=list)

    def add(self, glyph: Glyph, *, space: bool) -> None:
        if space and self.units:
            self.units.append(SPACE)
        self.units.append(glyph.code)
        self.unmapped += not glyph.mapped
        self.boxes.append(glyph.box)
        self.last_style = glyph.style


def read_text_layer(page: Handle, affine: Affine, images: PageImages, width: int, height: int) -> TextLayer:
    """Extracts and judges the text of a loaded page.

    Args:
        page: PDFium's page.
        affine: Its mapping to pixels.
        images: Its raster images.
        width: Width of the page image in pixels.
        height: Its height.
    """
    frame = BoundingBox(0, 0, width, height)
    runs = [
        run for run in _runs(read_glyphs(page, affine, images.hidden_text)) if frame.intersection_area(_box(run)) > 0
    ]
    spans = [_span(run) for run in runs]
    judgement = judge(_samples(runs, spans))
    kept = [
        replace(span, sane=run.style.font.key not in judgement.insane_fonts)
        for run, span in _without_overprints(zip(runs, spans, strict=True))
        if span.text and (run.style.visible or not judgement.visible_only)
    ]
    return TextLayer(judgement.verdict, tuple(kept), images.boxes, judgement.reasons)


def _runs(stream: list[Glyph | int]) -> Iterator[_Run]:
    run: _Run | None = None
    space = False
    for item in stream:
        if isinstance(item, int):
            space = True
            if item == BREAK and run and not run.vertical:
                yield run
                run = None
            continue
        if run is not None:
            verdict = _fits(run, item, space=space)
            if verdict is _REPEAT:
                continue
            if verdict is None:
                yield run
                run = None
        if run is None:
            run, space, gap = _Run(item.style, item.style, item.style.direction in (1, 3)), False, False
        else:
            gap = bool(verdict)
        run.add(item, space=space or gap)
        space = False
    if run:
        yield run


_REPEAT = object()
"""The character is the last one again, printed over it."""


def _fits(run: _Run, glyph: Glyph, *, space: bool) -> object:
    """Whether a character goes on a run: None for no, True for yes after a gap, False for yes, or `_REPEAT`."""
    style, last = run.style, run.boxes[-1]
    em = max(style.size, 1.0)
    box = glyph.box
    if (
        glyph.code == run.units[-1]
        and abs(box[0] - last[0]) < _OVERPRINT * em
        and abs(box[1] - last[1]) < _OVERPRINT * em
        # The parts of a ligature, as the two letters of "ff", share one place in one text object.
        and not (box == last and glyph.style is run.last_style)
    ):
        return _REPEAT
    other = glyph.style
    if other is not style and (
        other.font != style.font
        or other.visible != style.visible
        or other.bold != style.bold
        or other.direction != style.direction
        or abs(other.size - style.size) > 0.1 * em
    ):
        return None
    if len(run.boxes) == 1 and not run.vertical and _is_below(last, box, em):
        run.vertical = True
    along, across = (1, 0) if run.vertical else (0, 1)
    if abs((box[across] + box[across + 2]) - (last[across] + last[across + 2])) > 2 * _SAME_LINE * em:
        return None
    ahead, behind = box[along] - last[along + 2], last[along] - box[along + 2]
    gap = max(ahead, behind)
    if behind > ahead and not _runs_backwards(glyph.code, style):
        return None
    if gap > (_WIDE_GAP_AT_SPACE if space else _WIDE_GAP) * em:
        return None
    return gap > _MISSING_SPACE * em


def _is_below(last: tuple[float, float, float, float], box: tuple[float, float, float, float], em: float) -> bool:
    """Whether a character stands under the last one of the same text object: vertical writing."""
    below = (box[1] + box[3] - last[1] - last[3]) / 2
    aside = abs(box[0] + box[2] - last[0] - last[2]) / 2
    return 0.6 * em < below < 1.6 * em and aside < 0.2 * em


def _runs_backwards(code: int, style: Style) -> bool:
    right_to_left = 0x590 <= code < 0x900 or 0xFB1D <= code < 0xFF00
    return right_to_left or style.direction in (2, 3)


def _box(run: _Run) -> BoundingBox:
    lefts, tops, rights, bottoms = zip(*run.boxes, strict=True)
    box = BoundingBox(min(lefts), min(tops), max(rights), max(bottoms))
    em = run.style.size
    # Some fonts declare absurd ascents; what is more than half an em too tall is cut evenly.
    if em > 0 and not run.vertical and box.height > 1.6 * em and len(run.boxes) > 1:
        middle = box.center_y
        return BoundingBox(box.left, middle - 0.6 * em, box.right, middle + 0.6 * em)
    return box


def _span(run: _Run) -> TextSpan:
    style = run.style
    box = _box(run)
    return TextSpan(
        normalise(run.units),
        box,
        style.size or (box.width if run.vertical else box.height),
        style.font.name,
        style.bold,
        style.font.italic,
        vertical=run.vertical,
    )


def normalise(units: Iterable[int]) -> str:
    """Text from UTF-16 code units or code points as PDFium gives them.

    Surrogates are joined, line-end and soft hyphens made visible, zero-width and control characters dropped, glyph
    variants resolved, spaces unified; the result is NFC.
    """
    text = "".join(_SUBSTITUTES.get(unit) or chr(unit) for unit in units if unit < 0x110000)
    if any("\ud800" <= character <= "\udfff" for character in text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    text = _COMPATIBILITY.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text)
    text = _SPACES.sub(" ", _DROPPED.sub("", text))
    text = "".join(c for c in text if c >= " " and not "\x7f" <= c <= "\x9f")
    return unicodedata.normalize("NFC", text.strip())


def _samples(runs: list[_Run], spans: list[TextSpan]) -> list[FontSample]:
    samples: dict[tuple[str, bool], FontSample] = {}
    for run, span in zip(runs, spans, strict=True):
        key = (run.style.font.key, run.style.visible)
        sample = samples.setdefault(key, FontSample(*key))
        sample.texts.append(span.text)
        sample.unmapped += run.unmapped
        sample.controls += sum(_is_control(unit) for unit in run.units)
    return list(samples.values())


def _is_control(unit: int) -> bool:
    return (unit < SPACE and unit != _LINE_END_HYPHEN) or 0x7F <= unit < 0xA0


def _without_overprints(pairs: Iterable[tuple[_Run, TextSpan]]) -> Iterator[tuple[_Run, TextSpan]]:
    """Leaves out spans that repeat an earlier one at nearly the same place."""
    seen: dict[str, list[TextSpan]] = {}
    for run, span in pairs:
        earlier = seen.setdefault(span.text, [])
        slack = _SHADOW * span.font_size
        if any(
            abs(span.box.left - other.box.left) < slack and abs(span.box.top - other.box.top) < slack
            for other in earlier
        ):
            continue
        earlier.append(span)
        yield run, span
