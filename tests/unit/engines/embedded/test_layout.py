from __future__ import annotations

import numpy as np
import pytest

from pagemill.engines.embedded.layout import decode, suppress

CELLS = (7600, 1900, 475, 130)


def test_distances_are_the_mean_of_their_distribution_in_strides() -> None:
    scores = [np.zeros((1, cells, 10), dtype=np.float32) for cells in CELLS]
    distances = [np.full((1, cells, 32), -50.0, dtype=np.float32) for cells in CELLS]
    row, column = 3, 5  # of the second grid, 38 columns wide, stride 16
    cell = row * 38 + column
    scores[1][0, cell, 4] = 0.75
    for side, bin_ in enumerate((2, 1, 4, 3)):
        distances[1][0, cell, side * 8 + bin_] = 50.0
    found_scores, boxes = decode([*scores, *distances])
    at = CELLS[0] + cell
    assert found_scores[at, 4] == pytest.approx(0.75)
    x, y = (column + 0.5) * 16, (row + 0.5) * 16
    np.testing.assert_allclose(boxes[at], [x - 32, y - 16, x + 64, y + 48], atol=1e-6)


def test_of_overlapping_boxes_the_best_stays() -> None:
    boxes = np.array([[0, 0, 100, 100], [5, 5, 105, 105], [200, 0, 300, 100], [0, 0, 40, 40]], dtype=float)
    assert suppress(boxes, np.array([0.5, 0.9, 0.4, 0.8])) == [1, 3, 2]


def test_nothing_is_suppressed_to_nothing() -> None:
    assert suppress(np.zeros((0, 4)), np.zeros(0)) == []
