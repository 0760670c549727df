"""SQLite: one file, several processes.

SQLite's calls block, and through asyncio each of them would be handed to a thread and back, several times for one
statement. So a whole transaction runs in a thread: one hand-over, and the lock of the file is held for less time.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import sqlalchemy as sa
from sqlalchemy import event, exc

from pagemill.domain.errors import ConfigurationError, StoreUnavailableError
from pagemill.jobs.sql.database import Clock, Database, Transaction
from pagemill.jobs.sql.migrate import migrate
from pagemill.jobs.store import StoreOptions

T = TypeVar("T")
_READERS = 4
_BUSY_TRY_S = 2.5
_BUSY_TOTAL_S = 60.0
_OLDEST = (3, 35, 0)
_CONFLICTS = 5


class SqliteDatabase(Database):
    """A SQLite file in WAL mode.

    Args:
        path: The file; its folder is made.
        options: Bounds and times.
        process_id: Unused here.
        clock: Instead of the machine's clock, for tests.
        busy_s: Seconds to wait for others who write.
    """

    def __init__(
        self,
        path: Path,
        options: StoreOptions,
        process_id: str,
        clock: Clock | None = None,
        *,
        busy_s: float = _BUSY_TOTAL_S,
    ) -> None:
        super().__init__(options, process_id, clock)
        self._path = path
        self._busy_s = busy_s
        self._closing = threading.Event()
        # One writer in a process: others would only wait for the lock of the file.
        self._writer = _engine(path, "BEGIN IMMEDIATE", 1, min(busy_s, _BUSY_TRY_S))
        self._reader = _engine(path, "BEGIN", _READERS, min(busy_s, _BUSY_TRY_S))
        self._writer_thread = ThreadPoolExecutor(1, thread_name_prefix="pagemill-sqlite-writer")
        self._reader_threads = ThreadPoolExecutor(_READERS, thread_name_prefix="pagemill-sqlite-reader")

    async def start(self) -> None:
        """See `Database.start`."""
        if sqlite3.sqlite_version_info < _OLDEST:
            message = f"SQLite {sqlite3.sqlite_version} is too old; 3.35 is needed."
            raise ConfigurationError(message, "Use a newer Python, or PostgreSQL.")
        try:
            await asyncio.to_thread(self._path.parent.mkdir, mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            message = f"The folder of the database {self._path} cannot be made ({error.strerror})."
            raise ConfigurationError(message, "Choose another folder for the data.") from error
        await self._in_thread(self._writer_thread, self._prepare)

    async def aclose(self) -> None:
        """See `Database.aclose`."""
        self._closing.set()
        for threads in (self._writer_thread, self._reader_threads):
            await asyncio.to_thread(threads.shutdown)
        for engine in (self._writer, self._reader):
            await asyncio.to_thread(engine.dispose)

    async def read(self, work: Callable[[Transaction], T]) -> T:
        """See `Database.read`."""
        return await self._in_thread(self._reader_threads, lambda: self._run(self._reader, work))

    async def write(self, work: Callable[[Transaction], T]) -> T:
        """See `Database.write`."""
        return await self._in_thread(self._writer_thread, lambda: self._run(self._writer, work))

    async def _in_thread(self, threads: ThreadPoolExecutor, call: Callable[[], T]) -> T:
        if self._closing.is_set():
            raise StoreUnavailableError(f"The database {self._path} was closed.")
        return await asyncio.get_running_loop().run_in_executor(threads, call)

    def _prepare(self) -> None:
        self._patiently(self._use_wal)

        def step() -> None:
            with self._writer.begin() as connection:
                migrate(connection)

        self._patiently(step)

    def _use_wal(self) -> None:
        # Not within a transaction, which SQLAlchemy would begin.
        raw = self._writer.raw_connection()
        try:
            raw.cursor().execute("PRAGMA journal_mode=WAL")
        finally:
            raw.close()

    def _run(self, engine: sa.Engine, work: Callable[[Transaction], T]) -> T:
        def transact() -> T:
            with engine.begin() as connection:
                return work(Transaction(connection, self._time))

        return self._patiently(transact)

    def _time(self, _connection: sa.Connection) -> float:
        return time.time() if self._given_clock is None else self._given_clock()

    def _patiently(self, call: Callable[[], T]) -> T:
        """Calls until the lock of the file was to be had, or for too long."""
        give_up = time.monotonic() + self._busy_s
        conflicts = 0
        while True:
            try:
                return call()
            except exc.IntegrityError:
                conflicts += 1
                if conflicts >= _CONFLICTS:
                    raise
            except (exc.OperationalError, sqlite3.OperationalError) as error:
                if not _is_busy(error) or time.monotonic() >= give_up or self._closing.is_set():
                    raise self._unavailable(error) from error
            except (exc.DatabaseError, sqlite3.DatabaseError) as error:
                # Its subclasses are mistakes of ours; itself says that the file is damaged or no database.
                if type(error) in {exc.DatabaseError, sqlite3.DatabaseError}:
                    raise self._unavailable(error) from error
                raise

    def _unavailable(self, error: Exception) -> Exception:
        cause = str(getattr(error, "orig", None) or error)
        if "unable to open" in cause or "not a database" in cause or "readonly" in cause:
            message = f"The database {self._path} cannot be used ({cause})."
            return ConfigurationError(message, "Check the path, and that this user may write there.")
        if _is_busy(error):
            message = f"The database {self._path} was locked by another process for {self._busy_s:g} s."
            return StoreUnavailableError(message, "Try again; if it stays so, look for a process that is stopped.")
        return StoreUnavailableError(f"The database {self._path} failed ({cause}).", "Check the disk and its space.")


def _is_busy(error: Exception) -> bool:
    cause = str(getattr(error, "orig", None) or error)
    return "locked" in cause or "busy" in cause


def _engine(path: Path, begin: str, connections: int, busy_s: float) -> sa.Engine:
    engine = sa.create_engine(
        sa.URL.create("sqlite", database=str(path)),
        # The driver would begin transactions of its own kind.
        connect_args={"isolation_level": None, "timeout": busy_s, "check_same_thread": False},
        poolclass=sa.QueuePool,
        pool_size=connections,
        max_overflow=0,
    )

    @event.listens_for(engine, "connect")
    def set_up(connection: sqlite3.Connection, _record: object) -> None:
        cursor = connection.cursor()
        # A commit is on disk when it returns; WAL's default would lose the last ones at a power cut.
        cursor.execute("PRAGMA synchronous=FULL")
        cursor.execute("PRAGMA cache_size=-16000")
        cursor.execute("PRAGMA temp_store=MEMORY")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begin_transaction(connection: sa.Connection) -> None:
        connection.exec_driver_sql(begin)

    return engine
