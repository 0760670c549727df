"""Documents and pictures: on disk, or in any object storage that fsspec reaches."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Protocol


class BlobStore(Protocol):
    """Keeps bytes under names that we choose ourselves: `documents/<job id>`, `figures/<job id>/<name>`."""

    async def put(self, name: str, file: Path) -> None:
        """Keeps a file's bytes; when this returns, they are durable. An earlier blob of the name is replaced.

        Raises:
            StoreUnavailableError: The storage does not take it.
        """
        ...

    async def put_bytes(self, name: str, data: bytes) -> None:
        """As `put`, from memory."""
        ...

    async def get_bytes(self, name: str) -> bytes | None:
        """The bytes; None where there are none."""
        ...

    def local(self, name: str) -> contextlib.AbstractAsyncContextManager[Path]:
        """A file with the bytes, for as long as the block lasts; a copy only where the storage is elsewhere.

        Raises:
            StoreUnavailableError: It is gone, or the storage does not answer.
        """
        ...

    async def delete(self, names: list[str]) -> None:
        """Deletes blobs; those that are not there do not matter."""
        ...

    async def aclose(self) -> None:
        """Frees what it holds; copies that `local` made are gone."""
        ...
