"""Text measures: Markdown to plain text, normalisation, character errors, words found and words invented."""

from __future__ import annotations

import html
import re
import unicodedata
from collections import Counter
from dataclasses import dataclass

from pagemill.bench.quality.similarity import edit_distance

UNSPACED_LANGUAGES = frozenset({"zh", "ja"})
"""Languages written without spaces between words: white space is no part of their text."""

# Typographic variants that a reader would call the same character.
_PUNCTUATION = str.maketrans(
    {
        **dict.fromkeys("“”„«»″「」《》⟪⟫", '"'),
        **dict.fromkeys("‘’‚′", "'"),
        **dict.fromkeys("–—‐‑−", "-"),
        **dict.fromkeys("，、", ","),
        **dict.fromkeys("•●·▪◦■∙", " "),
        "。": ".",
        "：": ":",
        "（": "(",
        "）": ")",
        "？": "?",
        "！": "!",
        "；": ";",
        "％": "%",
        "\u00ad": "",
        "\u200b": "",
    }
)
_TAG_NAMES = "table|tr|td|th|thead|tbody|caption|html|body|br|sup|sub|b|i|u|em|strong|code|pre|div|p|span|img|ul|ol|li"
_TAG = re.compile(rf"</?(?:{_TAG_NAMES})(?:\s+[a-zA-Z-]+=(?:\"[^\"]*\"|'[^']*'|[^\s>]+))*\s*/?>")
_ESCAPED = re.compile(r"\\([\\`*_{}\[\]()#+\-.!$&|<>~^\"':;,/?@=%])")
_ESCAPE_BASE = 0xE000
# A hyphen at a line's end before a lower-case letter; PDFium writes U+0002 or U+FFFE for a discretionary one.
_LINE_HYPHEN = re.compile(r"(?<=\w)(?:[-\u00ad\u0002\ufffe]\s*\n\s*(?=[^\W\d_A-Z])|[\u0002\ufffe]\s*)")


def plain_text(markdown: str) -> str:
    """The text that a reader of the rendered Markdown would see, blocks on lines of their own."""
    text = re.sub(r"<!--.*?-->", "", markdown, flags=re.DOTALL)
    text = _ESCAPED.sub(lambda match: chr(_ESCAPE_BASE + ord(match.group(1))), text)
    text = re.sub(r"^\s*(?:```|~~~).*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text)
    text = re.sub(r"(?<!!)\[([^\]\n]+)\]\([^)\s]+\)", r"\1", text)
    text = re.sub(r"</(?:td|th|li|p|div)>|<br\s*/?>", " ", text)
    text = _TAG.sub("", text)
    text = re.sub(r"^\s*\|?[\s:|-]*-{2,}[\s:|-]*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"^\s*(?:#{1,6}\s+|>\s?|[-*+]\s+)", "", text, flags=re.MULTILINE)
    text = text.replace("|", " ").replace("$$", " ").replace("`", "")
    text = re.sub(r"(\*{1,3})(?=\S)(.+?)(?<=\S)\1", r"\2", text)
    text = re.sub(r"(?<!\w)(_{1,2})(?=\S)(.+?)(?<=\S)\1(?!\w)", r"\2", text)
    text = re.sub(r"[\ue000-\ue07f]", lambda match: chr(ord(match.group()) - _ESCAPE_BASE), text)
    return html.unescape(text)


def normalise(text: str, language: str) -> str:
    """Text ready to compare: NFKC, one kind of quotes and dashes, no bullets, no line breaks or hyphenation.

    Args:
        text: Plain text.
        language: ISO 639-1 code; Chinese and Japanese lose all white space.
    """
    text = _LINE_HYPHEN.sub("", text)
    text = unicodedata.normalize("NFKC", text.translate(_PUNCTUATION)).translate(_PUNCTUATION)
    text = re.sub(r"\s+", "" if language in UNSPACED_LANGUAGES else " ", text).strip()
    return unicodedata.normalize("NFC", text)


def squeezed(text: str, language: str) -> str:
    """Normalised text without any white space, for comparing short pieces."""
    return re.sub(r"\s+", "", normalise(text, language))


def character_error_rate(output: str, truth: str) -> float:
    """Levenshtein distance over the length of `truth`; may exceed 1. Both are normalised text.

    An empty truth gives 0 for an empty output and 1 for any other.
    """
    if not truth:
        return float(bool(output))
    return edit_distance(output, truth) / len(truth)


@dataclass(frozen=True, slots=True)
class WordOverlap:
    """Words in common, whatever their order.

    Attributes:
        recall: Share of the truth's words that are in the output (0 to 1): 1 - recall was lost.
        precision: Share of the output's words that are in the truth: 1 - precision was misread or invented.
    """

    recall: float
    precision: float


def word_overlap(output: str, truth: str, language: str) -> WordOverlap:
    """Compares two normalised texts as bags of words; pairs of characters where words have no spaces."""
    found, expected = _words(output, language), _words(truth, language)
    common = (found & expected).total()
    return WordOverlap(common / expected.total() if expected else 1.0, common / found.total() if found else 1.0)


def _words(text: str, language: str) -> Counter[str]:
    if language in UNSPACED_LANGUAGES:
        return Counter(text[index : index + 2] for index in range(len(text) - 1))
    return Counter(re.findall(r"\w+(?:[.,:/'-]\w+)*", text.casefold()))
