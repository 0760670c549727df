"""From a URL to a database."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy import exc

from pagemill.domain.errors import ConfigurationError, MissingDependencyError
from pagemill.jobs.sql.database import Clock, Database
from pagemill.jobs.sql.postgres import PostgresDatabase
from pagemill.jobs.sql.sqlite import SqliteDatabase
from pagemill.jobs.store import StoreOptions

_POSTGRES = frozenset({"postgres", "postgresql", "postgresql+asyncpg"})


def open_database(url: str, options: StoreOptions, *, process_id: str, clock: Clock | None = None) -> Database:
    """A database by its URL; nothing is opened before `Database.start`.

    Args:
        url: `postgresql://user@host/name`, `sqlite:///path`, or the path of a SQLite file.
        options: Bounds and times of the store.
        process_id: Names this process.
        clock: Seconds since the epoch, instead of the clock that all processes share; for tests.

    Raises:
        ConfigurationError: The URL cannot be used.
        MissingDependencyError: The driver is not installed.
    """
    if "://" not in url:
        return SqliteDatabase(Path(url), options, process_id, clock)
    try:
        parsed = sa.make_url(url)
    except (exc.ArgumentError, ValueError) as error:
        # The URL may hold a password; SQLAlchemy's message shows it.
        message = "The database URL cannot be read."
        raise ConfigurationError(message, "Give postgresql://user:password@host/name, or sqlite:///path.") from error
    if parsed.drivername == "sqlite" and parsed.database and parsed.database != ":memory:":
        return SqliteDatabase(Path(parsed.database), options, process_id, clock)
    if parsed.drivername in _POSTGRES:
        return PostgresDatabase(_for_asyncpg(parsed), options, process_id, clock)
    message = f"A database of the kind {parsed.drivername!r} cannot be used."
    raise ConfigurationError(message, "Give postgresql://user:password@host/name, or sqlite:///path of a file.")


def _for_asyncpg(url: sa.URL) -> sa.URL:
    if importlib.util.find_spec("asyncpg") is None:
        raise MissingDependencyError("PostgreSQL needs asyncpg.", "Install it with: pip install 'pagemill[postgres]'")
    query = dict(url.query)
    # libpq's name of it.
    if "sslmode" in query:
        query["ssl"] = query.pop("sslmode")
    return url.set(drivername="postgresql+asyncpg", query=query)
