"""Files of blobs that are kept elsewhere, for as long as there is room for them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

_PREFIX = "blobs-"


@dataclass(slots=True)
class _Entry:
    path: Path
    download: asyncio.Task[int]
    users: int = 0
    size: int = 0


class BlobCache:
    """A folder of this process alone: those that are in use stay, of the others the ones used last.

    Args:
        scratch: Where the folder is made.
        max_bytes: Most bytes of files that nobody uses.
    """

    def __init__(self, scratch: Path, max_bytes: int) -> None:
        self._scratch = scratch
        self._max_bytes = max_bytes
        self._folder: Path | None = None
        # In the order of last use.
        self._entries: dict[str, _Entry] = {}

    @contextlib.asynccontextmanager
    async def file(self, key: str, download: Callable[[Path], Awaitable[int]]) -> AsyncIterator[Path]:
        """The file of a key, downloaded once however many ask for it.

        Args:
            key: Another one for other content; usable as a file name.
            download: Writes the file and returns its bytes.
        """
        entry = self._entries.pop(key, None)
        if entry is None or (entry.download.done() and not _worked(entry.download)):
            path = self._make_folder() / key
            entry = _Entry(path, asyncio.ensure_future(download(path)))
        self._entries[key] = entry
        entry.users += 1
        try:
            # Whoever asked first may give up while others still wait for it.
            entry.size = await asyncio.shield(entry.download)
            yield entry.path
        finally:
            entry.users -= 1
            self._make_room()

    async def aclose(self) -> None:
        """Ends downloads and deletes the folder."""
        downloads = [entry.download for entry in self._entries.values()]
        for download in downloads:
            download.cancel()
        await asyncio.gather(*downloads, return_exceptions=True)
        self._entries.clear()
        if self._folder is not None:
            await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)
            self._folder = None

    def _make_folder(self) -> Path:
        if self._folder is None:
            self._scratch.mkdir(parents=True, exist_ok=True)
            _remove_abandoned(self._scratch)
            self._folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=self._scratch))
        return self._folder

    def _make_room(self) -> None:
        idle = [(key, entry) for key, entry in self._entries.items() if not entry.users and entry.download.done()]
        total = sum(entry.size for _, entry in idle)
        for key, entry in idle:
            if total <= self._max_bytes and _worked(entry.download):
                continue
            total -= entry.size
            del self._entries[key]
            with contextlib.suppress(OSError):
                entry.path.unlink(missing_ok=True)


def _worked(download: asyncio.Task[int]) -> bool:
    return not download.cancelled() and download.exception() is None


def _remove_abandoned(scratch: Path) -> None:
    """Deletes the folders of processes that were killed."""
    for folder in scratch.glob(f"{_PREFIX}*-*"):
        pid = folder.name.removeprefix(_PREFIX).split("-", 1)[0]
        if pid.isdigit() and not _lives(int(pid)):
            shutil.rmtree(folder, ignore_errors=True)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
