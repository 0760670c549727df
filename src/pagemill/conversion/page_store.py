"""Where page results are kept until their document is complete, and for later runs.

A result is found by what it was made of: the document's bytes, the page, the engine with its options, and how the
page was rendered. Nothing else (not the file's name, not the time) is part of the key.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pagemill.conversion.codec import page_from_json, page_to_json, with_figure_data
from pagemill.conversion.files import output_error, read_checked, remove_abandoned, write_atomic, write_checked
from pagemill.domain import PageResult


@dataclass(frozen=True, slots=True)
class DocumentKey:
    """What all page results of one document under one engine and one set of options share.

    Attributes:
        sha256: Hash of the document's bytes, in hex.
        recipe: Hash over everything else that the result depends on, in hex.
    """

    sha256: str
    recipe: str

    @classmethod
    def of(cls, sha256: str, *parts: str) -> DocumentKey:
        """The key of a document whose results depend on `parts`."""
        return cls(sha256, hashlib.sha256("\x00".join(parts).encode()).hexdigest()[:16])


class PageStore(Protocol):
    """Keeps page results."""

    def load(self, key: DocumentKey, index: int, *, figures: bool = True) -> PageResult | None:
        """The stored result of a page, or None; its figures carry their bytes only where asked for."""
        ...

    def save(self, key: DocumentKey, result: PageResult) -> None:
        """Keeps a result, in place of an earlier one."""
        ...

    def claim(self, key: DocumentKey, index: int) -> contextlib.AbstractContextManager[bool]:
        """Takes a page for this run: True inside the block means that nobody else works on it."""
        ...


class MemoryPageStore:
    """Keeps results for as long as it lives."""

    def __init__(self) -> None:
        self._pages: dict[tuple[DocumentKey, int], PageResult] = {}

    def load(self, key: DocumentKey, index: int, *, figures: bool = True) -> PageResult | None:
        """The stored result of a page, or None."""
        del figures
        return self._pages.get((key, index))

    def save(self, key: DocumentKey, result: PageResult) -> None:
        """Keeps a result, in place of an earlier one."""
        self._pages[key, result.index] = result

    @contextlib.contextmanager
    def claim(self, key: DocumentKey, index: int) -> Iterator[bool]:
        """Always granted: one memory belongs to one run."""
        del key, index
        yield True


class DirectoryPageStore:
    """Keeps results in files, safe against kills at any moment and against other runs on the same folder.

    Args:
        root: Folder of the store; made when needed.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._scratch = root / "tmp"
        remove_abandoned(self._scratch)

    def _folder(self, key: DocumentKey) -> Path:
        return self._root / "pages" / key.sha256[:2] / f"{key.sha256}-{key.recipe}"

    def _lock_path(self, key: DocumentKey, index: int) -> Path:
        return self._root / "locks" / f"{key.sha256}-{key.recipe}-{index + 1:06d}"

    def load(self, key: DocumentKey, index: int, *, figures: bool = True) -> PageResult | None:
        """The stored result of a page, or None where it is absent or damaged."""
        folder = self._folder(key)
        data = read_checked(folder / f"{index + 1:06d}.json")
        if data is None:
            return None
        try:
            result = page_from_json(json.loads(data))
            if not figures:
                return result
            return with_figure_data(result, {f.name: (folder / f.name).read_bytes() for f in result.figures})
        except (KeyError, TypeError, ValueError, OSError):
            return None

    def save(self, key: DocumentKey, result: PageResult) -> None:
        """Keeps a result; its figures are on disk before the page counts as done.

        Raises:
            OutputError: The disk is full or the folder cannot be written.
        """
        folder = self._folder(key)
        for figure in result.figures:
            write_atomic(folder / figure.name, figure.data, self._scratch)
        text = json.dumps(page_to_json(result), ensure_ascii=False, separators=(",", ":"))
        write_checked(folder / f"{result.index + 1:06d}.json", text.encode(), self._scratch)

    @contextlib.contextmanager
    def claim(self, key: DocumentKey, index: int) -> Iterator[bool]:
        """Locks a page against other processes; the system frees the lock when its holder dies."""
        path = self._lock_path(key, index)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise output_error(path, error) from error
        if not _try_lock(handle, path):
            os.close(handle)
            yield False
            return
        try:
            yield True
        finally:
            with contextlib.suppress(OSError):
                path.unlink()
            os.close(handle)


def _try_lock(handle: int, path: Path) -> bool:
    """Locks an open file, unless another has it or its holder has just removed it."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.fstat(handle).st_ino == path.stat().st_ino
    except OSError:
        return False
