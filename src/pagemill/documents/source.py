"""Finding the documents that inputs name: files, folders, patterns and standard input."""

from __future__ import annotations

import glob
import os
import re
import shutil
import stat
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from pagemill.documents.passwords import PasswordBook
from pagemill.documents.sniff import SUFFIXES
from pagemill.domain import DocumentSource
from pagemill.domain.errors import InputError, OutputError, SourceNotFoundError

STDIN = "-"
_STDIN_NAME = "stdin"
_DIGITS = re.compile(r"(\d+)")


def resolve_sources(
    inputs: Sequence[str],
    *,
    spool_folder: Path,
    stdin: BinaryIO | None = None,
    passwords: PasswordBook | None = None,
) -> list[DocumentSource]:
    """Finds all documents, each once, in the order of the inputs and in natural order within one.

    A folder stands for all files in it and below with a known suffix, hidden ones left out; a file named explicitly
    is taken whatever its name is. What exists under the very name of a pattern is no pattern.

    Args:
        inputs: Files, folders, patterns (`*`, `?`, `[...]`, `**`), and `-` for standard input.
        spool_folder: Existing folder that standard input is written to.
        stdin: What `-` reads; the process's standard input by default.
        passwords: For encrypted PDFs.

    Returns:
        Sources with names that are unique and relative to the input that named them, so that outputs can mirror the
        tree. Where names of several inputs clash, the input's own name is put in front.

    Raises:
        SourceNotFoundError: An input does not exist, cannot be read, or holds no document.
        OutputError: Standard input cannot be spooled.
    """
    found: dict[str, tuple[str, str, Path]] = {}
    for item in inputs:
        if item == STDIN:
            if STDIN not in found:
                found[STDIN] = ("", _STDIN_NAME, _spool(stdin, spool_folder))
            continue
        for base, relative, path in _resolve(item):
            found.setdefault(str(path.absolute()), (base, relative, path))
    book = passwords or PasswordBook()
    return [
        DocumentSource(path, name, book.candidates(name)) for name, path in _with_unique_names(list(found.values()))
    ]


def _resolve(item: str) -> Iterator[tuple[str, str, Path]]:
    """Yields the input's own name, the document's name relative to it, and its path."""
    path = Path(item)
    try:
        mode = path.stat().st_mode if item else None
    except OSError as error:
        if glob.has_magic(item):
            yield from _resolve_pattern(item)
            return
        reason = "does not exist" if isinstance(error, FileNotFoundError) else f"cannot be read: {error.strerror}"
        raise SourceNotFoundError(f"{item} {reason}.", "Check the path and its rights.") from error
    if mode is None:
        raise SourceNotFoundError("An input is empty.", "Name a file, a folder, a pattern, or - for standard input.")
    if stat.S_ISDIR(mode):
        yield from _resolve_folder(item, path)
    elif stat.S_ISREG(mode):
        _check_readable(item, path)
        yield path.resolve().parent.name, path.name, path
    else:
        raise SourceNotFoundError(f"{item} is no regular file.", "Pipe it in and name - as the input.")


def _resolve_folder(item: str, folder: Path) -> Iterator[tuple[str, str, Path]]:
    empty = True
    for path in _walk(folder):
        empty = False
        yield folder.resolve().name, path.relative_to(folder).as_posix(), path
    if empty:
        raise SourceNotFoundError(
            f"{item} holds no documents.",
            f"Known suffixes are {' '.join(sorted(SUFFIXES))}; name other files one by one.",
        )


def _resolve_pattern(pattern: str) -> Iterator[tuple[str, str, Path]]:
    base, varying = _split_pattern(pattern)
    hidden = any(part.startswith(".") for part in varying.parts)
    # Path.glob, unlike the glob module, does not walk around in circles of links below `**`.
    files = [
        path
        for path in sorted(base.glob(str(varying)), key=lambda path: natural_key(str(path)))
        if path.is_file() and (hidden or not any(part.startswith(".") for part in path.relative_to(base).parts))
    ]
    if not files:
        raise SourceNotFoundError(f"{pattern} matches no file.", "Check the pattern, and quote it in the shell.")
    for path in files:
        _check_readable(str(path), path)
        yield base.resolve().name, path.relative_to(base).as_posix(), path


def _split_pattern(pattern: str) -> tuple[Path, Path]:
    """The folder above the first part of a pattern that varies, and the rest."""
    parts = Path(pattern).parts
    fixed = next(index for index, part in enumerate(parts) if glob.has_magic(part))
    varying = Path(*parts[fixed:])
    return Path(*parts[:fixed]), varying / "*" if varying.name == "**" else varying


def _walk(folder: Path) -> Iterator[Path]:
    """All documents in and below a folder; links to folders are followed, but never into a folder they are in."""

    def visit(current: Path, above: frozenset[str]) -> Iterator[Path]:
        real = os.path.realpath(current)
        if real in above:
            return
        try:
            entries = sorted(os.scandir(current), key=lambda entry: natural_key(entry.name))
        except OSError as error:
            raise SourceNotFoundError(f"{current} cannot be read: {error.strerror}.", "Check its rights.") from error
        for entry in entries:
            if entry.name.startswith("."):
                continue
            path = current / entry.name
            if entry.is_dir():
                yield from visit(path, above | {real})
            elif path.suffix.lower() in SUFFIXES and entry.is_file():
                yield path

    return visit(folder, frozenset())


def natural_key(name: str) -> list[tuple[int, int, str]]:
    """Sorts `page2` before `page10`."""
    return [(0, int(part), part) if part.isdecimal() else (1, 0, part.casefold()) for part in _DIGITS.split(name)]


def _check_readable(item: str, path: Path) -> None:
    if not os.access(path, os.R_OK):
        raise SourceNotFoundError(f"{item} cannot be read: permission denied.", "Check its rights.")


def _spool(stdin: BinaryIO | None, folder: Path) -> Path:
    stream = stdin or sys.stdin.buffer
    if stream.isatty():
        raise InputError("Standard input is a terminal.", "Pipe a document in, as in: pagemill convert - < file.pdf")
    path = folder / _STDIN_NAME
    try:
        with path.open("wb") as target:
            shutil.copyfileobj(stream, target, 1024**2)
    except OSError as error:
        raise OutputError(
            f"Standard input cannot be spooled to {folder}: {error.strerror}.", "Free some space or set TMPDIR."
        ) from error
    return path


def _with_unique_names(found: list[tuple[str, str, Path]]) -> Iterator[tuple[str, Path]]:
    counts: dict[str, int] = {}
    for _, name, _ in found:
        counts[name.casefold()] = counts.get(name.casefold(), 0) + 1
    taken: set[str] = set()
    for base, name, path in found:
        wanted = f"{base}/{name}" if base and counts[name.casefold()] > 1 else name
        unique, number = wanted, 1
        while unique.casefold() in taken:
            number += 1
            stem, dot, suffix = wanted.rpartition(".")
            unique = f"{stem}-{number}.{suffix}" if dot else f"{wanted}-{number}"
        taken.add(unique.casefold())
        yield unique, path
