"""A job store with its blobs, for tests of what stands on them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pagemill.domain import NewJob, new_job_id
from pagemill.domain.job import Job
from pagemill.jobs.blob_stores import LocalBlobs
from pagemill.jobs.sql import SqlJobStore


@dataclass
class Service:
    """A store and its blobs, without the HTTP service."""

    store: SqlJobStore
    blobs: LocalBlobs

    async def submit(self, file: Path, **more: Any) -> Job:
        job_id = new_job_id()
        await self.blobs.put(f"documents/{job_id}", file)
        new = NewJob(
            id=job_id,
            key_id=more.pop("key_id", "key_a"),
            name=file.name,
            blob=f"documents/{job_id}",
            size=file.stat().st_size,
            sha256="0" * 64,
            **more,
        )
        ((job, _),) = await self.store.submit([new])
        return job
