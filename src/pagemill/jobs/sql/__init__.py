"""The store on SQLite or PostgreSQL.

Raises:
    MissingDependencyError: On import, where the packages of the gateway are not installed.
"""

from pagemill.domain.errors import MissingDependencyError

try:
    import alembic as _alembic  # noqa: F401
    import sqlalchemy as _sqlalchemy  # noqa: F401
except ImportError as error:
    raise MissingDependencyError(
        "The job store needs SQLAlchemy and Alembic.", "Install them with: pip install 'pagemill[gateway]'"
    ) from error

from pagemill.jobs.sql.connect import open_database
from pagemill.jobs.sql.database import Database
from pagemill.jobs.sql.job_store import SqlJobStore
from pagemill.jobs.sql.key_store import SqlKeyStore
from pagemill.jobs.sql.rate_store import SqlRateStore
from pagemill.jobs.sql.webhook_store import SqlWebhookStore

__all__ = ["Database", "SqlJobStore", "SqlKeyStore", "SqlRateStore", "SqlWebhookStore", "open_database"]
