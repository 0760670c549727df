"""Telling the language of a page from some of its text, as far as routes need it."""

from __future__ import annotations

import re
from collections import Counter

_MIN_LETTERS = 20
_MIN_HITS = 3
_KANA = re.compile(r"[\u3040-\u30ff]")
_HAN = re.compile(r"[\u3400-\u9fff]")
_WORD = re.compile(r"[^\W\d_]+")
_CJK_SHARE = 0.3
_KANA_SHARE = 0.05
"""Japanese prose has a third or more of kana; tables and names have less, Chinese has none."""

# The commonest words of each language that few of the others have.
_WORDS = {
    "en": "the of and to in is that for with was are this from by which not have were",
    "fr": "le la les des et du une est dans pour que qui sur par plus avec ce sont aux été",
    "de": "der die und das den von ist mit des auf für im nicht ein eine dem sich auch werden wird",
    "es": "el los las del y una por con para como más su se fue este pero entre sobre desde",
    "it": "il di che della per una con sono gli nel del alla dei non le anche come questo più",
    "nl": "de het een van en dat niet op voor zijn met aan door werd ook bij worden naar deze",
    "pt": "o os da do dos das uma não com para em ao na no pela mais são foi como seu",
    "sv": "och att det som en av är för på med den till inte har de om ett från eller",
    "da": "og at det som en af er for på med den til ikke har de om et fra eller blev",
}
_LANGUAGES_BY_WORD: dict[str, list[str]] = {}
for _language, _words in _WORDS.items():
    for _word in _words.split():
        _LANGUAGES_BY_WORD.setdefault(_word, []).append(_language)


def guess_language(text: str) -> str | None:
    """Code of the text's language (one of the eleven), or None where there is too little to tell."""
    words = _WORD.findall(text.lower())
    letters = sum(len(word) for word in words)
    if letters < _MIN_LETTERS:
        return None
    kana, han = len(_KANA.findall(text)), len(_HAN.findall(text))
    if kana + han > _CJK_SHARE * letters:
        return "ja" if kana > _KANA_SHARE * (kana + han) else "zh"
    # A word that several languages share counts a little for each.
    scores: Counter[str] = Counter()
    for word in words:
        for language in (languages := _LANGUAGES_BY_WORD.get(word, [])):
            scores[language] += 12 // len(languages)
    best = scores.most_common(2)
    if not best or best[0][1] < 12 * _MIN_HITS or (len(best) > 1 and best[0][1] == best[1][1]):
        return None
    return best[0][0]
