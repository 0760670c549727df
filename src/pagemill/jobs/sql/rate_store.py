"""Token buckets on a SQL database."""

from __future__ import annotations

import sqlalchemy as sa

from pagemill.jobs.sql.database import Database, Transaction
from pagemill.jobs.sql.rows import clean
from pagemill.jobs.sql.tables import rates


class SqlRateStore:
    """See `RateStore`.

    A bucket is kept as the time at which it will be full again: one number, which nothing has to refill.

    Args:
        database: Where they are kept.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def take(self, bucket: str, *, rate: float, burst: float, patience: float = 0.0) -> float:
        """See `RateStore.take`."""
        return await self._database.write(lambda transaction: _take(transaction, clean(bucket), rate, burst, patience))


def _take(transaction: Transaction, bucket: str, rate: float, burst: float, patience: float) -> float:
    # Made first, so that there is a row to lock.
    transaction.run(
        transaction.insert(rates).values(bucket=bucket, full_at=0.0).on_conflict_do_nothing(index_elements=["bucket"])
    )
    stored = transaction.run(sa.select(rates.c.full_at).where(rates.c.bucket == bucket).with_for_update()).scalar_one()
    full_at = max(stored, transaction.now) + 1.0 / rate
    wait = float(full_at - transaction.now - burst / rate)
    # Adding and taking away times loses their last digits.
    wait = wait if wait > 1e-6 else 0.0
    if wait <= patience:
        transaction.run(sa.update(rates).where(rates.c.bucket == bucket).values(full_at=full_at))
    return wait
