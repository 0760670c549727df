from __future__ import annotations

import pytest

from pagemill.engines.embedded.wording import repaired


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Costs（EUR）：１２，５", "Costs(EUR):12,5"),
        ("End of line。", "End of line."),
        ("魚の数が37％増え", "魚の数が37%増え"),
        ("你好,世界!", "你好，世界！"),
        ("预算为 3,482,000 元", "预算为 3,482,000 元"),
        ("水温 18.2 度,12:30 开始", "水温 18.2 度,12:30 开始"),
        ("第２章", "第2章"),
        ("e\u0301tat   de  choses ", "\u00e9tat de choses"),
        ("www.example.org/river?a=1", "www.example.org/river?a=1"),
        ("これは、文章です。", "これは、文章です。"),
        ("", ""),
    ],
)
def test_punctuation_fits_its_script(text: str, expected: str) -> None:
    assert repaired(text) == expected
