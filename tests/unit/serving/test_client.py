from __future__ import annotations

import io

import pytest
from PIL import Image

from pagemill.serving.client import CANARY_LINES, draw_page, judge_canary


def test_the_canary_page_is_an_image_with_ink() -> None:
    image = Image.open(io.BytesIO(draw_page(CANARY_LINES)))
    assert image.size == (448, 280)
    assert sum(image.convert("L").histogram()[:128]) > 1000


@pytest.mark.parametrize(
    ("text", "reason", "ok", "detail"),
    [
        ("# Canary page\n\nThe quick brown fox", "stop", True, ""),
        ("# Canary page", "length", False, "did not end"),
        ("the same line again\n" * 60, "stop", False, "repeats itself"),
        (" \n", "stop", False, "empty"),
        ("# Canary", "abort", False, "abort"),
    ],
)
def test_only_an_answer_that_ends_by_itself_and_does_not_loop_is_good(
    text: str, reason: str, ok: bool, detail: str
) -> None:
    verdict = judge_canary(text, reason)
    assert verdict.ok is ok
    assert detail in verdict.detail


def test_other_text_than_the_page_holds_is_noticed() -> None:
    assert judge_canary("# Canary page", "stop").reads
    assert not judge_canary("lorem ipsum", "stop").reads
