from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from drawn_pages import drawn
from pagemill.engines.embedded.columns import laid_out
from pagemill.engines.embedded.detection import Quad
from pagemill.engines.embedded.recognition import HEIGHT, Recogniser, cut


class Scripted:
    """A session that answers with given classes, one a step, each with its probability."""

    def __init__(self, *steps: tuple[int, float]) -> None:
        self.steps = steps
        self.metadata = {"character": "a\nb\nc"}
        self.shapes: list[tuple[int, ...]] = []

    def run(self, tensor: np.ndarray) -> list[np.ndarray]:
        self.shapes.append(tensor.shape)
        out = np.zeros((1, len(self.steps), 5), dtype=np.float32)
        for step, (class_, probability) in enumerate(self.steps):
            out[0, step, class_] = probability
        return [out]


def read(*steps: tuple[int, float]) -> SimpleNamespace:
    reading = Recogniser(Scripted(*steps)).read(Image.new("RGB", (100, HEIGHT)))  # type: ignore[arg-type]
    return SimpleNamespace(text=reading.text, confidence=reading.confidence)


def test_repeats_merge_and_blanks_part_doubles() -> None:
    assert read((1, 0.9), (1, 0.8), (0, 0.9), (1, 0.7), (2, 1.0)).text == "aab"


def test_the_last_class_is_the_space() -> None:
    assert read((1, 1.0), (4, 1.0), (3, 1.0)).text == "a c"


def test_confidence_is_the_mean_over_characters() -> None:
    assert read((1, 0.9), (0, 0.2), (2, 0.5)).confidence == pytest.approx(0.7)


def test_nothing_has_no_confidence() -> None:
    reading = read((0, 1.0), (0, 1.0))
    assert (reading.text, reading.confidence) == ("", 0.0)


@pytest.mark.parametrize("width", [1, 47, 48, 100, 1000])
def test_widths_are_rounded_up_never_squeezed(width: int) -> None:
    session = Scripted((1, 1.0))
    Recogniser(session).read(Image.new("RGB", (width, HEIGHT)))  # type: ignore[arg-type]
    (shape,) = session.shapes
    assert shape[:3] == (1, 3, HEIGHT)
    assert shape[3] >= max(width, 48)
    assert shape[3] - width < 48


def quad(*corners: tuple[float, float]) -> Quad:
    return Quad(np.array(corners, dtype=float), 0.9)


def test_a_level_line_is_cut_out_with_its_aspect() -> None:
    crop = cut(drawn().convert("RGB"), quad((70, 115), (600, 115), (600, 160), (70, 160)))
    assert crop.size == (round(530 * HEIGHT / 45), HEIGHT)
    assert np.asarray(crop).min() < 60


@pytest.mark.parametrize("turns", [0, 1, 2, 3])
def test_a_turned_box_gives_the_same_crop_as_the_turned_page(turns: int) -> None:
    page = drawn().convert("RGB")
    level = [(70.0, 115.0), (600.0, 115.0), (600.0, 160.0), (70.0, 160.0)]
    expected = np.asarray(cut(page, quad(*level))).astype(int)
    turned, corners = page, level
    for _ in range(turns):
        height = turned.height
        turned = turned.transpose(Image.Transpose.ROTATE_270)
        corners = [(height - y, x) for x, y in corners]
    crop = np.asarray(cut(turned, quad(*corners))).astype(int)
    assert crop.shape == expected.shape
    assert np.abs(crop - expected).mean() < 6


def test_a_box_over_the_edge_of_the_page_is_cut_there() -> None:
    crop = cut(drawn().convert("RGB"), quad((-20, -10), (100, -10), (100, 30), (-20, 30)))
    assert crop.height == HEIGHT


def test_tall_print_is_scaled_down_without_skipping_strokes() -> None:
    page = drawn(["Poster"], size=200, canvas=(900, 500)).convert("RGB")
    leaning = quad((60, 100), (860, 150), (845, 420), (45, 370))
    crop = np.asarray(cut(page, leaning))
    assert crop.shape[0] == HEIGHT
    assert 0.05 < (crop[:, :, 0] < 128).mean() < 0.6


def test_a_column_becomes_a_line() -> None:
    column = Image.new("RGB", (50, 400), "white")
    for number in range(6):
        column.paste("black", (10, 10 + number * 64, 40, 50 + number * 64))
    line = laid_out(column)
    assert line is not None
    assert line.height == HEIGHT
    dark = (np.asarray(line.convert("L")) < 128).any(axis=0)
    assert np.count_nonzero(dark[1:] & ~dark[:-1]) == 6


def test_an_empty_column_is_no_line() -> None:
    assert laid_out(Image.new("RGB", (50, 400), "white")) is None
