"""Webhooks on a SQL database."""

from __future__ import annotations

import sqlalchemy as sa

from pagemill.jobs.sql.database import Database, Transaction
from pagemill.jobs.sql.rows import clean, to_job
from pagemill.jobs.sql.tables import deliveries
from pagemill.jobs.store import Delivery

_TAKEN_FOR_S = 60.0


class SqlWebhookStore:
    """See `WebhookStore`.

    Args:
        database: Where they are kept.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def due(self, owner: str, limit: int = 20) -> list[Delivery]:
        """See `WebhookStore.due`."""
        waiting = await self._database.read(_any_due)
        return await self._database.write(lambda transaction: _take(transaction, owner, limit)) if waiting else []

    async def delivered(self, delivery: Delivery) -> None:
        """See `WebhookStore.delivered`."""
        done = sa.delete(deliveries).where(deliveries.c.id == delivery.id)
        await self._database.write(lambda transaction: transaction.run(done).rowcount)

    async def failed(self, delivery: Delivery, error: str, *, retry_in_s: float | None) -> None:
        """See `WebhookStore.failed`."""
        await self._database.write(lambda transaction: _put_off(transaction, delivery, error, retry_in_s))


def _any_due(transaction: Transaction) -> bool:
    query = sa.select(deliveries.c.id).where(deliveries.c.due_at <= transaction.now).limit(1)
    return transaction.row(query) is not None


def _take(transaction: Transaction, owner: str, limit: int) -> list[Delivery]:
    query = sa.select(deliveries).where(deliveries.c.due_at <= transaction.now).order_by(deliveries.c.due_at)
    found = transaction.rows(query.limit(limit).with_for_update(skip_locked=True))
    if found:
        transaction.run(
            sa.update(deliveries)
            .where(deliveries.c.id.in_([row["id"] for row in found]))
            .values(owner=owner, due_at=transaction.now + _TAKEN_FOR_S, attempt=deliveries.c.attempt + 1)
        )
    return [Delivery(row["id"], to_job(row["job"]), row["url"], row["attempt"] + 1) for row in found]


def _put_off(transaction: Transaction, delivery: Delivery, error: str, retry_in_s: float | None) -> None:
    due_at = None if retry_in_s is None else transaction.now + retry_in_s
    # Another process may have taken it meanwhile: then it decides.
    mine = (deliveries.c.id == delivery.id, deliveries.c.attempt == delivery.attempt)
    transaction.run(sa.update(deliveries).where(*mine).values(due_at=due_at, owner=None, error=clean(error)))
