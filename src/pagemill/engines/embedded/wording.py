"""Small repairs of what the recogniser says: one model for all scripts mixes up their punctuation."""

from __future__ import annotations

import re
import unicodedata

_CJK = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_HAS_CJK = re.compile(f"[{_CJK}]")
_TO_ASCII = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x3000: 0x20, 0x3002: 0x2E}
_TO_WIDE = {",": "，", ";": "；", ":": "：", "!": "！", "?": "？"}
_NARROW_BETWEEN_CJK = re.compile(f"(?<=[{_CJK}])[,;:!?](?=[{_CJK}]|$)")
_WIDE_BESIDE_ASCII = re.compile(r"(?<=[0-9A-Za-z])[％．／＋－](?=[^\uff01-\uff5e]|$)")
_WIDE_ALPHANUMERIC = re.compile(r"[０-９Ａ-Ｚａ-ｚ]+")
_MANY_SPACES = re.compile(r"\s+")


def repaired(text: str) -> str:
    """Characters in Unicode NFC, spaces single, and punctuation as wide as its surroundings want it.

    Lines without Chinese or Japanese get ASCII punctuation; between Chinese or Japanese characters, ASCII
    punctuation becomes wide, and signs that belong to a number or a Latin word become narrow.
    """
    text = _MANY_SPACES.sub(" ", unicodedata.normalize("NFC", text)).strip()
    if not _HAS_CJK.search(text):
        return text.translate(_TO_ASCII)
    text = _WIDE_ALPHANUMERIC.sub(lambda match: match[0].translate(_TO_ASCII), text)
    text = _NARROW_BETWEEN_CJK.sub(lambda match: _TO_WIDE[match[0]], text)
    return _WIDE_BESIDE_ASCII.sub(lambda match: match[0].translate(_TO_ASCII), text)
