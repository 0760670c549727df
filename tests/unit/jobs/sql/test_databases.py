"""Opening databases: URLs, the schema, and what happens when a database does not answer."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from pathlib import Path

import asyncpg
import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

from pagemill.domain import JobStatus
from pagemill.domain.errors import ConfigurationError, MissingDependencyError, StoreUnavailableError
from pagemill.jobs.sql import Database, SqlJobStore, open_database
from pagemill.jobs.sql.postgres import PostgresDatabase
from pagemill.jobs.sql.sqlite import SqliteDatabase
from pagemill.jobs.sql.tables import metadata
from pagemill.jobs.store import StoreOptions
from postgres import PostgresServer
from stores import submit, work_off


def opened(url: str) -> Database:
    return open_database(url, StoreOptions(), process_id="test")


@pytest.mark.parametrize("url", ["postgres://u:p@h/d", "postgresql://u@h/d?sslmode=require", "postgresql+asyncpg:///d"])
def test_urls_of_postgresql(url: str) -> None:
    assert isinstance(opened(url), PostgresDatabase)


@pytest.mark.parametrize("url", ["jobs.db", "/var/lib/jobs.db", "sqlite:///jobs.db", "sqlite:////var/lib/jobs.db"])
def test_urls_of_sqlite(url: str) -> None:
    assert isinstance(opened(url), SqliteDatabase)


@pytest.mark.parametrize(
    "url", ["mysql://user:hush@host/d", "sqlite://", "sqlite:///:memory:", "postgresql://u:hush@h:port/d", "://hush"]
)
def test_other_urls_are_refused_without_their_passwords(url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        opened(url)
    assert "hush" not in str(caught.value)


def test_a_missing_driver_is_named_with_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    with pytest.raises(MissingDependencyError, match=r"pagemill\[postgres\]"):
        opened("postgresql://u@h/d")


def test_without_the_packages_of_the_gateway_the_extra_is_named() -> None:
    program = "import sys; sys.modules['sqlalchemy'] = None; import pagemill.jobs.sql"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert "MissingDependencyError" in done.stderr.splitlines()[-1]
    assert "pagemill[gateway]" in done.stderr.splitlines()[-1]


async def test_the_migrations_make_the_tables_that_the_code_knows(database: Database) -> None:
    def differences(transaction: object) -> object:
        context = MigrationContext.configure(transaction._connection, opts={"compare_type": True})  # type: ignore[attr-defined]
        return compare_metadata(context, metadata)

    assert await database.read(differences) == []


async def test_starts_at_the_same_time_make_the_schema_once(store_url: str) -> None:
    """In processes of their own, as services start."""
    program = (
        "import asyncio, sys\n"
        "from pagemill.jobs.sql import open_database\n"
        "from pagemill.jobs.store import StoreOptions\n"
        "async def main():\n"
        "    database = open_database(sys.argv[1], StoreOptions(), process_id='x')\n"
        "    print('ready', flush=True)\n"
        "    sys.stdin.readline()\n"
        "    await database.start()\n"
        "    await database.ping()\n"
        "    await database.aclose()\n"
        "asyncio.run(main())\n"
    )
    pipe = asyncio.subprocess.PIPE
    starting = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", program, store_url, stdin=pipe, stdout=pipe, stderr=pipe
        )
        for _ in range(4)
    ]
    for process in starting:
        assert process.stdout is not None
        assert await process.stdout.readline() == b"ready\n"
    answers = await asyncio.gather(*(process.communicate(b"\n") for process in starting))
    assert [process.returncode for process in starting] == [0] * 4, answers


async def test_a_database_of_a_newer_version_is_refused(store_url: str, database: Database) -> None:
    newer = sa.text("UPDATE alembic_version SET version_num = '9999'")
    await database.write(lambda transaction: transaction.run(newer).rowcount)
    other = opened(store_url)
    with pytest.raises(ConfigurationError, match="9999"):
        await other.start()
    await other.aclose()


async def test_jobs_are_still_there_after_a_new_start(store_url: str) -> None:
    first = opened(store_url)
    await first.start()
    job = await submit(SqlJobStore(first))
    await first.aclose()
    second = opened(store_url)
    await second.start()
    assert await SqlJobStore(second).get(job.id) == job
    await second.aclose()
    await second.aclose()


async def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    path.write_bytes(b"this is no database, but long enough to be looked at as one " * 100)
    database = opened(str(path))
    with pytest.raises(ConfigurationError, match=r"jobs\.db"):
        await database.start()
    await database.aclose()


async def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    database = opened(str(tmp_path / "file" / "jobs.db"))
    with pytest.raises(ConfigurationError, match="folder"):
        await database.start()
    await database.aclose()


async def test_a_commit_of_sqlite_survives_a_power_cut(tmp_path: Path) -> None:
    database = opened(str(tmp_path / "jobs.db"))
    await database.start()
    pragma = {
        name: await database.write(lambda transaction, name=name: transaction.run(sa.text(f"PRAGMA {name}")).scalar())
        for name in ("journal_mode", "synchronous")
    }
    assert pragma == {"journal_mode": "wal", "synchronous": 2}
    await database.aclose()


async def test_a_lock_that_goes_away_is_waited_for_and_one_that_stays_is_told(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    database = SqliteDatabase(path, StoreOptions(), "test", busy_s=0.3)
    await database.start()
    store = SqlJobStore(database)
    job = await submit(store)
    blocker = sqlite3.connect(path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailableError, match="locked") as caught:
        await store.cancel(job.id)
    assert caught.value.retryable
    assert (await store.get(job.id)).status is JobStatus.QUEUED, "reading goes on"
    patient = SqliteDatabase(path, StoreOptions(), "test", busy_s=60)
    waiting = asyncio.create_task(SqlJobStore(patient).cancel(job.id))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    blocker.execute("ROLLBACK")
    blocker.close()
    assert (await waiting).status is JobStatus.CANCELLED
    await patient.aclose()
    await database.aclose()


async def test_a_closed_database_says_so(tmp_path: Path) -> None:
    database = opened(str(tmp_path / "jobs.db"))
    await database.start()
    await database.aclose()
    with pytest.raises(StoreUnavailableError, match="closed"):
        await database.ping()


async def test_a_server_that_goes_away_is_told_and_its_return_is_noticed(postgres: PostgresServer) -> None:
    database = opened(postgres.new_database())
    await database.start()
    store = SqlJobStore(database)
    job = await submit(store)
    postgres.stop()
    try:
        for _ in range(10):
            for call in (database.ping(), store.get(job.id), store.cancel(job.id)):
                with pytest.raises(StoreUnavailableError):
                    await call
    finally:
        postgres.start()
    assert await store.get(job.id) == job
    await work_off(store)
    assert (await store.get(job.id)).status is JobStatus.SUCCEEDED
    await database.aclose()


async def test_a_connection_that_breaks_while_it_is_made_is_an_outage(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = opened(postgres.new_database())
    await database.start()
    await database.aclose()  # the next transaction connects anew

    async def broken(*_arguments: object, **_options: object) -> None:
        raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")

    monkeypatch.setattr(asyncpg, "connect", broken)
    with pytest.raises(StoreUnavailableError, match="closed in the middle"):
        await database.ping()
    monkeypatch.undo()
    await database.ping()
    await database.aclose()


async def test_a_server_that_dies_amid_work_loses_nothing(postgres: PostgresServer) -> None:
    database = opened(postgres.new_database())
    await database.start()
    store = SqlJobStore(database)
    accepted: list[str] = []
    refused = 0

    async def client() -> None:
        nonlocal refused
        while refused < 4:
            try:
                accepted.append((await submit(store)).id)
            except StoreUnavailableError:
                refused += 1
                await asyncio.sleep(0.01)

    clients = [asyncio.create_task(client()) for _ in range(4)]
    while len(accepted) < 20:
        await asyncio.sleep(0.01)
    await asyncio.to_thread(postgres.stop)
    await asyncio.gather(*clients)
    await asyncio.to_thread(postgres.start)
    for job_id in accepted:
        assert (await store.get(job_id)).status is JobStatus.QUEUED
    await database.aclose()


async def test_a_server_that_is_not_there_or_refuses_is_told_with_the_place(postgres: PostgresServer) -> None:
    gone = opened("postgresql://user:hush@127.0.0.1:1/jobs")
    with pytest.raises(StoreUnavailableError, match=r"127\.0\.0\.1/jobs") as caught:
        await gone.start()
    assert "hush" not in str(caught.value)
    await gone.aclose()
    missing = opened(postgres.new_database().replace("/test_", "/missing_"))
    with pytest.raises(ConfigurationError, match="missing_"):
        await missing.start()
    await missing.aclose()
