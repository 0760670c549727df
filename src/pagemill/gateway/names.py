"""Names of documents as users send them: made fit for display and for download, and never used as paths."""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import quote

MAX_NAME_BYTES = 200
"""Longest name in bytes of UTF-8; file systems and browsers take 255."""

_MAX_SUFFIX_BYTES = 16
_DROPPED = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_SEPARATORS = re.compile(r"[/\\]")
_UNSAFE = re.compile(r'[<>:"|?*]')
_RESERVED = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|clock\$|(?:com|lpt)[0-9¹²³]) *(?:\.|$)", re.IGNORECASE)
_NO_HEADER_TEXT = re.compile(r'[^\x20-\x7e]|["\\%]')


def document_name(raw: str | None, default: str = "document") -> str:
    """A name for people, of whatever a user sent as the name of a document.

    It is the last part of the path, composed (NFC), without control, bidirectional and invisible characters, without
    characters and names that Windows reserves, at most `MAX_NAME_BYTES` long with its suffix kept, and it neither
    starts nor ends with a dot or a space.

    Args:
        raw: What the user sent; None where there was nothing.
        default: The name, or the stem, where nothing is left.
    """
    parts = [cleaned for part in _SEPARATORS.split(_visible(raw or "")) if (cleaned := part.strip())]
    name = _UNSAFE.sub("_", parts[-1]) if parts else ""
    stem, suffix = _split_suffix(name)
    stem = _shortened(stem.lstrip(". "), MAX_NAME_BYTES - len(suffix.encode()) - 1).rstrip(". ") or default
    if _RESERVED.match(stem + suffix):
        stem = "_" + stem
    return stem + suffix


def attachment(name: str) -> str:
    """Value of the header Content-Disposition that saves an answer under this name (RFC 6266, RFC 8187).

    Args:
        name: Any text; it goes through `document_name`.
    """
    safe = document_name(name)
    return f"attachment; filename=\"{_NO_HEADER_TEXT.sub('_', safe)}\"; filename*=UTF-8''{quote(safe, safe='')}"


def _visible(text: str) -> str:
    """Plain spaces for all others, invisible characters gone, composed."""
    kept = []
    for character in text:
        category = unicodedata.category(character)
        if character == "\t" or category == "Zs":
            kept.append(" ")
        elif category not in _DROPPED:
            kept.append(character)
    return unicodedata.normalize("NFC", "".join(kept))


def _split_suffix(name: str) -> tuple[str, str]:
    """Stem and suffix with its dot; a last dot that begins no short suffix belongs to the stem."""
    stem, dot, suffix = name.rpartition(".")
    whole = bool(suffix) and suffix.strip() == suffix and len(suffix.encode()) < _MAX_SUFFIX_BYTES
    return (stem, dot + suffix) if dot and whole else (name, "")


def _shortened(text: str, most: int) -> str:
    return text.encode()[:most].decode("utf-8", "ignore")
