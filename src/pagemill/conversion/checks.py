"""Checks of what a generating engine wrote: against the ink on the page, and against the scripts it knows."""

from __future__ import annotations

import re
import unicodedata

from pagemill.conversion.ink import Ink
from pagemill.domain import PageFlag

_MARKUP = re.compile(r"<[^>]+>|!\[[^\]]*\]\([^)]*\)|[#*_|`$\\-]")
_KNOWN_SCRIPTS = ("LATIN", "CJK", "HIRAGANA", "KATAKANA", "GREEK", "FULLWIDTH", "HALFWIDTH", "MATHEMATICAL", "MODIFIER")
"""Scripts of the eleven languages, with Greek and the letters of formulas."""
_UNKNOWN_SHARE = 0.3
_MIN_LETTERS = 20


def check_text(markdown: str, ink: Ink) -> tuple[PageFlag, ...]:
    """Flags for a text that cannot be what is printed; for people to look at, never a reason to drop it."""
    text = _MARKUP.sub("", markdown)
    flags = []
    if ink.outweighed_by(sum(not character.isspace() for character in text)):
        flags.append(PageFlag.TEXT_EXCEEDS_INK)
    if _is_of_unknown_script(text):
        flags.append(PageFlag.UNKNOWN_SCRIPT)
    return tuple(flags)


def _is_of_unknown_script(text: str) -> bool:
    letters = [character for character in text if character.isalpha()]
    if len(letters) < _MIN_LETTERS:
        return False
    unknown = sum(
        not character.isascii() and not unicodedata.name(character, "").startswith(_KNOWN_SCRIPTS)
        for character in letters
    )
    return unknown / len(letters) > _UNKNOWN_SHARE
