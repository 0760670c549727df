"""One page from encoded image to result: the stages in order. Blocking; runs in worker threads."""

from __future__ import annotations

import io
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pagemill.domain import (
    BoundingBox,
    Figure,
    PageFlag,
    PageImage,
    PageResult,
    TextVerdict,
)
from pagemill.engines.embedded.elements import Line, PageElements, Rulings
from pagemill.engines.embedded.imaging import Sheet, decode
from pagemill.engines.embedded.ink import has_strong_ink, is_blank
from pagemill.engines.embedded.layout import LayoutModel
from pagemill.engines.embedded.lines import Check
from pagemill.engines.embedded.memory import release_unused_memory
from pagemill.engines.embedded.mixed import not_told_yet, unread_areas
from pagemill.engines.embedded.reading import Reader
from pagemill.engines.embedded.rulings import find_rulings
from pagemill.engines.embedded.structure import build_blocks, lines_from_text_layer, render_markdown

LOW_CONFIDENCE = 0.75
"""Pages below this mean confidence are flagged: a third of their words is likely to be wrong."""
_AREA_CONFIDENCE = 0.8
"""Inside pictures and charts, more of what looks like text is none."""
_WHOLE_PAGE = 0.9


@dataclass(frozen=True, slots=True)
class _Findings:
    """What the vision stages know of a page."""

    sheet: Sheet
    lines: tuple[Line, ...]
    rulings: Rulings
    flags: tuple[PageFlag, ...]
    inverted: bool = False


class PagePipeline:
    """The stages of the engine.

    Args:
        reader: Finds and reads lines.
        layout: Proposes regions.
    """

    def __init__(self, reader: Reader, layout: LayoutModel) -> None:
        self._reader = reader
        self._layout = layout

    def process(self, page: PageImage, check: Check) -> PageResult:
        """Reads one page.

        Args:
            page: Its image and text layer.
            check: Called between steps; raises to stop.

        Raises:
            EngineError: The image cannot be decoded, or a model failed.
        """
        started = time.monotonic()
        sheet = decode(page)
        inverted = sheet.is_dark
        if inverted:
            sheet = sheet.inverted()
        if not _has_text(page) and is_blank(sheet):
            return PageResult(
                page.index,
                "",
                flags=(PageFlag.BLANK,),
                duration_s=time.monotonic() - started,
                width=sheet.width,
                height=sheet.height,
            )
        check()
        layer = page.text_layer
        if layer is not None and layer.verdict is TextVerdict.SANE:
            findings = self._from_layer(sheet, page, check)
        else:
            findings = self._from_pixels(sheet, check)
        check()
        return self._structured(page, replace(findings, inverted=inverted), started)

    def _from_layer(self, sheet: Sheet, page: PageImage, check: Check) -> _Findings:
        layer = page.text_layer
        assert layer is not None
        lines = lines_from_text_layer(layer)
        rulings = find_rulings(sheet, [line.box for line in lines])
        flags = [PageFlag.TEXT_LAYER]
        for area in unread_areas(sheet, layer, rulings):
            check()
            found = not_told_yet(self._reader.read_area(sheet, area, _AREA_CONFIDENCE, check), lines)
            lines.extend(found)
            if found and PageFlag.MIXED not in flags:
                flags.append(PageFlag.MIXED)
        return _Findings(sheet, tuple(lines), rulings, tuple(flags))

    def _from_pixels(self, sheet: Sheet, check: Check) -> _Findings:
        reading = self._reader.read_page(sheet, check)
        release_unused_memory()
        flags = []
        if reading.quarter_turns:
            flags.append(PageFlag.ROTATED)
        if reading.skew:
            flags.append(PageFlag.DESKEWED)
        rulings = find_rulings(reading.sheet, [line.box for line in reading.lines])
        return _Findings(reading.sheet, reading.lines, rulings, tuple(flags))

    def _structured(self, page: PageImage, findings: _Findings, started: float) -> PageResult:
        sheet, flags = findings.sheet, list(findings.flags)
        regions = self._layout.regions(sheet)
        pictures = tuple(
            box
            for box in (page.text_layer.images if page.text_layer and PageFlag.TEXT_LAYER in flags else ())
            if box.area < _WHOLE_PAGE * sheet.width * sheet.height
        )
        structure = build_blocks(
            PageElements(
                page.index, sheet.width, sheet.height, findings.lines, tuple(regions), findings.rulings, pictures
            )
        )
        confidence = _mean_confidence(findings.lines)
        if confidence is not None and confidence < LOW_CONFIDENCE:
            flags.append(PageFlag.LOW_CONFIDENCE)
        if not findings.lines and not structure.crops:
            # Marks that could not be read are no blank page.
            flags.append(PageFlag.LOW_CONFIDENCE if has_strong_ink(sheet) else PageFlag.BLANK)
        picture = sheet.inverted() if findings.inverted else sheet
        return PageResult(
            page.index,
            render_markdown(structure.blocks),
            blocks=tuple(structure.blocks),
            figures=tuple(_figure(picture, name, box) for name, box in structure.crops),
            confidence=confidence,
            flags=tuple(flags),
            duration_s=time.monotonic() - started,
            width=sheet.width,
            height=sheet.height,
        )


def _has_text(page: PageImage) -> bool:
    layer = page.text_layer
    return layer is not None and layer.verdict is TextVerdict.SANE and any(span.text.strip() for span in layer.spans)


def _mean_confidence(lines: Sequence[Line]) -> float | None:
    characters = sum(len(line.text) for line in lines)
    return sum(line.confidence * len(line.text) for line in lines) / characters if characters else None


def _figure(sheet: Sheet, name: str, box: BoundingBox) -> Figure:
    crop = sheet.image.crop((int(box.left), int(box.top), round(box.right), round(box.bottom)))
    buffer = io.BytesIO()
    crop.save(buffer, "PNG")
    return Figure(name, buffer.getvalue(), "image/png", box)
