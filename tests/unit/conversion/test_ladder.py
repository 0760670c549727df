from __future__ import annotations

import io

import pytest
from PIL import Image

from pagemill.conversion.ladder import read_page
from pagemill.domain import FinishReason, PageFlag, PageImage, PageResult, SamplingParams, Usage
from pagemill.domain.errors import RequestRejectedError


def page(width: int = 1000, height: int = 1400) -> PageImage:
    buffer = io.BytesIO()
    Image.new("L", (width, height), 255).save(buffer, "PNG")
    return PageImage(0, buffer.getvalue(), "image/png", width, height)


class Reader:
    """Gives answers in turn and notes how it was asked."""

    def __init__(self, *answers: tuple[str, FinishReason]) -> None:
        self._answers = list(answers)
        self.asked: list[tuple[float, int, int]] = []

    async def __call__(self, image: PageImage, params: SamplingParams) -> PageResult:
        self.asked.append((params.temperature, image.width, image.height))
        text, reason = self._answers.pop(0)
        return PageResult(0, text, reason, Usage(10, 5))


STOP, LENGTH, LOOP = FinishReason.STOP, FinishReason.LENGTH, FinishReason.REPETITION


async def read(reader: Reader, image: PageImage | None = None, attempts: int = 5, side: int = 1540) -> PageResult:
    return await read_page(reader, image or page(), SamplingParams(), attempts=attempts, max_long_side=side)


async def test_a_good_first_reading_is_all() -> None:
    reader = Reader(("text", STOP))
    result = await read(reader)
    assert result.ok
    assert (result.attempts, result.flags) == (1, ())


async def test_bad_readings_are_repeated_warmer_then_smaller_then_in_pieces() -> None:
    reader = Reader(("a", LENGTH), ("", STOP), ("b", LOOP), ("c", LENGTH), ("top", STOP), ("bottom", STOP))
    result = await read(reader)
    assert result.ok
    assert result.markdown == "top\n\nbottom\n"
    assert result.attempts == 5
    assert set(result.flags) == {PageFlag.RETRIED, PageFlag.TILED}
    temperatures = [temperature for temperature, _, _ in reader.asked]
    assert temperatures == [0.2, 0.4, 0.7, 0.2, 0.2, 0.2]
    assert reader.asked[3][1:] == (800, 1120)
    assert sum(height for _, _, height in reader.asked[4:]) == 1400
    assert result.usage == Usage(60, 30)


async def test_at_the_end_the_longest_text_is_kept_and_the_page_is_incomplete() -> None:
    reader = Reader(("short", LENGTH), ("the longest of all", LOOP), ("", STOP))
    result = await read(reader, attempts=3)
    assert not result.ok
    assert result.markdown == "the longest of all"
    assert result.finish_reason is LOOP
    assert result.error is not None
    assert result.error.code == "degenerate_output"
    assert result.error.retryable
    assert PageFlag.TRUNCATED in result.flags
    assert result.attempts == 3


async def test_an_empty_answer_is_no_success() -> None:
    result = await read(Reader(("", STOP), ("\n", STOP)), attempts=2)
    assert not result.ok
    assert result.finish_reason is FinishReason.ERROR


async def test_a_piece_that_is_cut_makes_the_page_incomplete() -> None:
    reader = Reader(("one", STOP), ("two", LENGTH))
    result = await read(reader, page(600, 2700), attempts=1)
    assert result.finish_reason is LENGTH
    assert result.markdown == "one\n\ntwo\n"


async def test_long_pages_are_read_in_pieces_from_the_start() -> None:
    reader = Reader(*[(f"part {n}", STOP) for n in range(9)])
    result = await read(reader, page(500, 5000))
    assert result.ok
    assert PageFlag.TILED in result.flags
    assert all(height <= 1540 for _, _, height in reader.asked)
    assert all(width == 500 for _, width, _ in reader.asked)


async def test_errors_of_the_engine_are_not_its_business() -> None:
    async def refuse(_image: PageImage, _params: SamplingParams) -> PageResult:
        raise RequestRejectedError("no")

    with pytest.raises(RequestRejectedError):
        await read_page(refuse, page(), SamplingParams(), attempts=5, max_long_side=0)


async def test_pictures_of_pieces_keep_their_names_and_places_apart() -> None:
    from pagemill.domain import BoundingBox, Figure

    async def read_piece(image: PageImage, _params: SamplingParams) -> PageResult:
        figure = Figure("p0001-figure-1.png", b"x", "image/png", BoundingBox(0, 10, 20, 30))
        return PageResult(0, f"height {image.height}\n\n![figure](p0001-figure-1.png)", figures=(figure,))

    result = await read_page(read_piece, page(600, 2700), SamplingParams(), attempts=1, max_long_side=1540)
    assert [figure.name for figure in result.figures] == ["p0001-figure-1-1.png", "p0001-figure-1-2.png"]
    assert all(f"({figure.name})" in result.markdown for figure in result.figures)
    assert result.figures[1].box.top > 1000
