"""Lines from spans."""

from __future__ import annotations

from dataclasses import replace

from pagemill.domain import BoundingBox, TextLayer, TextSpan, TextVerdict
from pagemill.engines.embedded.structure import lines_from_text_layer
from structure_pages import span


def texts(*spans: TextSpan) -> list[str]:
    return [line.text for line in lines_from_text_layer(TextLayer(TextVerdict.SANE, tuple(spans)))]


def test_spans_of_one_line_are_joined_with_the_space_that_is_only_a_gap() -> None:
    assert texts(span("bold", 100, 100, bold=True), span("text", 146, 100)) == ["bold text"]


def test_no_space_where_a_word_merely_changes_its_font() -> None:
    assert texts(span("un", 100, 100), span("likely", 120, 100, italic=True)) == ["unlikely"]


def test_a_column_gutter_parts_a_line() -> None:
    assert texts(span("left column", 100, 100), span("right column", 250, 100)) == ["left column", "right column"]


def test_subscripts_and_superscripts_stay_with_their_line() -> None:
    base = span("CO", 100, 100)
    below = TextSpan("2", BoundingBox(120, 110, 127, 124), 13.0)
    above = TextSpan("3", BoundingBox(137, 96, 144, 110), 13.0)
    assert texts(base, below, span("m", 127, 100), above) == ["CO2m3"]


def test_the_box_of_a_line_is_that_of_its_main_text() -> None:
    above = TextSpan("3", BoundingBox(110, 92, 117, 106), 13.0)
    (line,) = lines_from_text_layer(TextLayer(TextVerdict.SANE, (span("m", 100, 100), above)))
    assert line.box == BoundingBox(100, 100, 117, 120)


def test_lines_close_below_each_other_stay_apart() -> None:
    assert texts(span("first line", 100, 100), span("second line", 100, 118)) == ["first line", "second line"]


def test_a_drop_cap_goes_to_the_first_line_beside_it() -> None:
    cap = TextSpan("O", BoundingBox(100, 100, 140, 160), 60.0)
    assert texts(cap, span("nce upon a time", 145, 100), span("there was a page", 145, 124)) == [
        "Once upon a time",
        "there was a page",
    ]


def test_unusable_spans_are_left_out() -> None:
    assert texts(span("good", 100, 100), span("qkz", 100, 140, sane=False), span("  ", 100, 180)) == ["good"]


def test_styles_are_those_of_most_characters() -> None:
    layer = TextLayer(
        TextVerdict.SANE,
        (
            span("a long bold run", 100, 100, bold=True),
            span("x", 256, 100),
            span("int x;", 100, 140, font="CourierNew"),
        ),
    )
    first, second = lines_from_text_layer(layer)
    assert first.bold
    assert not first.monospace
    assert second.monospace
    assert first.from_text_layer
    assert first.confidence == 1.0


def test_right_to_left_spans_are_joined_from_the_right() -> None:
    assert texts(span("עולם", 100, 100), span("שלום", 146, 100)) == ["שלום עולם"]


def test_chinese_spans_are_joined_without_space() -> None:
    assert texts(span("河流", 100, 100), span("治理", 126, 100)) == ["河流治理"]


def test_vertical_text_runs_down_its_column() -> None:
    column = [TextSpan("縦書", BoundingBox(500, 100, 520, 140), 20.0, vertical=True)]
    column.append(replace(column[0], text="きの文", box=BoundingBox(500, 142, 520, 202)))
    (line,) = lines_from_text_layer(TextLayer(TextVerdict.SANE, tuple(column)))
    assert (line.text, line.vertical) == ("縦書きの文", True)


def test_thousands_of_scattered_spans_are_no_burden() -> None:
    spans = tuple(span("ab", (k * 37) % 1500, (k * 91) % 2100) for k in range(4000))
    lines = lines_from_text_layer(TextLayer(TextVerdict.SANE, spans))
    assert sum(line.text.count("ab") for line in lines) == 4000
