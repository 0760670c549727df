"""List items: their markers, and lists as Markdown."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from pagemill.engines.embedded.structure.markdown import escape_block

# U+F0B7 and its like are bullets of the Symbol and Wingdings fonts, mapped to the private use area.
_BULLETS = "•●▪■◦∙○◆◇▸►‣▶❖✓✔☐☑□➢➤➔⁃⚫・·\uf0b7\uf0a7\uf0d8\uf0fc\uf076\uf02d\uf0a8"
_BULLET = re.compile(rf"^([{_BULLETS}])\s*(?=\S|$)|^([-–—*+o])\s+(?=\S)")
_ORDERED = re.compile(
    r"^(?:"
    r"(?P<digit>\(?[0-9０-９]{1,3}(?:[.)．）](?![0-9０-９])|:(?=\s)))|"
    r"(?P<wide>（[0-9０-９]{1,3}）)|"
    r"(?P<roman>\(?[ivxIVX]{1,5}[.)])(?=\s)|"
    r"(?P<letter>\(?[a-zA-Z][.)])(?=\s)|"
    r"(?P<circled>[①-⑳⑴-⒇])|"
    r"(?P<ideograph>（[一二三四五六七八九十]{1,3}）|\([一二三四五六七八九十]{1,3}\)|[一二三四五六七八九十]{1,3}、)"
    r")\s*"
)
_BARE = re.compile(rf"^(?:[{_BULLETS}\-–—*]|\(?(?:[0-9]{{1,2}}|[a-zA-Z]|[ivx]{{1,4}})[.)]|[①-⑳])$")
_PLAIN_NUMBER = re.compile(r"^(\d{1,9})([.)])$")
_ROMAN = {"i": 1, "v": 5, "x": 10}
_DIGITS = str.maketrans("０１２３４５６７８９", "0123456789")
# Markers whose left edges differ by less than this, in em, are on one level.
_SAME_INDENT = 0.7
_IDEOGRAPHS = "一二三四五六七八九十"


@dataclass(frozen=True, slots=True)
class Marker:
    """The mark at the start of a list item.

    Attributes:
        kind: `bullet`, or the kind of numbering.
        text: The mark as it stands on the page.
        value: Its place in the numbering; 0 for bullets.
        rest: What follows it.
    """

    kind: str
    text: str
    value: int
    rest: str


@dataclass(frozen=True, slots=True)
class Item:
    """A list item: its marker, its text, and the left edge of the marker in pixels."""

    marker: Marker
    text: str
    left: float


@dataclass(frozen=True, slots=True)
class _Level:
    """An open level of a list: left edge of its markers in pixels, columns of its markers and of its text."""

    left: float
    indent: int
    content: int


def parse_marker(text: str) -> Marker | None:
    """Reads the marker at the start of a line; None where there is none.

    A single letter or roman numeral may just be an initial: callers want a second item that continues the count.
    """
    stripped = text.strip()
    bullet = _BULLET.match(stripped)
    if bullet:
        mark = bullet.group(1) or bullet.group(2)
        return Marker(f"bullet {mark}", mark, 0, stripped[bullet.end() :].strip())
    match = _ORDERED.match(stripped)
    if match is None or match.lastgroup is None:
        return None
    mark = match.group(match.lastgroup)
    return Marker(match.lastgroup, mark, _value(match.lastgroup, mark), stripped[match.end() :].strip())


def is_bare_marker(text: str) -> bool:
    """Whether `text` is nothing but a list marker."""
    return bool(_BARE.match(text.strip()))


def is_sequence(markers: Sequence[Marker]) -> bool:
    """Whether numbered markers count upwards one by one somewhere: evidence that they are a list."""
    return any(b.kind == a.kind and b.value == a.value + 1 for a, b in itertools.pairwise(markers))


def render_list(items: Sequence[Item], em: float) -> str:
    """Markdown of a list: `- ` for bullets, the page's own numbers for plain numbering, nested by indentation.

    Numbering that Markdown has no syntax for, such as `(a)` or `①`, is kept as text behind a bullet.
    """
    lines = []
    levels: list[_Level] = []
    for item in items:
        mark = _mark(item)
        while levels and item.left < levels[-1].left - _SAME_INDENT * em:
            levels.pop()
        if levels and item.left <= levels[-1].left + _SAME_INDENT * em:
            indent = levels.pop().indent
        else:
            indent = levels[-1].content if levels else 0
        levels.append(_Level(item.left, indent, indent + len(mark) + 1))
        lines.append(f"{' ' * indent}{mark} {_content(item)}".rstrip())
    return "\n".join(lines)


def _mark(item: Item) -> str:
    match = _PLAIN_NUMBER.match(item.marker.text)
    return item.marker.text if match else "-"


def _content(item: Item) -> str:
    text = escape_block(item.text).replace("\n", " ")
    if item.marker.kind.startswith("bullet") or _PLAIN_NUMBER.match(item.marker.text):
        return text
    joint = "" if item.marker.text.endswith(("、", "）")) else " "
    return f"{item.marker.text}{joint}{text}"


def _value(kind: str, mark: str) -> int:
    core = mark.strip("().:．）（、 ").translate(_DIGITS)
    if kind in {"digit", "wide"}:
        return int(core)
    if kind == "letter":
        return ord(core.lower()) - ord("a") + 1
    if kind == "circled":
        return (ord(mark) - ord("①")) % 20 + 1
    if kind == "roman":
        values = [_ROMAN[char] for char in core.lower()]
        return sum(-v if any(w > v for w in values[k + 1 :]) else v for k, v in enumerate(values))
    return sum(_IDEOGRAPHS.index(char) + 1 for char in core) if core else 0
