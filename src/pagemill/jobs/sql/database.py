"""A database: transactions on it, its clock, and what its errors mean."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from pagemill.jobs.store import StoreOptions

T = TypeVar("T")
Clock = Callable[[], float]
Row = Mapping[str, Any]
"""A row, by names of columns."""


class Transaction:
    """A transaction under way; all that is done in it is kept, or nothing.

    Args:
        connection: Where it runs.
        clock: Asks for the time that all processes share.
    """

    def __init__(self, connection: sa.Connection, clock: Callable[[sa.Connection], float]) -> None:
        self._connection = connection
        self._clock = clock
        self._now: float | None = None

    @property
    def now(self) -> float:
        """Seconds since the epoch, the same each time within a transaction."""
        if self._now is None:
            self._now = self._clock(self._connection)
        return self._now

    def run(
        self, statement: sa.Executable, parameters: Sequence[Mapping[str, object]] | None = None
    ) -> sa.CursorResult[Any]:
        """Executes a statement, for each of the parameters where there are some."""
        return self._connection.execute(statement, parameters)

    def row(self, statement: sa.Executable) -> Row | None:
        """The first row; None where there is none."""
        found = self.run(statement).mappings().first()
        return None if found is None else cast("Row", found)

    def one(self, statement: sa.Executable) -> Row:
        """The row that there must be."""
        return cast("Row", self.run(statement).mappings().one())

    def rows(self, statement: sa.Executable) -> list[Row]:
        """All rows."""
        return cast("list[Row]", self.run(statement).mappings().all())

    def insert(self, table: sa.Table) -> sqlite.Insert | postgresql.Insert:
        """An insert that knows `on_conflict_...`."""
        return postgresql.insert(table) if self._connection.dialect.name == "postgresql" else sqlite.insert(table)


class Database(abc.ABC):
    """A database that all processes of the service share.

    Args:
        options: Bounds and times.
        process_id: Names this process to the database's operator.
        clock: Instead of the shared clock, for tests.
    """

    def __init__(self, options: StoreOptions, process_id: str, clock: Clock | None = None) -> None:
        self.options = options
        self.process_id = process_id
        self._given_clock = clock

    @abc.abstractmethod
    async def start(self) -> None:
        """Opens it and brings its schema up to date; several processes may do so at once.

        Raises:
            ConfigurationError: It cannot be used as it is.
            StoreUnavailableError: It does not answer.
        """

    @abc.abstractmethod
    async def aclose(self) -> None:
        """Closes all connections; may be called twice."""

    @abc.abstractmethod
    async def read(self, work: Callable[[Transaction], T]) -> T:
        """Runs statements that change nothing.

        Raises:
            StoreUnavailableError: The database does not answer.
        """

    @abc.abstractmethod
    async def write(self, work: Callable[[Transaction], T]) -> T:
        """Runs a transaction, once more where others were in its way; when it returns, all is on disk.

        `work` must do nothing but talk to the database: it may be run several times.

        Raises:
            StoreUnavailableError: The database does not answer. Unless it was busy, the transaction may have
                been done or not; every change is made so that it can safely be asked for again.
        """

    async def ping(self) -> None:
        """Asks it something.

        Raises:
            StoreUnavailableError: It does not answer.
        """
        await self.read(lambda transaction: transaction.run(sa.select(1)).scalar_one())
