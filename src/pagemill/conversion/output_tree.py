"""Where a document's files go, so that no file is ever lost to another.

The output tree mirrors the input tree. `report.pdf` becomes `report.md`; where that name belongs to another document
(`report.png`, say) or to a file that pagemill did not write, the next name is taken: `report.pdf.md`, then
`report.pdf-2.md`. Who owns a name is kept in the state folder, together with the hashes of what was written: a file
that was edited since is not overwritten.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from pagemill.conversion.files import output_error, write_atomic
from pagemill.domain import DocumentSource
from pagemill.domain.errors import OutputError

STATE_FOLDER = ".pagemill"
_ASSETS_SUFFIX = ".assets"
_KNOWN_HASHES = 4
_NAME_BYTES = 200


@dataclass(frozen=True, slots=True)
class OutputSlot:
    """The place in the tree that belongs to one document.

    Attributes:
        stem: Path relative to the output folder, without the suffix.
    """

    stem: str

    @property
    def assets(self) -> str:
        """Folder of its pictures, relative to the output folder."""
        return self.stem + _ASSETS_SUFFIX

    @property
    def assets_link(self) -> str:
        """The same folder as seen from the document's own files."""
        return PurePosixPath(self.assets).name

    def file(self, suffix: str) -> str:
        """Path of its file with that suffix, relative to the output folder."""
        return f"{self.stem}.{suffix}"


class OutputTree:
    """An output folder with its state folder.

    Args:
        root: The output folder; made when needed.
        overwrite_changed: Whether files that were edited since they were written may be overwritten.
    """

    def __init__(self, root: Path, *, overwrite_changed: bool = False) -> None:
        self.root = root
        self._state = root / STATE_FOLDER
        self._overwrite_changed = overwrite_changed

    @property
    def state_folder(self) -> Path:
        """Where page results, locks and records of ownership are kept."""
        return self._state

    def is_picture_of_output(self, path: Path) -> bool:
        """Whether a file is a picture that belongs to an earlier conversion into this tree, and so is no input."""
        try:
            relative = path.resolve().relative_to(self.root.resolve())
        except ValueError:
            return False
        return any(
            parent.name.endswith(_ASSETS_SUFFIX)
            and self._record(OutputSlot(parent.as_posix().removesuffix(_ASSETS_SUFFIX))) is not None
            for parent in relative.parents
        )

    def allocate(self, source: DocumentSource, sha256: str, suffixes: Iterable[str]) -> OutputSlot:
        """Finds, and takes, the place of a document; the same document always gets the same one.

        Raises:
            OutputError: The state folder cannot be written.
        """
        suffixes = tuple(suffixes)
        with self._locked():
            for stem in _candidate_stems(source.name):
                slot = OutputSlot(stem)
                record = self._record(slot)
                if record is None:
                    paths = [slot.assets, *(slot.file(suffix) for suffix in suffixes)]
                    if any(os.path.lexists(self.root / path) for path in paths):
                        continue
                elif not _owns(record, source, sha256):
                    continue
                owner = {"name": source.name, "path": _path_of(source), "sha256": sha256}
                self._save_record(slot, {"files": {}, **(record or {}), **owner})
                return slot
        raise AssertionError("candidate names never end")

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """One allocation at a time, among all processes that share the tree."""
        path = self._state / "outputs.lock"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("ab") as handle:
                fcntl.flock(handle, fcntl.LOCK_EX)
                yield
        except OSError as error:
            raise output_error(path, error) from error

    def write(self, slot: OutputSlot, files: Iterable[tuple[str, bytes]]) -> tuple[Path, ...]:
        """Writes a document's files and removes those of its earlier conversion that it has no longer.

        Args:
            slot: The document's place.
            files: Paths relative to the output folder, with their content.

        Returns:
            The files' full paths.

        Raises:
            OutputError: A file was edited since it was written, or cannot be written.
        """
        record = self._record(slot) or {}
        known: dict[str, list[str]] = dict(record.get("files", {}))
        written: list[str] = []
        for relative, data in files:
            digest = hashlib.sha256(data).hexdigest()
            path = self.root / relative
            current = _hash_of(path)
            if current != digest:
                self._refuse_if_edited(path, current, known.get(relative, []))
                # Recorded before it is written: killed between the two, the file is still known as ours.
                known[relative] = [*known.get(relative, []), digest][-_KNOWN_HASHES:]
                self._save_record(slot, {**record, "files": known})
                write_atomic(path, data, self._state / "tmp")
            elif digest not in known.get(relative, []):
                known[relative] = [*known.get(relative, []), digest][-_KNOWN_HASHES:]
            written.append(relative)
        self._remove_stale_assets(slot, known, written)
        kept = {name: hashes for name, hashes in known.items() if name in written or not self._is_asset(slot, name)}
        self._save_record(slot, {**record, "files": kept})
        return tuple(self.root / relative for relative in written)

    def _refuse_if_edited(self, path: Path, current: str | None, known: list[str]) -> None:
        if current is not None and current not in known and not self._overwrite_changed:
            raise OutputError(
                f"{path} was changed since pagemill wrote it and is left as it is.",
                "Move it away and run again, or use --force to overwrite it; finished pages are kept.",
            )

    def _remove_stale_assets(self, slot: OutputSlot, known: dict[str, list[str]], written: list[str]) -> None:
        for relative, hashes in known.items():
            path = self.root / relative
            if self._is_asset(slot, relative) and relative not in written and _hash_of(path) in hashes:
                path.unlink(missing_ok=True)

    @staticmethod
    def _is_asset(slot: OutputSlot, relative: str) -> bool:
        return relative.startswith(slot.assets + "/")

    def _record_path(self, slot: OutputSlot) -> Path:
        return self._state / "outputs" / f"{slot.stem}.json"

    def _record(self, slot: OutputSlot) -> dict[str, Any] | None:
        try:
            record = json.loads(self._record_path(slot).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return record if isinstance(record, dict) else None

    def _save_record(self, slot: OutputSlot, record: dict[str, Any]) -> None:
        if record != self._record(slot):
            write_atomic(self._record_path(slot), json.dumps(record).encode(), self._state / "tmp")


def _owns(record: dict[str, Any], source: DocumentSource, sha256: str) -> bool:
    """Whether a record is of this document: the same file, or a file of the same name and content."""
    same_path = record.get("path") == _path_of(source)
    return same_path or (record.get("sha256") == sha256 and record.get("name") == source.name)


def _path_of(source: DocumentSource) -> str:
    return str(source.path.resolve())


def _hash_of(path: Path) -> str | None:
    """Hash of a file's content; None where there is no file. A folder in the way counts as foreign content."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        return None
    except OSError:
        return "" if os.path.lexists(path) else None


def _candidate_stems(name: str) -> Iterator[str]:
    """Names to try for a document, from the plain one on, never leaving the output folder."""
    parts = [_short(part) for part in name.replace("\\", "/").split("/") if part not in ("", ".", "..")]
    full = PurePosixPath(*(parts or ["document"]))
    if full.parts[0] == STATE_FOLDER:
        full = PurePosixPath("_" + STATE_FOLDER, *full.parts[1:])
    stem = full.with_name(full.stem) if full.stem else full
    yield str(stem)
    yield str(full)
    number = 2
    while True:
        yield f"{full}-{number}"
        number += 1


def _short(part: str) -> str:
    """A file name that leaves room for suffixes within the 255 bytes that file systems allow."""
    raw = os.fsencode(part)
    if len(raw) <= _NAME_BYTES:
        return part
    digest = hashlib.sha256(raw).hexdigest()[:8]
    suffix = PurePosixPath(part).suffix[:12]
    return raw[: _NAME_BYTES - 24].decode("utf-8", "ignore") + f"-{digest}{suffix}"
