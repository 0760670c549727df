"""A PostgreSQL server of the tests' own: real, in a temporary folder, reached by a Unix socket alone."""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

_SUPERUSER = "postgres"


def _binaries() -> Path | None:
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    return installed[-1].parent if installed else None


class PostgresServer:
    """One server; each test gets a database of its own."""

    def __init__(self, binaries: Path, folder: Path) -> None:
        self._binaries = binaries
        self._folder = folder
        self._numbers = itertools.count(1)

    def _run(self, program: str, *arguments: str) -> str:
        command = [str(self._binaries / program), *arguments]
        if os.getuid() == 0:
            # The server refuses to run as root.
            command = ["runuser", "-u", _SUPERUSER, "--", *command]
        done = subprocess.run(
            command, cwd=self._folder, capture_output=True, text=True, errors="replace", timeout=60, check=False
        )
        assert done.returncode == 0, f"{program} failed: {done.stdout}{done.stderr}"
        return done.stdout

    def create(self) -> None:
        if os.getuid() == 0:
            owner = pwd.getpwnam(_SUPERUSER)
            os.chown(self._folder, owner.pw_uid, owner.pw_gid)
        self._folder.chmod(0o755)
        self._run(
            "initdb", "--pgdata=data", f"--username={_SUPERUSER}", "--auth=trust", "--no-sync", "--encoding=UTF8",
            "--locale=C",
        )  # fmt: skip

    def start(self) -> None:
        options = (
            f"-c listen_addresses='' -c unix_socket_directories={self._folder} -c fsync=off -c max_connections=200"
        )
        self._run("pg_ctl", "--pgdata=data", "--log=log", "--wait", "--timeout=60", f"--options={options}", "start")

    def stop(self) -> None:
        """As a crash would: nobody is asked."""
        self._run("pg_ctl", "--pgdata=data", "--wait", "--mode=immediate", "stop")

    def new_database(self) -> str:
        """Makes an empty database; its URL."""
        name = f"test_{os.getpid()}_{next(self._numbers)}"
        self.sql(f"CREATE DATABASE {name}")
        return f"postgresql://{_SUPERUSER}@/{name}?host={self._folder}"

    def sql(self, statement: str, database: str = "postgres") -> str:
        """Runs a statement as the superuser."""
        return self._run(
            "psql", f"--host={self._folder}", f"--username={_SUPERUSER}", "--no-psqlrc", "--tuples-only", "--no-align",
            "--set=ON_ERROR_STOP=1", f"--command={statement}", database,
        )  # fmt: skip


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A running server; tests that need one are skipped where PostgreSQL is not installed."""
    binaries = _binaries()
    if binaries is None:
        pytest.skip("PostgreSQL (initdb, pg_ctl) is not installed")
    if os.getuid() == 0 and _SUPERUSER not in {entry.pw_name for entry in pwd.getpwall()}:
        pytest.skip("PostgreSQL does not run as root, and there is no user 'postgres'")
    # Short: the path of a socket may have some 100 characters.
    folder = Path(tempfile.mkdtemp(prefix="pm-pg-"))
    server = PostgresServer(binaries, folder)
    try:
        server.create()
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
