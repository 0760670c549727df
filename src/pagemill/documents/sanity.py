"""Is the text that a PDF page carries the text that one sees? Pure functions over text, font by font.

A font whose characters are unmapped, control or private-use codes, or whose text is no language, is insane. A page is
garbled when such fonts set much of its text; otherwise only their spans are marked. The rule is to doubt: a sane
layer is taken in place of OCR, so a wrong "sane" costs text, a wrong "garbled" only time.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from pagemill.documents.letter_statistics import COMMON_HAN, bigram_score
from pagemill.domain import TextVerdict

_NEXT_TO_NONE = 1
_GARBLED_PAGE = 0.25
_HIDDEN_PAGE = 0.5
_BROKEN_FONT = 0.1
_FEW_CHARACTERS = 12
_MIN_SOUP, _SYMBOL_SOUP = 40, 0.5
_FEW_BIGRAMS, _FEW_BIGRAM_SCORE = 30, 3.8
_MANY_BIGRAMS, _MANY_BIGRAM_SCORE = 100, 5.0
"""Scores below which letters make no language; product codes and names are few and score low by chance."""
_MIN_HAN, _MIN_COMMON_HAN, _MAX_RARE_HAN = 60, 0.08, 0.2
_MAX_MIXED_WORDS = 0.3
_MAX_STRAY_LETTERS = 0.2
_MOJIBAKE = re.compile("[\u00c2\u00c3\u00c4\u00c5\u00d0\u00d1][\u0080-\u00bf\u0152\u0153\u2013-\u2122]|\u00e2\u20ac.")
_MIN_MOJIBAKE, _MAX_MOJIBAKE = 3, 0.01
_REPEATED = re.compile(r"(\W)\1{2,}")
_WORD = re.compile(r"[^\W\d_]+")
_COMMON_SIGNS = ".,-–—_…·•"
_SIGN_CATEGORIES = ("Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sc", "Sk", "So")  # mathematical signs are formulas
_SCRIPTS = (
    "LATIN",
    "GREEK",
    "CYRILLIC",
    "ARMENIAN",
    "HEBREW",
    "ARABIC",
    "DEVANAGARI",
    "BENGALI",
    "GUJARATI",
    "GURMUKHI",
    "TAMIL",
    "TELUGU",
    "KANNADA",
    "MALAYALAM",
    "SINHALA",
    "THAI",
    "LAO",
    "KHMER",
    "MYANMAR",
    "GEORGIAN",
    "ETHIOPIC",
    "HANGUL",
    "HIRAGANA",
    "KATAKANA",
    "KATAKANA-HIRAGANA",
    "CJK",
    "BOPOMOFO",
    "FULLWIDTH",
    "HALFWIDTH",
    "MATHEMATICAL",
    "MODIFIER",
    "FEMININE",
    "MASCULINE",
    "MICRO",
    "DOUBLE-STRUCK",
    "SCRIPT",
)


@dataclass(slots=True)
class FontSample:
    """All that a page sets in one font.

    Attributes:
        font: Name of the font.
        visible: Whether it is drawn at all.
        texts: Its spans, normalised, in content order.
        unmapped: How many characters have no mapping to Unicode.
        controls: How many characters were control codes, before they were dropped.
    """

    font: str
    visible: bool
    texts: list[str] = field(default_factory=list)
    unmapped: int = 0
    controls: int = 0

    @property
    def size(self) -> int:
        """Number of characters without spaces, control codes included."""
        return sum(len(text) - text.count(" ") for text in self.texts) + self.controls


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a page's layer is worth.

    Attributes:
        verdict: Of the page.
        reasons: Why it is not sane, and why fonts are not.
        insane_fonts: Fonts whose spans should not be used although the page is sane.
        visible_only: Whether invisible spans are strays that should be left out.
    """

    verdict: TextVerdict
    reasons: tuple[str, ...] = ()
    insane_fonts: frozenset[str] = frozenset()
    visible_only: bool = False


def judge(samples: Iterable[FontSample]) -> Judgement:
    """Judges the text of a page, font by font and as a whole."""
    filled = [sample for sample in samples if sample.size]
    total = sum(sample.size for sample in filled)
    if total < _NEXT_TO_NONE:
        return Judgement(TextVerdict.ABSENT, ("no text",))
    hidden = sum(sample.size for sample in filled if not sample.visible)
    if hidden > _HIDDEN_PAGE * total:
        return Judgement(TextVerdict.HIDDEN, (f"{hidden} of {total} characters are invisible",))
    visible = [sample for sample in filled if sample.visible]
    faults = {sample.font: fault for sample in visible if (fault := fault_of(sample))}
    insane = sum(sample.size for sample in visible if sample.font in faults)
    reasons = tuple(f"{font or 'unnamed font'}: {fault}" for font, fault in faults.items())
    verdict = TextVerdict.SANE
    if insane > _GARBLED_PAGE * (total - hidden):
        verdict = TextVerdict.GARBLED
    elif fault := fault_of_language(" ".join(text for s in visible if s.font not in faults for text in s.texts)):
        verdict, reasons = TextVerdict.GARBLED, (*reasons, f"page: {fault}")
    return Judgement(verdict, reasons, frozenset(faults), visible_only=hidden > 0)


def fault_of(sample: FontSample) -> str | None:
    """What is wrong with a font's text; None for nothing."""
    text = "".join(sample.texts).replace(" ", "")
    broken = sample.unmapped + sample.controls + sum(map(_is_broken, text))
    if broken > _BROKEN_FONT * sample.size:
        return f"{broken} of {sample.size} characters have no usable mapping to Unicode"
    return fault_of_language(" ".join(sample.texts))


def fault_of_language(text: str) -> str | None:
    """Why a text can be no language; None where it can be one, or is too short to tell."""
    collapsed = _REPEATED.sub(r"\1", text.replace(" ", ""))
    if len(collapsed) < _FEW_CHARACTERS:
        return None
    return (
        _symbol_soup(collapsed)
        or _mojibake(collapsed)
        or _improbable_latin(text)
        or _improbable_han(collapsed)
        or _improbable_scripts(text)
    )


def _is_broken(character: str) -> bool:
    return character == "\ufffd" or unicodedata.category(character) in ("Co", "Cn", "Cc", "Cs")


def _symbol_soup(text: str) -> str | None:
    if len(text) < _MIN_SOUP:
        return None
    symbols = sum(
        count
        for character, count in Counter(text).items()
        if character not in _COMMON_SIGNS and unicodedata.category(character) in _SIGN_CATEGORIES
    )
    if symbols > _SYMBOL_SOUP * len(text):
        return f"{symbols} of {len(text)} characters are symbols"
    return None


def _mojibake(text: str) -> str | None:
    count = len(_MOJIBAKE.findall(text))
    if count >= _MIN_MOJIBAKE and count > _MAX_MOJIBAKE * len(text):
        return f"{count} character pairs that look like UTF-8 read as Latin-1"
    return None


def _improbable_latin(text: str) -> str | None:
    score, count = bigram_score(_WORD.findall(text))
    if count < _FEW_BIGRAMS:
        return None
    certainty = min(1.0, (count - _FEW_BIGRAMS) / (_MANY_BIGRAMS - _FEW_BIGRAMS))
    if score < _FEW_BIGRAM_SCORE + certainty * (_MANY_BIGRAM_SCORE - _FEW_BIGRAM_SCORE):
        return f"letters follow each other as in no language (score {score:.1f} of 9 over {count} pairs)"
    return None


def _improbable_han(text: str) -> str | None:
    han = [character for character in text if "\u3400" <= character <= "\u9fff" or character >= "\U00020000"]
    if len(han) < _MIN_HAN:
        return None
    rare = sum(not "\u4e00" <= character <= "\u9fff" for character in han)
    if rare > _MAX_RARE_HAN * len(han):
        return f"{rare} of {len(han)} Han characters are rare ones"
    kana = sum("\u3040" <= character <= "\u30ff" for character in text)
    common = sum(character in COMMON_HAN for character in han)
    if kana < 0.1 * len(han) and common < _MIN_COMMON_HAN * len(han):
        return f"only {common} of {len(han)} Han characters are common ones"
    return None


def _improbable_scripts(text: str) -> str | None:
    words = [scripts for word in _WORD.findall(text) if len(word) >= 3 and (scripts := _scripts(word))]
    letters = Counter(script for scripts in words for script in scripts.elements())
    stray = sum(count for script, count in letters.items() if script not in _SCRIPTS)
    total = sum(letters.values())
    if stray > _MAX_STRAY_LETTERS * max(total, _FEW_CHARACTERS):
        return f"{stray} of {total} letters are from rarely printed scripts"
    alphabets = {"LATIN", "GREEK", "CYRILLIC", "ARABIC", "HEBREW", "ARMENIAN", "GEORGIAN"}
    mixed = sum(len(alphabets & scripts.keys()) > 1 for scripts in words)
    if len(words) >= _FEW_CHARACTERS and mixed > _MAX_MIXED_WORDS * len(words):
        return f"{mixed} of {len(words)} words mix alphabets"
    return None


def _scripts(word: str) -> Counter[str]:
    if word.isascii():
        return Counter({"LATIN": len(word)})
    return Counter(unicodedata.name(character, "UNKNOWN").split(" ", 1)[0] for character in word)
