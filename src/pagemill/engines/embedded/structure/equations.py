"""Displayed equations, which are cropped because no recogniser of ours reads them."""

from __future__ import annotations

import re

from pagemill.domain import BlockKind
from pagemill.engines.embedded.structure.groups import Group
from pagemill.engines.embedded.structure.metrics import visual_rows
from pagemill.engines.embedded.structure.scripts import unspaced_share

_MIN_SCORE = 0.6
_MATH_SIGN = re.compile(r"[=+<>≤≥≠≈±×÷∑∏∫√∞∂∇∈∀∃→↦⇒⇔∝^_|{}/−\u0370-\u03ff\u2200-\u22ff\U0001d400-\U0001d7ff]")
_WORD = re.compile(r"[^\W\d_]{4,}")
# Names of functions that formulas are full of, not words of a sentence.
_FUNCTIONS = frozenset({"sinh", "cosh", "tanh", "argmax", "argmin", "softmax", "trace", "rank", "where"})


def is_equation(group: Group) -> bool:
    """Whether a group that the layout model calls an equation looks like one: signs, and hardly any words."""
    if group.kind is not BlockKind.EQUATION or group.score < _MIN_SCORE or len(visual_rows(group.lines)) > 8:
        return False
    text = group.text
    words = [word for word in _WORD.findall(text) if word.lower() not in _FUNCTIONS]
    return bool(_MATH_SIGN.search(text)) and len(words) <= 2 and unspaced_share(text) < 0.3
