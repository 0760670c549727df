"""Nothing is lost and nothing breaks, whatever stands on the page."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from pagemill.domain import BoundingBox, TextLayer, TextSpan, TextVerdict
from pagemill.engines.embedded.elements import Line, PageElements, Region, RegionKind, Rulings
from pagemill.engines.embedded.structure import build_blocks, lines_from_text_layer, render_markdown

_TEXTS = st.one_of(
    st.text(max_size=30),
    st.sampled_from(
        ["1.", "•", "Total", "3,482,000", "河流治理", "Figure 1: x", "running text that goes on and on", "a-", "7", " "]
    ),
)
_NUMBERS = st.floats(-50, 1100, allow_nan=False).map(lambda value: round(value, 1))
_SNAPPED = st.sampled_from([0.0, 100.0, 120.0, 140.0, 160.0, 300.0, 500.0, 900.0])


@st.composite
def boxes(draw: st.DrawFn) -> BoundingBox:
    left, top = draw(st.one_of(_NUMBERS, _SNAPPED)), draw(st.one_of(_NUMBERS, _SNAPPED))
    return BoundingBox(
        left,
        top,
        left + draw(st.sampled_from([0.0, 8.0, 60.0, 400.0])),
        top + draw(st.sampled_from([0.0, 20.0, 300.0])),
    )


_LINES = st.builds(
    Line,
    _TEXTS,
    boxes(),
    confidence=st.floats(0, 1),
    font_size=st.sampled_from([0.0, 12.0, 20.0, 40.0]),
    bold=st.booleans(),
    italic=st.booleans(),
    monospace=st.booleans(),
    stroke=st.sampled_from([0.0, 2.0, 4.0]),
    vertical=st.booleans(),
    from_text_layer=st.booleans(),
)
_PAGES = st.builds(
    PageElements,
    st.integers(0, 3),
    st.just(1000),
    st.just(1000),
    st.lists(_LINES, max_size=25).map(tuple),
    st.lists(st.builds(Region, st.sampled_from(RegionKind), boxes(), st.floats(0, 1)), max_size=8).map(tuple),
    st.builds(Rulings, st.lists(boxes(), max_size=6).map(tuple), st.lists(boxes(), max_size=6).map(tuple)),
    st.lists(boxes(), max_size=3).map(tuple),
)


def identity(text: str, box: BoundingBox) -> tuple[str, ...]:
    """A line as it is told from others; turning a vertical page and back costs the last bits of its box."""
    return (text, *(f"{edge + 0.0:.3f}" for edge in (box.left, box.top, box.right, box.bottom)))


@settings(max_examples=300, deadline=None)
@given(_PAGES)
def test_every_line_is_in_exactly_one_block(page: PageElements) -> None:
    structure = build_blocks(page)
    shown = Counter(identity(item.text, item.box) for block in structure.blocks for item in block.lines)
    assert shown == Counter(identity(line.text, line.box) for line in page.lines if line.text.strip())
    markdown = render_markdown(structure.blocks)
    assert markdown == "" or (markdown.endswith("\n") and not markdown.endswith("\n\n"))
    assert all(name in "".join(block.markdown for block in structure.blocks) for name, _ in structure.crops)


@settings(max_examples=100, deadline=None)
@given(_PAGES)
def test_the_order_of_the_input_does_not_lose_lines_either(page: PageElements) -> None:
    twice = PageElements(page.index, page.width, page.height, page.lines + page.lines, page.regions, page.rulings)
    shown = [item.text for block in build_blocks(twice).blocks for item in block.lines]
    assert Counter(shown) == Counter(line.text for line in twice.lines if line.text.strip())


_SPANS = st.builds(
    TextSpan,
    st.text(max_size=12),
    boxes(),
    st.sampled_from([1.0, 12.0, 20.0, 60.0]),
    bold=st.booleans(),
    vertical=st.booleans(),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(_SPANS, max_size=25))
def test_every_character_of_the_text_layer_is_in_a_line(spans: list[TextSpan]) -> None:
    lines = lines_from_text_layer(TextLayer(TextVerdict.SANE, tuple(spans)))
    told = Counter("".join("".join(line.text.split()) for line in lines))
    assert told == Counter("".join("".join(span.text.split()) for span in spans))
