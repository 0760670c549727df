"""Markdown syntax: escaping, and the page's text from its blocks.

Escaping is kept to what would otherwise be read as syntax:

- `*` and `_` only where they could open emphasis and something could close it;
- `<` only where a tag or an autolink could start; `&` only before what reads as an entity;
- `[` only before what reads as a link, a footnote or a link definition;
- `#`, `>`, `-`, `+`, `1.` only at the start of a block;
- `|` only in table cells;
- `$` only in pairs that readers of TeX math would take for a formula: an opening `$` before a visible character,
  a closing `$` after one and not before a digit (the rule of pandoc and GitHub). Money such as `$20,000` or
  `$5 and $10` therefore stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pagemill.domain import Block, BlockKind

FURNITURE = frozenset({BlockKind.HEADER, BlockKind.FOOTER})

_BACKSLASH = re.compile(r"\\(?=[!-/:-@\[-`{-~])")
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_ENTITY = re.compile(r"&(?=#?[A-Za-z0-9]{2,31};)")
_LINK = re.compile(r"\[(?=[^\]\[]*\]\()|\[(?=\^)|^\[(?=[^\]]+\]:)")
_MATH = re.compile(r"\$(?=\S)([^$\n]*?)(?<=\S)\$(?!\d)")
_DISPLAY_MATH = re.compile(r"\$\$")
_STAR_OPENER = re.compile(r"(?<!\*)\*+(?=[^\s*])")
_UNDERSCORE_OPENER = re.compile(r"(?<![\w_])_+(?=[^\s_])")
_BLOCK_START = re.compile(r"^(?:(#{1,6})(?=\s|$)|(>)|([-+*])(?=\s|$)|(\d{1,9})([.)])(?=\s|$)|(`{3}|~{3}))")
_RULE_OR_UNDERLINE = re.compile(r"^(?:={2,}|(?:[-*_]\s*){3,})$")


def escape_inline(text: str) -> str:
    """Escapes what would be read as inline syntax in `text`."""
    text = _BACKSLASH.sub(r"\\\\", text)
    text = _TAG.sub(r"\\<", text)
    text = _ENTITY.sub(r"\\&", text)
    text = _LINK.sub(r"\\[", text)
    if text.count("`") > 1:
        text = text.replace("`", r"\`")
    text = text.replace("~~", r"\~\~")
    text = _escape_emphasis(text, "*", _STAR_OPENER)
    text = _escape_emphasis(text, "_", _UNDERSCORE_OPENER)
    text = _DISPLAY_MATH.sub(r"\\$\\$", text) if text.count("$$") > 1 else text
    return _MATH.sub(r"\\$\1\\$", text) if r"\$\$" not in text else text


def escape_block(text: str) -> str:
    """Escapes a paragraph or a list item: inline syntax, and what would make a line another kind of block."""
    return "\n".join(_escape_line_start(escape_inline(line)) for line in text.split("\n"))


def escape_heading(text: str) -> str:
    """Escapes the text of a heading, where a closing run of `#` would vanish."""
    return re.sub(r"(\s)(#+)$", r"\1\\\2", escape_inline(text))


def escape_cell(text: str) -> str:
    """Escapes the text of a cell of a pipe table."""
    return escape_inline(text).replace("|", r"\|").replace("\n", "<br>")


def render_markdown(blocks: Sequence[Block]) -> str:
    """The page's Markdown: all blocks but headers and footers.

    Blocks are separated by a blank line; lists that follow each other directly are one list. Ends with exactly one
    newline, unless there is nothing at all.
    """
    body = [block for block in blocks if block.kind not in FURNITURE and block.markdown.strip()]
    parts: list[str] = []
    for position, block in enumerate(body):
        if position:
            tight = block.kind is BlockKind.LIST and body[position - 1].kind is BlockKind.LIST
            parts.append("\n" if tight else "\n\n")
        parts.append(block.markdown.rstrip())
    return "".join(parts) + "\n" if parts else ""


def _escape_emphasis(text: str, mark: str, opener: re.Pattern[str]) -> str:
    if len(re.findall(re.escape(mark) + "+", text)) < 2:
        return text
    return opener.sub(lambda match: "".join("\\" + char for char in match.group()), text)


def _escape_line_start(line: str) -> str:
    line = line.lstrip(" \t")
    if _RULE_OR_UNDERLINE.match(line):
        return "\\" + line
    match = _BLOCK_START.match(line)
    if match is None:
        return line
    if match.group(4):
        return f"{match.group(4)}\\{line[match.end(4) :]}"
    return "\\" + line
