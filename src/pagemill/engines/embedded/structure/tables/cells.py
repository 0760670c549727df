"""Texts of cells."""

from __future__ import annotations

from collections.abc import Sequence

from pagemill.engines.embedded.elements import Line
from pagemill.engines.embedded.structure.joining import Vocabulary
from pagemill.engines.embedded.structure.metrics import PageMetrics, visual_rows


def ruling_tolerance(metrics: PageMetrics) -> float:
    """Distance in pixels within which rulings are taken to meet."""
    return max(4.0, 0.3 * metrics.line_height)


def cell_text(lines: Sequence[Line], vocabulary: Vocabulary) -> str:
    """Text of a cell, its lines joined from top to bottom."""
    return vocabulary.join_all(line.text.strip() for row in visual_rows(lines) for line in row)
