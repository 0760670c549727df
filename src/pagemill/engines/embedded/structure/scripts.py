"""What must be known of writing systems to join lines and to compare texts."""

from __future__ import annotations

import re
import unicodedata

# Scripts written without spaces between words; a line break inside them stands for nothing.
_UNSPACED_RANGES = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x2E80, 0x312F),  # CJK radicals and punctuation, kana, bopomofo
    (0x3190, 0x9FFF),  # kanbun to unified ideographs
    (0xF900, 0xFAFF),  # compatibility ideographs
    (0xFE30, 0xFE4F),  # vertical forms
    (0xFF00, 0xFFEF),  # fullwidth and halfwidth forms
    (0x20000, 0x323AF),  # ideographs beyond the basic plane
)

_ADDRESS = re.compile(r"(?:www\.|https?://|\S+@\S+\.\S)")


def is_unspaced(char: str) -> bool:
    """Whether `char` belongs to a script without spaces between words (Chinese, Japanese, Thai, ...)."""
    code = ord(char)
    return any(low <= code <= high for low, high in _UNSPACED_RANGES)


def is_cjk(char: str) -> bool:
    """Whether `char` is an ideograph, kana, or their punctuation."""
    return is_unspaced(char) and ord(char) >= 0x2E80


def unspaced_share(text: str) -> float:
    """Share (0 to 1) of the visible characters of `text` that belong to scripts without spaces."""
    visible = [char for char in text if not char.isspace()]
    return sum(map(is_unspaced, visible)) / len(visible) if visible else 0.0


def is_right_to_left(text: str) -> bool:
    """Whether most letters of `text` run from right to left (Arabic, Hebrew, ...)."""
    balance = 0
    for char in text:
        kind = unicodedata.bidirectional(char)
        balance += 1 if kind in {"R", "AL"} else -1 if kind == "L" else 0
    return balance > 0


def text_length(text: str) -> float:
    """Length of `text` in Latin letter widths: ideographs count twice, as they are drawn twice as wide."""
    return float(sum(2 if is_cjk(char) else 1 for char in text))


def is_address(text: str) -> bool:
    """Whether `text` begins with an address of mail or the web."""
    return bool(_ADDRESS.match(text))


def starts_like_continuation(text: str) -> bool:
    """Whether `text` begins as only the middle of a sentence does: with a lower-case letter, but no address."""
    return text[:1].islower() and not is_address(text)


def ends_sentence(text: str) -> bool:
    """Whether `text` ends with the punctuation that closes a sentence, perhaps inside quotes."""
    stripped = text.rstrip("\"'”’»)]）」』 ")
    return stripped.endswith((".", "!", "?", ":", "…", "。", "！", "？", "：", "．"))
