"""How many tokens an image costs, computed before it is sent.

LightOnOCR's vision tower (Pixtral) cuts an image into patches of 14 x 14 pixels and merges 2 x 2 of them, so one token
stands for 28 x 28 pixels, counted up at the edges.
"""

from __future__ import annotations

PIXELS_PER_TOKEN = 28


def image_tokens(width: int, height: int) -> int:
    """Prompt tokens of an image of `width` x `height` pixels; A4 at 1089 x 1540 gives 2,145."""
    return -(-width // PIXELS_PER_TOKEN) * -(-height // PIXELS_PER_TOKEN)
