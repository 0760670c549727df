from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from job_service import Service
from pagemill.jobs.blob_stores import LocalBlobs
from pagemill.jobs.sql import SqlJobStore, open_database
from pagemill.jobs.store import StoreOptions


@pytest.fixture
def store_options() -> StoreOptions:
    return StoreOptions(lease_s=2.0, chunk_pages=2)


@pytest.fixture
async def service(tmp_path: Path, store_options: StoreOptions) -> AsyncIterator[Service]:
    database = open_database(str(tmp_path / "jobs.sqlite"), store_options, process_id="test")
    await database.start()
    yield Service(SqlJobStore(database), LocalBlobs(tmp_path / "blobs"))
    await database.aclose()
