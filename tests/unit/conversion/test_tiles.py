from __future__ import annotations

import io

import pytest
from PIL import Image, ImageDraw

from pagemill.conversion.tiles import cut, join, resized, tiles_needed
from pagemill.domain import PageImage


def encoded(image: Image.Image) -> PageImage:
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return PageImage(3, buffer.getvalue(), "image/png", *image.size)


def lines_page(width: int = 400, height: int = 3000, pitch: int = 30) -> PageImage:
    image = Image.new("L", (width, height), 250)
    draw = ImageDraw.Draw(image)
    for top in range(10, height - pitch, pitch):
        draw.rectangle((20, top, width - 20, top + 14), fill=0)
    return encoded(image)


def opened(page: PageImage) -> Image.Image:
    return Image.open(io.BytesIO(page.data)).convert("L")


def test_pieces_are_cut_between_lines_and_are_the_whole_page() -> None:
    page = lines_page()
    tiles = cut(page, 3)
    assert not any(tile.overlaps for tile in tiles)
    assert sum(tile.image.height for tile in tiles) == page.height
    for tile in tiles[:-1]:
        assert opened(tile.image).crop((0, tile.image.height - 2, 400, tile.image.height)).getextrema()[0] > 200


def test_pieces_overlap_where_there_is_ink_everywhere() -> None:
    image = Image.new("L", (400, 3000), 250)
    ImageDraw.Draw(image).line((200, 0, 200, 3000), fill=0, width=4)
    tiles = cut(encoded(image), 2)
    assert [tile.overlaps for tile in tiles] == [False, True]
    assert sum(tile.image.height for tile in tiles) > 3000


def test_wide_pages_are_cut_from_left_to_right() -> None:
    wide = encoded(opened(lines_page()).rotate(90, expand=True))
    tiles = cut(wide, 2)
    assert all(tile.image.height == 400 for tile in tiles)
    assert sum(tile.image.width for tile in tiles) == 3000


@pytest.mark.parametrize(("longest", "count"), [(1540, 1), (1541, 2), (2500, 2), (3000, 3), (15_400, 13)])
def test_enough_pieces_for_the_longest_side(longest: int, count: int) -> None:
    page = PageImage(0, b"", "image/png", 500, longest)
    assert tiles_needed(page, 1540) == count


def test_no_piece_is_longer_than_was_asked_for() -> None:
    for height in (1541, 2000, 2700, 4000, 9000):
        page = lines_page(height=height)
        tiles = cut(page, tiles_needed(page, 1540))
        assert max(tile.image.height for tile in tiles) <= 1540


def test_nothing_is_enlarged() -> None:
    page = lines_page(400, 900)
    assert resized(page, 1540) is page
    smaller = resized(page, 450)
    assert (smaller.width, smaller.height) == (200, 450)
    assert opened(smaller).size == (200, 450)


def test_pieces_without_overlap_are_put_one_after_the_other() -> None:
    assert join(["one\n", "two\n"], [False, False]) == "one\n\ntwo\n"
    assert join(["one\n", ""], [False, False]) == "one\n"


def test_lines_that_were_read_twice_stand_once() -> None:
    first = "# Title\n\nalpha beta gamma\n\ndelta epsilon zeta\n\neta theta iota kapp"
    second = "delta epsilon zeta\n\neta theta iota kappa lambda\n\nmu nu xi"
    assert join([first, second], [False, True]) == (
        "# Title\n\nalpha beta gamma\n\ndelta epsilon zeta\n\neta theta iota kappa lambda\n\nmu nu xi\n"
    )


def test_a_line_cut_at_the_top_of_a_piece_does_not_hide_the_doubles() -> None:
    first = "alpha beta gamma\ndelta epsilon zeta\neta theta iota"
    second = "gxmmo\ndelta epsilon zeta\neta theta iota\nmu nu xi"
    assert join([first, second], [False, True]) == "alpha beta gamma\ndelta epsilon zeta\neta theta iota\nmu nu xi\n"


def test_different_lines_are_all_kept() -> None:
    assert join(["alpha\nbeta", "gamma\ndelta"], [False, True]) == "alpha\nbeta\n\ngamma\ndelta\n"
