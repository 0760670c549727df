"""Housekeeping that every process does: work whose holders have vanished, jobs overdue, results expired."""

from __future__ import annotations

import asyncio
import random

from pagemill.domain.errors import PagemillError
from pagemill.jobs.blobs import BlobStore
from pagemill.jobs.store import JobStore
from pagemill.telemetry import get_logger

_log = get_logger("pagemill.jobs")


class Janitor:
    """Sweeps at intervals.

    Args:
        store: The jobs.
        blobs: Their documents and pictures.
        interval_s: Seconds between two sweeps; jittered, so that processes do not sweep together.
    """

    def __init__(self, store: JobStore, blobs: BlobStore, interval_s: float) -> None:
        self._store = store
        self._blobs = blobs
        self._interval_s = interval_s

    async def run(self) -> None:
        """Sweeps until it is cancelled."""
        while True:
            await asyncio.sleep(self._interval_s * random.uniform(0.75, 1.25))  # noqa: S311 - no secret
            try:
                await self.sweep()
            except PagemillError as error:
                _log.warning("housekeeping failed", error=str(error))
            except Exception:  # noqa: BLE001 - without housekeeping, work of dead processes would wait for ever
                _log.exception("housekeeping failed in an unexpected way")

    async def sweep(self) -> None:
        """One round."""
        found = await self._store.sweep()
        if found.released or found.overdue or found.expired:
            _log.info("swept", released=found.released, overdue=len(found.overdue), expired=len(found.expired))
        if found.blobs:
            await self._blobs.delete(list(found.blobs))
            await self._store.forget_blobs(found.blobs)
