"""API keys on a SQL database."""

from __future__ import annotations

import hashlib
import secrets

import sqlalchemy as sa

from pagemill.domain import ApiKey
from pagemill.domain.errors import JobConflictError, JobNotFoundError
from pagemill.jobs.sql.database import Database, Row, Transaction
from pagemill.jobs.sql.rows import clean
from pagemill.jobs.sql.tables import api_keys

_USED_EVERY_S = 300.0
_LONGEST = 200


class SqlKeyStore:
    """See `KeyStore`.

    Keys are random and long, so one round of SHA-256 hides them well; they are looked up by it, so that no comparison
    of keys takes more or less time for a better guess.

    Args:
        database: Where they are kept.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, name: str, *, admin: bool = False) -> tuple[ApiKey, str]:
        """See `KeyStore.create`."""
        key = f"pm_{secrets.token_urlsafe(32)}"
        key_id = f"key_{secrets.token_hex(8)}"
        return await self._database.write(
            lambda transaction: _create(transaction, clean(name), key_id, key, admin)
        ), key

    async def find(self, key: str) -> ApiKey | None:
        """See `KeyStore.find`."""
        if len(key) > _LONGEST:
            return None
        query = sa.select(api_keys).where(api_keys.c.hash == _hash(key), api_keys.c.revoked_at.is_(None))
        found, now = await self._database.read(lambda transaction: (transaction.row(query), transaction.now))
        if found is None:
            return None
        if found["last_used_at"] is None or now - found["last_used_at"] > _USED_EVERY_S:
            used = sa.update(api_keys).where(api_keys.c.id == found["id"]).values(last_used_at=now)
            await self._database.write(lambda transaction: transaction.run(used).rowcount)
            return _to_key({**found, "last_used_at": now})
        return _to_key(found)

    async def all_keys(self) -> list[ApiKey]:
        """See `KeyStore.all_keys`."""
        query = sa.select(api_keys).order_by(api_keys.c.created_at, api_keys.c.id)
        return [_to_key(row) for row in await self._database.read(lambda transaction: transaction.rows(query))]

    async def revoke(self, name_or_id: str) -> ApiKey:
        """See `KeyStore.revoke`."""
        return await self._database.write(lambda transaction: _revoke(transaction, clean(name_or_id)))


def _hash(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()


def _to_key(row: Row | dict[str, object]) -> ApiKey:
    names = ("id", "name", "admin", "created_at", "revoked_at", "last_used_at")
    return ApiKey(**{name: row[name] for name in names})  # type: ignore[arg-type]  # as the table has them


def _create(transaction: Transaction, name: str, key_id: str, key: str, admin: bool) -> ApiKey:
    taken = sa.select(api_keys.c.id).where(api_keys.c.name == name, api_keys.c.revoked_at.is_(None))
    if transaction.row(taken) is not None:
        message = f"There is a valid key with the name {name!r}."
        raise JobConflictError(message, "Choose another name, or revoke that key first.")
    made = ApiKey(key_id, name, admin, transaction.now)
    transaction.run(
        sa.insert(api_keys).values(id=key_id, name=name, hash=_hash(key), admin=admin, created_at=made.created_at)
    )
    return made


def _revoke(transaction: Transaction, name_or_id: str) -> ApiKey:
    named = sa.or_(api_keys.c.id == name_or_id, api_keys.c.name == name_or_id)
    query = sa.select(api_keys).where(named, api_keys.c.revoked_at.is_(None))
    # A name may look like the id of another key: the id goes first.
    found = transaction.row(query.order_by(sa.desc(api_keys.c.id == name_or_id)).with_for_update())
    if found is None:
        raise JobNotFoundError(f"There is no valid key {name_or_id!r}.", "List them with: pagemill keys list")
    now = transaction.now
    transaction.run(sa.update(api_keys).where(api_keys.c.id == found["id"]).values(revoked_at=now))
    return _to_key({**found, "revoked_at": now})
