"""Lines from the spans of a text layer."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from pagemill.domain import BoundingBox, TextLayer, TextSpan
from pagemill.engines.embedded.elements import Line
from pagemill.engines.embedded.structure.scripts import is_right_to_left, is_unspaced

# Gaps in units of the font size. A word space is 0.25 em, stretched in justified text to 0.5 em and more;
# column gutters and gaps between table cells start at about 1 em.
_SPLIT_GAP = 1.0
_WORD_GAP = 0.16
_DROP_CAP_SIZE = 1.8
# Height in pixels of the strips by which neighbours are looked up.
_STRIP = 64.0

_MONOSPACE = re.compile(
    r"mono|courier|consol|menlo|typewriter|inconsolata|andale|lucida ?console|letter ?gothic|source ?code|"
    r"fira ?code|cmtt|ocr-?[ab]\b|terminal|fixed",
    re.IGNORECASE,
)


@dataclass(slots=True)
class _Run:
    """Spans that follow each other on one line; `main` is the largest of them, `right` where they end in pixels."""

    spans: list[TextSpan]
    main: TextSpan
    right: float

    @staticmethod
    def of(span: TextSpan) -> _Run:
        return _Run([span], span, span.box.right)

    def add(self, span: TextSpan) -> None:
        self.spans.append(span)
        self.right = max(self.right, span.box.right)
        if (span.font_size, len(span.text)) > (self.main.font_size, len(self.main.text)):
            self.main = span


def lines_from_text_layer(layer: TextLayer) -> list[Line]:
    """Merges the spans of each visual line.

    Lines are split at column gutters and at gaps between table cells; superscripts, subscripts and drop caps are
    attached to the line they belong to; spaces that only exist as gaps are put in. Spans that were judged unusable
    are left out: they want OCR.

    Args:
        layer: The text layer of a page; boxes in pixels of the page image.

    Returns:
        Lines in the order of their first span; all with confidence 1.
    """
    spans = [span for span in layer.spans if span.sane and span.text.strip()]
    horizontal = [span for span in spans if not span.vertical]
    caps, rest = _drop_caps(horizontal)
    runs = _merge_runs(rest)
    for cap in caps:
        _attach_drop_cap(cap, runs)
    lines = [_line(run) for run in runs]
    lines.extend(_vertical_lines([span for span in spans if span.vertical]))
    return lines


def _merge_runs(spans: Sequence[TextSpan]) -> list[_Run]:
    """Left to right, each span goes to the run that it continues best."""
    runs: list[_Run] = []
    # Runs by the strips of the page that they touch, so that dense pages need no comparison of all with all.
    strips: defaultdict[int, list[_Run]] = defaultdict(list)
    for span in sorted(spans, key=lambda item: (item.box.left, item.box.top)):
        touched = range(int(span.box.top // _STRIP), int(span.box.bottom // _STRIP) + 1)
        near = {id(run): run for strip in touched for run in strips[strip]}
        candidates = [run for run in near.values() if _continues(run, span)]
        if candidates:
            run = max(candidates, key=lambda item: _closeness(item, span))
            run.add(span)
        else:
            run = _Run.of(span)
            runs.append(run)
        for strip in touched:
            # What ends far to the left of this span can continue nothing that comes later.
            reach = span.box.left - 3 * span.font_size - _STRIP
            strips[strip] = [other for other in strips[strip] if other is not run and other.right > reach]
            strips[strip].append(run)
    order = {id(span): position for position, span in enumerate(spans)}
    runs.sort(key=lambda run: min(order[id(span)] for span in run.spans))
    return runs


def _continues(run: _Run, span: TextSpan) -> bool:
    main = run.main
    last = run.spans[-1]
    size = max(1.0, min(max(main.font_size, span.font_size), 2 * min(main.font_size, span.font_size)))
    gap = span.box.left - run.right
    shared = max(span.box.overlap_y(main.box), span.box.overlap_y(last.box))
    smaller = max(1e-6, min(main.box.height, span.box.height))
    same_size = abs(main.font_size - span.font_size) < 0.15 * size
    if same_size:
        return shared > 0.5 * smaller and -0.7 * size < gap < _SPLIT_GAP * size
    # Sub- and superscripts cling to their base and reach over its edge.
    return shared > 0.3 * smaller and -0.7 * size < gap < 0.6 * size


def _closeness(run: _Run, span: TextSpan) -> float:
    """How well a span fits a run: the share of its height on the run's line, less the gap in em."""
    shared = span.box.overlap_y(run.main.box) / max(1.0, min(span.box.height, run.main.box.height))
    return shared - abs(span.box.left - run.right) / max(1.0, span.font_size)


def _drop_caps(spans: Sequence[TextSpan]) -> tuple[list[TextSpan], list[TextSpan]]:
    """Parts initials that are two or more lines tall from the rest."""
    caps = []
    for span in spans:
        if len(span.text.strip()) > 2 or not span.text.strip().isalpha():
            continue
        beside = [
            other
            for other in spans
            if other.font_size * _DROP_CAP_SIZE < span.font_size
            and len(other.text) > 2
            and -0.3 * span.font_size < other.box.left - span.box.right < 0.6 * span.font_size
            and span.box.top - other.font_size < other.box.center_y < span.box.bottom
        ]
        if len(beside) >= 2:
            caps.append(span)
    taken = {id(cap) for cap in caps}
    return caps, [span for span in spans if id(span) not in taken]


def _attach_drop_cap(cap: TextSpan, runs: list[_Run]) -> None:
    near = [
        run
        for run in runs
        if -0.3 * cap.font_size < min(span.box.left for span in run.spans) - cap.box.right < 0.6 * cap.font_size
        and cap.box.top - run.main.font_size < run.main.box.center_y < cap.box.bottom
    ]
    first = min(near, key=lambda run: run.main.box.top, default=None)
    if first is None:
        runs.append(_Run.of(cap))
        return
    head = first.spans[0]
    box = BoundingBox(cap.box.left, head.box.top, head.box.left, head.box.bottom)
    first.spans.insert(0, TextSpan(cap.text.strip(), box, head.font_size, head.font, head.bold, head.italic, head.sane))


def _line(run: _Run) -> Line:
    spans = sorted(run.spans, key=lambda span: span.box.left)
    main = run.main
    text = _joined(spans)
    if is_right_to_left(text):
        text = _joined(spans[::-1], from_right=True)
    baseline = [span for span in spans if span.font_size > 0.85 * main.font_size]
    box = BoundingBox(
        spans[0].box.left,
        min(span.box.top for span in baseline),
        max(span.box.right for span in spans),
        max(span.box.bottom for span in baseline),
    )
    return Line(
        text=text,
        box=box,
        font_size=main.font_size,
        bold=_mostly(spans, [span.bold for span in spans]),
        italic=_mostly(spans, [span.italic for span in spans]),
        monospace=_mostly(spans, [bool(_MONOSPACE.search(span.font)) for span in spans]),
        from_text_layer=True,
    )


def _joined(spans: Sequence[TextSpan], *, from_right: bool = False) -> str:
    text = ""
    for position, span in enumerate(spans):
        if position:
            before = spans[position - 1]
            gap = before.box.left - span.box.right if from_right else span.box.left - before.box.right
            size = max(1.0, min(before.font_size, span.font_size))
            if gap > _WORD_GAP * size and _takes_space(text, span.text, gap / size):
                text += " "
        text += span.text
    return re.sub(r"\s+", " ", text).strip()


def _takes_space(before: str, after: str, gap_em: float) -> bool:
    if not before or before[-1].isspace() or after[:1].isspace():
        return False
    between_unspaced = is_unspaced(before[-1]) or is_unspaced(after[0])
    return not between_unspaced or gap_em > 0.6


def _mostly(spans: Sequence[TextSpan], flags: Sequence[bool]) -> bool:
    total = sum(len(span.text.strip()) for span in spans)
    marked = sum(len(span.text.strip()) for span, flag in zip(spans, flags, strict=True) if flag)
    return marked > 0.6 * total


def _vertical_lines(spans: Sequence[TextSpan]) -> list[Line]:
    """Columns of vertical text; content order is their reading order."""
    columns: list[list[TextSpan]] = []
    for span in spans:
        last = columns[-1][-1] if columns else None
        size = max(1.0, span.font_size)
        if (
            last is not None
            and span.box.overlap_x(last.box) > 0.5 * min(span.box.width, last.box.width)
            and min(abs(span.box.top - last.box.bottom), abs(last.box.top - span.box.bottom)) < 1.5 * size
        ):
            columns[-1].append(span)
        else:
            columns.append([span])
    return [
        Line(
            text=_vertical_text(column),
            box=BoundingBox.around(span.box for span in column),
            font_size=max(span.font_size for span in column),
            bold=_mostly(column, [span.bold for span in column]),
            italic=_mostly(column, [span.italic for span in column]),
            vertical=True,
            from_text_layer=True,
        )
        for column in columns
    ]


def _vertical_text(column: Sequence[TextSpan]) -> str:
    text = ""
    for span in column:
        spaced = text and not (is_unspaced(text[-1]) or is_unspaced(span.text[0]))
        text += (" " if spaced and not text.endswith(" ") else "") + span.text
    return re.sub(r"\s+", " ", text).strip()
