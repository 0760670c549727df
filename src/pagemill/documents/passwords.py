"""Passwords for encrypted PDFs: which to try on which file, and as which bytes."""

from __future__ import annotations

import stringprep
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from pagemill.domain.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class PasswordBook:
    """The passwords given for a run.

    Attributes:
        common: Tried on every encrypted PDF, in turn.
        by_name: Pairs of a pattern (`*`, `?`, `[...]`) and a password, tried first on files whose name or
            relative path matches.
    """

    common: tuple[str, ...] = field(default=(), repr=False)
    by_name: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @classmethod
    def from_lines(cls, lines: Sequence[str]) -> PasswordBook:
        """Reads lines of `password` or `pattern<TAB>password`; empty lines count for nothing."""
        common: list[str] = []
        by_name: list[tuple[str, str]] = []
        for line in lines:
            text = line.rstrip("\r\n")
            pattern, tab, password = text.partition("\t")
            if tab:
                by_name.append((pattern, password))
            elif text:
                common.append(text)
        return cls(tuple(common), tuple(by_name))

    @classmethod
    def from_file(cls, path: Path) -> PasswordBook:
        """Reads a UTF-8 file of lines, see `from_lines`.

        Raises:
            ConfigurationError: The file cannot be read.
        """
        try:
            return cls.from_lines(path.read_text("utf-8-sig").split("\n"))
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(
                f"The password file {path} cannot be read: {error}.", "Give a readable UTF-8 text file."
            ) from error

    def candidates(self, name: str) -> tuple[str, ...]:
        """Passwords to try on a file, the likeliest first.

        Args:
            name: Its path relative to the input that named it, with `/`.
        """
        base = PurePosixPath(name).name
        named = [word for pattern, word in self.by_name if fnmatchcase(name, pattern) or fnmatchcase(base, pattern)]
        return tuple(dict.fromkeys([*named, *self.common]))


def password_encodings(password: str) -> tuple[bytes, ...]:
    """All byte strings that a password may stand for in a PDF.

    Revisions 2 to 4 of the standard security handler take PDFDocEncoding (here Latin-1, its printable part),
    revisions 5 and 6 take UTF-8 after SASLprep (ISO 32000-2, 7.6.4.3).
    """
    forms: list[bytes] = []
    for text, encoding in ((password, "utf-8"), (_saslprep(password), "utf-8"), (password, "latin-1")):
        try:
            forms.append(text.encode(encoding))
        except UnicodeEncodeError:
            continue
    return tuple(dict.fromkeys(form for form in forms if b"\x00" not in form))


def _saslprep(password: str) -> str:
    """RFC 4013, mapping and normalisation only: what is prohibited cannot open a file anyway."""
    mapped = (" " if stringprep.in_table_c12(c) else c for c in password if not stringprep.in_table_b1(c))
    return unicodedata.normalize("NFKC", "".join(mapped))
