"""PostgreSQL, for services of many machines."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from pagemill.domain.errors import ConfigurationError, StoreUnavailableError
from pagemill.jobs.sql.database import Clock, Database, Transaction
from pagemill.jobs.sql.migrate import migrate
from pagemill.jobs.store import StoreOptions

T = TypeVar("T")
_CONNECTIONS = 8
_CONNECT_S = 10.0
_STATEMENT_S = 60.0
_TRIES = 10
_MIGRATION_LOCK = 0x7061_6765_6D69
"""Any number, as long as nobody else uses it: the letters of `pagemi`."""

_AGAIN = frozenset({"40001", "40P01", "55P03", "23505"})
"""Serialisation failure, deadlock, lock time-out, and a unique row that another transaction was faster to make."""

_MISCONFIGURED = ("28", "3D", "42501", "3F")
"""Classes of states that no waiting heals: log-in, unknown database, privileges, unknown schema."""

_UNAVAILABLE = ("08", "53", "57", "25P03", "25006", "58", "XX")
"""Connection, resources, shutting down or cancelled, idle too long, read-only (a standby), system, internal."""


class PostgresDatabase(Database):
    """A PostgreSQL database.

    Args:
        url: For the asyncpg driver.
        options: Bounds and times.
        process_id: Shown as the application's name.
        clock: Instead of the server's clock, for tests.
    """

    def __init__(self, url: sa.URL, options: StoreOptions, process_id: str, clock: Clock | None = None) -> None:
        super().__init__(options, process_id, clock)
        import asyncpg  # noqa: PLC0415 - an extra

        self._driver_errors: tuple[type[Exception], ...] = (asyncpg.PostgresError, asyncpg.InterfaceError)
        self._where = f"{url.host or url.query.get('host') or 'localhost'}/{url.database}"
        self._engine = create_async_engine(
            url,
            pool_size=_CONNECTIONS,
            max_overflow=0,
            pool_timeout=30.0,
            pool_pre_ping=True,
            connect_args={
                "timeout": _CONNECT_S,
                "command_timeout": _STATEMENT_S,
                "server_settings": {
                    "application_name": f"pagemill {process_id}",
                    # A process that was stopped in the middle of a transaction must not hold its locks for ever.
                    "idle_in_transaction_session_timeout": "15s",
                    "lock_timeout": "20s",
                    # Queries are small; compiling one takes longer than running it.
                    "jit": "off",
                },
            },
        )

    async def start(self) -> None:
        """See `Database.start`."""

        async def prepare(connection: AsyncConnection) -> None:
            await connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_MIGRATION_LOCK)))
            await connection.run_sync(migrate)

        await self._transact(prepare)

    async def aclose(self) -> None:
        """See `Database.aclose`."""
        await self._engine.dispose()

    async def read(self, work: Callable[[Transaction], T]) -> T:
        """See `Database.read`."""
        return await self.write(work)

    async def write(self, work: Callable[[Transaction], T]) -> T:
        """See `Database.write`."""

        def call(connection: sa.Connection) -> T:
            return work(Transaction(connection, self._time))

        return await self._transact(lambda connection: connection.run_sync(call))

    async def _transact(self, call: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        for last in [False] * (_TRIES - 1) + [True]:
            try:
                async with self._engine.begin() as connection:
                    return await call(connection)
            except exc.DBAPIError as error:
                if _state(error) in _AGAIN and not last:
                    continue
                raise self._explained(error) from error
            except (OSError, asyncio.TimeoutError, exc.TimeoutError) as error:
                raise self._unavailable(error) from error
            except self._driver_errors as error:
                # While a connection is made SQLAlchemy lets the driver's own errors through.
                heals = not str(getattr(error, "sqlstate", None) or "").startswith(_MISCONFIGURED)
                raise (self._unavailable(error) if heals else self._misconfigured(error)) from error
        raise AssertionError("unreachable")

    def _explained(self, error: exc.DBAPIError) -> Exception:
        state = _state(error)
        if state.startswith(_MISCONFIGURED):
            return self._misconfigured(error)
        lost = error.connection_invalidated or isinstance(error, (exc.InterfaceError, exc.OperationalError))
        if lost or state in _AGAIN or state.startswith(_UNAVAILABLE):
            return self._unavailable(error)
        return error

    def _misconfigured(self, error: Exception) -> ConfigurationError:
        message = f"PostgreSQL at {self._where} refuses the service: {_cause(error)}."
        return ConfigurationError(message, "Check the database URL, the database and the user's rights.")

    def _unavailable(self, error: Exception) -> StoreUnavailableError:
        message = f"PostgreSQL at {self._where} does not answer: {_cause(error)}."
        return StoreUnavailableError(message, "Check that it runs and can be reached; the service goes on by itself.")

    def _time(self, connection: sa.Connection) -> float:
        if self._given_clock is not None:
            return self._given_clock()
        seconds = sa.cast(sa.func.extract("epoch", sa.func.clock_timestamp()), sa.Double)
        return float(connection.execute(sa.select(seconds)).scalar_one())


def _state(error: exc.DBAPIError) -> str:
    found: Any = getattr(error.orig, "sqlstate", None) or getattr(error.orig, "pgcode", None)
    return found or ""


def _cause(error: Exception) -> str:
    # The text of SQLAlchemy's errors holds the statement and its values, which may be secret.
    cause = getattr(error, "orig", None) or error
    return (str(cause).split("\n", 1)[0] or type(cause).__name__).rstrip(".")
