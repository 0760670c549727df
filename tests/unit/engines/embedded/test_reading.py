from __future__ import annotations

import itertools

import pytest
from PIL import Image, ImageDraw, ImageFont

from drawn_pages import PARAGRAPH, drawn, noisy
from pagemill.domain import BoundingBox
from pagemill.engines.embedded.imaging import Sheet
from pagemill.engines.embedded.reading import PageReading, Reader


def check() -> None:
    """Goes on."""


def read(reader: Reader, image: Image.Image) -> PageReading:
    return reader.read_page(Sheet(image.convert("RGB")), check)


def texts(reading: PageReading) -> list[str]:
    return [line.text for line in sorted(reading.lines, key=lambda line: line.box.top)]


@pytest.mark.parametrize("turns", [0, 1, 2, 3])
def test_a_page_reads_the_same_whichever_way_up(reader: Reader, turns: int) -> None:
    page = drawn()
    for _ in range(turns):
        page = page.transpose(Image.Transpose.ROTATE_90)  # counterclockwise: to be turned clockwise as often
    reading = read(reader, page)
    assert texts(reading) == list(PARAGRAPH)
    assert reading.quarter_turns == turns
    assert (reading.sheet.width, reading.sheet.height) == (800, 1100)
    assert all(line.confidence > 0.9 and not line.vertical for line in reading.lines)


def test_boxes_stand_around_their_ink(reader: Reader) -> None:
    page = drawn()
    for line in read(reader, page).lines:
        box = tuple(round(value) for value in (line.box.left, line.box.top, line.box.right, line.box.bottom))
        inside = page.crop(box).point(lambda value: 255 * (value < 128)).getbbox()
        assert inside is not None
        assert box[2] - box[0] - (inside[2] - inside[0]) < 40
        assert inside[0] > 0
        assert inside[2] < box[2] - box[0]


@pytest.mark.parametrize("degrees", [-6.0, -1.5, 0.8, 4.0])
def test_a_skewed_page_is_straightened(reader: Reader, degrees: float) -> None:
    page = drawn().rotate(-degrees, Image.Resampling.BICUBIC, fillcolor=255)
    reading = read(reader, page)
    assert texts(reading) == list(PARAGRAPH)
    assert reading.skew == pytest.approx(degrees, abs=0.3)
    lefts = [line.box.left for line in reading.lines]
    assert max(lefts) - min(lefts) < 6


def test_a_page_that_is_straight_is_not_touched(reader: Reader) -> None:
    sheet = Sheet(drawn().convert("RGB"))
    reading = reader.read_page(sheet, check)
    assert reading.skew == 0
    assert reading.sheet is sheet


@pytest.mark.parametrize(
    "page",
    [
        noisy(drawn(paper=215, ink=60), 12),
        drawn(paper=205, ink=150),
        drawn(paper=90, ink=10),
        noisy(drawn(paper=170, ink=110), 4),
    ],
    ids=["noisy", "faint", "dark", "faint and noisy"],
)
def test_bad_scans_are_read(reader: Reader, page: Image.Image) -> None:
    assert texts(read(reader, page)) == list(PARAGRAPH)


@pytest.mark.slow
def test_small_print_gets_a_finer_look(reader: Reader) -> None:
    lines = [f"Line number {number} in very small print, set close" for number in range(1, 41)]
    page = drawn(lines, size=14, pitch=1.25, canvas=(1190, 1540))
    found = texts(read(reader, page))
    # Print this small loses a space now and then.
    assert [line.replace(" ", "") for line in found] == [line.replace(" ", "") for line in lines]


@pytest.mark.slow
def test_a_long_receipt_is_read_to_its_end(reader: Reader) -> None:
    lines = [f"Article {number:03} at {number}.50" for number in range(1, 151)]
    page = drawn(lines, size=22, pitch=1.8, top=60, left=40, canvas=(420, 6100))
    assert texts(read(reader, page)) == lines


def test_a_wide_scroll_is_read_to_its_end(reader: Reader) -> None:
    page = drawn([], canvas=(6100, 400))
    for column in range(14):
        page.paste(drawn([f"column {column}", "of the scroll"], top=60, left=20, canvas=(430, 200)), (column * 430, 80))
    found = texts(read(reader, page))
    assert sorted(found) == sorted([f"column {column}" for column in range(14)] + ["of the scroll"] * 14)


@pytest.mark.slow
@pytest.mark.parametrize("turns", [0, 1])
def test_lines_across_a_large_page_are_not_cut_where_its_bands_meet(reader: Reader, turns: int) -> None:
    line = "which goes on and on over the whole width of a page that is very large"
    lines = [f"Line {number:02} {line} {line} {line}" for number in range(1, 57)]
    page = drawn(lines, size=20, pitch=1.5, top=60, left=60, canvas=(2340, 1800))
    for _ in range(turns):
        page = page.transpose(Image.Transpose.ROTATE_90)
    assert texts(read(reader, page)) == lines


def test_a_lone_digit_is_read_upright(reader: Reader) -> None:
    page = drawn([*PARAGRAPH, "", "1"])
    assert texts(read(reader, page))[-1] == "1"


def test_sideways_text_beside_upright_text_is_read(reader: Reader) -> None:
    page = drawn(left=140)
    note = drawn(["Received in March"], top=0, left=0, canvas=(260, 40))
    page.paste(note.transpose(Image.Transpose.ROTATE_90), (40, 300))
    reading = read(reader, page)
    assert reading.quarter_turns == 0
    (side,) = [line for line in reading.lines if line.vertical]
    assert side.text == "Received in March"


def test_empty_and_meaningless_pages_say_nothing(reader: Reader) -> None:
    assert texts(read(reader, drawn([]))) == []
    assert texts(read(reader, noisy(drawn([], paper=200), 20))) == []


def test_print_that_shines_through_from_the_other_side_says_nothing(reader: Reader) -> None:
    through = drawn(ink=205, paper=245).transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    assert texts(read(reader, through)) == []


def test_bold_lines_have_thicker_strokes(reader: Reader) -> None:
    page = drawn()
    draw, font = ImageDraw.Draw(page), ImageFont.load_default(28)
    draw.text((80, 60), "A heading in bold", fill=0, font=font, stroke_width=1)
    bold, *regular = sorted(read(reader, page).lines, key=lambda line: line.box.top)
    assert bold.stroke > 1.25 * max(line.stroke for line in regular)


def test_an_area_is_read_in_pixels_of_its_page(reader: Reader) -> None:
    sheet = Sheet(drawn().convert("RGB"))
    (line,) = reader.read_area(sheet, BoundingBox(60, 160, 760, 205), 0.8, check)
    assert line.text == PARAGRAPH[1]
    assert 155 < line.box.top < 175


@pytest.mark.parametrize("area", [BoundingBox(10, 10, 12, 300), BoundingBox(-50, -50, -1, -1)])
def test_areas_that_hold_nothing_are_not_looked_at(reader: Reader, area: BoundingBox) -> None:
    assert reader.read_area(Sheet(drawn().convert("RGB")), area, 0.8, check) == []


def test_the_check_stops_it_between_lines(reader: Reader) -> None:
    class StopError(Exception):
        pass

    calls = itertools.count(1)

    def stop_at_the_third() -> None:
        if next(calls) >= 3:
            raise StopError

    with pytest.raises(StopError):
        reader.read_page(Sheet(drawn().convert("RGB")), stop_at_the_third)
    assert next(calls) <= 1 + 1 + len(PARAGRAPH) + 1
