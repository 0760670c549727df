"""How letters follow each other in languages written in Latin script, and which Han characters are common.

The bigram table was counted over Danish, Dutch, English, French, German, Italian, Norwegian, Portuguese, Spanish and
Swedish prose, each language weighing the same. Entry (a, b) is 9 + 0.95 * (log2 P(ab) + 5.5), cut to 0..9. Real text
of these languages scores 6 to 7.2 on average, the same text with letters exchanged or shifted 2.5 to 4.5.
"""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Iterable

_BIGRAMS = (
    "56765563636879543888650034",
    "65008001600700400431310010",
    "70517007704500740416500000",
    "70148200730402730463640000",
    "55677565745889353988564443",
    "50005502700200700514500020",
    "60028044631336500554420020",
    "72007000501413500414442010",
    "75768571055768854788360003",
    "40045000003303500020300001",
    "60007012334403500456500021",
    "73248132823734731055620030",
    "73018202603251760133500340",
    "72678584714515702088541035",
    "25575552535778561875663121",
    "70027202500611740844600000",
    "00000000000000000000700000",
    "85569254726465830567652033",
    "83538336746555751078523051",
    "83409245841433710857643043",
    "55557442503567340766243323",
    "70008011600000600010320000",
    "40025001500003500100304000",
    "10200000300000000001000000",
    "20213020000005330252000000",
    "50005000500000300020303002",
)
_SPELLINGS = str.maketrans(
    {"ø": "o", "æ": "ae", "ß": "ss", "œ": "oe", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i"}
)
_A = ord("a")

COMMON_HAN = frozenset(
    "的一是不了人我在有他这为之大来以个中上们到说国和地也子时道出而要于就下得可你年生自会那后能对着事其里所去行过家十用发天"
    "如然作方成者多日都三小军二无同么经法当起与好看学进种将还分此心前面又定见只主没公从知使成问很最重新间电动本理现力高长业"
    "代部机关等第工四五六七八九百万千元月号市区网络系统数据信息平台安全服务管理技术开发企业产品项目计划研究报告文件合同交易"
    "這為來個們國說時會後對過學發經當與點還進將開無問長業機關電動現體實應並從樣點東種號區網絡統數據資訊務臺灣"
    "東京日本会社年月大学事業者法人国民政府関係場合必要時間利用情報制度文部科見出田山川村市県区町丁目番号金額円税込消費"
)
"""Characters frequent in Chinese (simplified and traditional) and Japanese prose and business documents."""


def bigram_score(words: Iterable[str]) -> tuple[float, int]:
    """How likely the letter pairs of words in Latin script are.

    Args:
        words: Words; each counts once, those shorter than three letters or in other scripts for nothing.

    Returns:
        The mean table entry (0 to 9) over all pairs, and their number.
    """
    total = count = 0
    for letters in {_fold(word) for word in words}:
        if len(letters) < 3 or not letters.isascii():
            continue
        for first, second in itertools.pairwise(letters):
            total += int(_BIGRAMS[ord(first) - _A][ord(second) - _A])
            count += 1
    return (total / count if count else 0.0), count


def _fold(word: str) -> str:
    lower = word.lower()
    if lower.isascii():
        return lower
    decomposed = unicodedata.normalize("NFD", lower.translate(_SPELLINGS))
    return "".join(character for character in decomposed if not unicodedata.combining(character))
