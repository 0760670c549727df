"""Stores of documents and pictures: a folder, or whatever fsspec reaches."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hashlib
import os
import re
import secrets
import shutil
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from pagemill.conversion.files import remove_abandoned
from pagemill.domain.errors import ConfigurationError, MissingDependencyError, StoreUnavailableError
from pagemill.jobs.blob_cache import BlobCache
from pagemill.jobs.blobs import BlobStore

T = TypeVar("T")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}(/[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}){0,4}")
_INCOMING = ".incoming"
_CACHE_BYTES = 2**30
_THREADS = 8
_S3_OPTIONS = {"config_kwargs": {"connect_timeout": 10, "read_timeout": 60, "retries": {"max_attempts": 3}}}


def open_blobs(where: str | Path, scratch: Path) -> BlobStore:
    """The store for a folder or an fsspec URL.

    Args:
        where: A folder, or a URL such as `s3://bucket/prefix`.
        scratch: Folder on this machine for copies of what is kept elsewhere.

    Raises:
        ConfigurationError: The URL cannot be used.
        MissingDependencyError: The package for this kind of storage is not installed.
    """
    text = str(where)
    if isinstance(where, Path) or "://" not in text:
        return LocalBlobs(Path(where))
    if text.startswith("file://"):
        return LocalBlobs(Path(urlsplit(text).path))
    return FsspecBlobs(text, scratch)


def _checked(name: str) -> str:
    """Names are made by us: another one is a mistake of ours, which must not become a path."""
    if _NAME.fullmatch(name) is None:
        raise ValueError(f"{name!r} is no name of a blob")
    return name


class LocalBlobs:
    """Files in a folder of this machine, or one that is mounted on all. See `BlobStore`.

    Args:
        root: The folder; it is made.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    async def put(self, name: str, file: Path) -> None:
        """See `BlobStore.put`."""
        await self._call(self._keep, _checked(name), lambda target: shutil.copyfile(file, target))

    async def put_bytes(self, name: str, data: bytes) -> None:
        """See `BlobStore.put_bytes`."""
        await self._call(self._keep, _checked(name), lambda target: target.write_bytes(data))

    async def get_bytes(self, name: str) -> bytes | None:
        """See `BlobStore.get_bytes`."""
        path = self._root / _checked(name)
        try:
            return await self._call(path.read_bytes)
        except FileNotFoundError:
            return None

    @contextlib.asynccontextmanager
    async def local(self, name: str) -> AsyncIterator[Path]:
        """See `BlobStore.local`."""
        path = self._root / _checked(name)
        if not await asyncio.to_thread(path.is_file):
            raise _gone(name)
        yield path

    async def delete(self, names: list[str]) -> None:
        """See `BlobStore.delete`."""
        await self._call(self._remove, [_checked(name) for name in names])

    async def aclose(self) -> None:
        """See `BlobStore.aclose`."""

    async def _call(self, function: Callable[..., T], *arguments: object) -> T:
        try:
            return await asyncio.to_thread(function, *arguments)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise _unavailable(str(self._root), error) from error

    def _keep(self, name: str, write: Callable[[Path], object]) -> None:
        incoming = self._root / _INCOMING
        if not incoming.is_dir():
            _make_folders(incoming)
        remove_abandoned(incoming)
        temporary = incoming / f"{os.getpid()}-{secrets.token_hex(8)}"
        try:
            write(temporary)
            _sync(temporary)
            self._move(temporary, self._root / name)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise

    def _move(self, temporary: Path, target: Path) -> None:
        for last in (False, False, True):
            _make_folders(target.parent)
            try:
                temporary.replace(target)
                # A name is only on disk when its folder is.
                _sync(target.parent)
            except FileNotFoundError:
                # Somebody deleted the last blob of the folder, and the folder with it.
                if last:
                    raise
            else:
                return

    def _remove(self, names: list[str]) -> None:
        for name in names:
            path = self._root / name
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                path.unlink()
            if name.count("/") > 1:
                # Folders of one job are not used again; those that still hold something stay.
                with contextlib.suppress(OSError):
                    path.parent.rmdir()


class FsspecBlobs:
    """Objects in a storage that fsspec reaches. See `BlobStore`.

    fsspec's blocking interface is the one that all its storages have; it is called in threads of its own, so that a
    storage that hangs takes no threads from others.

    Args:
        url: Such as `s3://bucket/prefix`; credentials come from the environment, as the storage's package has it.
        scratch: Folder on this machine for copies.

    Raises:
        ConfigurationError: The URL cannot be used.
        MissingDependencyError: The package for this kind of storage is not installed.
    """

    def __init__(self, url: str, scratch: Path) -> None:
        # It may carry a password.
        self._where = urlsplit(url)._replace(netloc=urlsplit(url).netloc.rpartition("@")[2]).geturl()
        self._storage, self._root = _connect(url)
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="pagemill-blobs")
        self._cache = BlobCache(scratch, _CACHE_BYTES)

    async def put(self, name: str, file: Path) -> None:
        """See `BlobStore.put`."""
        target = self._path(name)
        await self._call(lambda: self._storage.put_file(str(file), target))

    async def put_bytes(self, name: str, data: bytes) -> None:
        """See `BlobStore.put_bytes`."""
        target = self._path(name)
        await self._call(lambda: self._storage.pipe_file(target, data))

    async def get_bytes(self, name: str) -> bytes | None:
        """See `BlobStore.get_bytes`."""
        path = self._path(name)
        try:
            return await self._call(lambda: bytes(self._storage.cat_file(path)))
        except FileNotFoundError:
            return None

    @contextlib.asynccontextmanager
    async def local(self, name: str) -> AsyncIterator[Path]:
        """See `BlobStore.local`."""
        path = self._path(name)

        def version() -> str:
            return str(self._storage.ukey(path))

        def fetch(target: Path) -> int:
            self._storage.get_file(path, str(target))
            return target.stat().st_size

        async def download(target: Path) -> int:
            return await self._call(lambda: fetch(target))

        try:
            key = hashlib.sha256(f"{path}\n{await self._call(version)}".encode()).hexdigest()
            async with contextlib.AsyncExitStack() as stack:
                copy = await stack.enter_async_context(self._cache.file(key, download))
                kept = stack.pop_all()
        except FileNotFoundError as error:
            raise _gone(name) from error
        async with kept:
            yield copy

    async def delete(self, names: list[str]) -> None:
        """See `BlobStore.delete`."""

        async def remove(path: str) -> None:
            with contextlib.suppress(FileNotFoundError):
                await self._call(lambda: self._storage.rm_file(path))

        paths = [self._path(name) for name in names]
        await asyncio.gather(*(remove(path) for path in paths))

    async def aclose(self) -> None:
        """See `BlobStore.aclose`."""
        await self._cache.aclose()
        await asyncio.to_thread(self._threads.shutdown, cancel_futures=True)

    def _path(self, name: str) -> str:
        return f"{self._root}/{_checked(name)}"

    async def _call(self, call: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, call)
        except FileNotFoundError:
            raise
        except Exception as error:
            # Each storage has errors of its own kind.
            raise _unavailable(self._where, error) from error


def _connect(url: str) -> tuple[Any, str]:
    try:
        import fsspec  # noqa: PLC0415  an extra
    except ImportError as error:
        message = "Object storage needs fsspec."
        raise MissingDependencyError(message, "Install it with: pip install 'pagemill[gateway]'") from error
    protocol = url.split("://", 1)[0]
    options: dict[str, Any] = _S3_OPTIONS if protocol in {"s3", "s3a"} else {}
    try:
        storage, root = fsspec.url_to_fs(url, skip_instance_cache=True, use_listings_cache=False, **options)
    except ImportError as error:
        message = f"Storage of the kind {protocol!r} needs a package that is not installed: {error}."
        extra = "pagemill[s3]" if protocol in {"s3", "s3a"} else "that package"
        raise MissingDependencyError(message, f"Install it with: pip install '{extra}'") from error
    except ValueError as error:
        message = f"Storage of the kind {protocol!r} is not known."
        raise ConfigurationError(message, "Give a folder, or a URL of fsspec such as s3://bucket/prefix.") from error
    return storage, root.rstrip("/")


def _make_folders(folder: Path) -> None:
    """Makes a folder and those above it; all of them are on disk afterwards."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for path in missing:
        _sync(path.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _gone(name: str) -> StoreUnavailableError:
    return StoreUnavailableError(f"The blob {name} is not there.", "It was deleted, or the storage has lost it.")


def _unavailable(where: str, error: Exception) -> StoreUnavailableError:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreUnavailableError(f"No space is left in {where}.", "Free some; the service goes on by itself.")
    cause = str(error).split("\n", 1)[0] or type(error).__name__
    return StoreUnavailableError(f"The storage {where} failed: {cause}.", "Check that it can be reached and written.")
