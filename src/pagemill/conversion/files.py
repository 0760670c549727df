"""Files that are either whole or not there."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import time
from pathlib import Path

from pagemill.domain.errors import OutputError

_CHECKSUM_BYTES = 32
_ABANDONED_AFTER_S = 3600.0


def output_error(path: Path, error: OSError) -> OutputError:
    """The error for a write that failed, with what to do."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return OutputError(f"No space is left to write {path}.", "Free some and run again: finished pages are kept.")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return OutputError(f"{path} cannot be written ({error.strerror}).", "Choose another folder with --output.")
    return OutputError(f"{path} cannot be written ({error.strerror or error}).", "Check the path and the disk.")


def write_atomic(path: Path, data: bytes, scratch: Path) -> None:
    """Writes a file so that a reader or a kill at any moment sees the old content or the new, never a part.

    Args:
        path: The file; its folders are made.
        data: Its content.
        scratch: Folder on the same file system for the unfinished file.

    Raises:
        OutputError: The disk is full or the path cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch.mkdir(parents=True, exist_ok=True)
        temporary = scratch / f"{os.getpid()}-{secrets.token_hex(8)}"
        try:
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                # Renaming may reach the disk before the content does: after a power cut the file would be empty.
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise output_error(path, error) from error


def remove_abandoned(scratch: Path) -> None:
    """Removes unfinished files that killed runs left in `scratch`; those of the last hour may be in use."""
    with contextlib.suppress(OSError):
        for path in scratch.iterdir():
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > _ABANDONED_AFTER_S:
                    path.unlink()


def write_checked(path: Path, data: bytes, scratch: Path) -> None:
    """Writes a file that carries a checksum, to be read with `read_checked`.

    Raises:
        OutputError: The disk is full or the path cannot be written.
    """
    write_atomic(path, hashlib.sha256(data).digest() + data, scratch)


def read_checked(path: Path) -> bytes | None:
    """The content of a file of `write_checked`; None where it is absent or damaged (a crash of the machine)."""
    try:
        stored = path.read_bytes()
    except OSError:
        return None
    digest, data = stored[:_CHECKSUM_BYTES], stored[_CHECKSUM_BYTES:]
    return data if hashlib.sha256(data).digest() == digest else None
