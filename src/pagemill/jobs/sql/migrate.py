"""Brings a database to the schema of this code."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError

from pagemill.domain.errors import ConfigurationError

_MIGRATIONS = Path(__file__).parent / "migrations"


def migrate(connection: sa.Connection) -> None:
    """Takes the steps that are missing.

    The caller has begun a transaction, holds a lock against others who do the same, and commits.

    Raises:
        ConfigurationError: The database was made by a newer version.
    """
    scripts = ScriptDirectory(str(_MIGRATIONS))
    head = scripts.get_current_head()
    found = MigrationContext.configure(connection).get_current_revision()
    if found == head:
        return
    try:
        scripts.get_revision(found or "base")
    except CommandError as error:
        message = f"The database is of version {found!r}; this version of pagemill knows none beyond {head!r}."
        raise ConfigurationError(message, "Install the newer pagemill again, or use another database.") from error

    def steps(revision: object, _context: object) -> object:
        return scripts._upgrade_revs("head", revision)  # type: ignore[arg-type]

    context = MigrationContext.configure(connection, opts={"fn": steps, "script": scripts})
    with Operations.context(context):
        context.run_migrations()
