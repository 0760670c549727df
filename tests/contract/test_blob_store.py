"""What every store of documents and pictures must keep to: a folder, and S3 by its real protocol."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from pagemill.domain.errors import ConfigurationError, MissingDependencyError, StoreUnavailableError
from pagemill.jobs.blob_stores import FsspecBlobs, LocalBlobs, open_blobs
from pagemill.jobs.blobs import BlobStore

OUTSIDE = [
    *("", "..", "../x", "documents/../../x", "/etc/passwd", "a//b", "a/./b", "documents/.hidden", "a\\..\\b"),
    *("a\0b", "documents/x\n", "documents/" + "x" * 300, "documents/é", "s3://other/x"),
]


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    server_module = pytest.importorskip("moto.server", reason="moto is not installed: no S3 to test with")
    pytest.importorskip("s3fs", reason="s3fs is not installed")
    server = server_module.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def s3_url(s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A bucket of its own; the environment leads to it, as an operator would set it."""
    import boto3

    for name, value in {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": s3_endpoint,
    }.items():
        monkeypatch.setenv(name, value)
    bucket = f"bucket-{uuid.uuid4().hex}"
    client = boto3.client("s3", endpoint_url=s3_endpoint)
    client.create_bucket(Bucket=bucket)
    client.close()
    return f"s3://{bucket}/some/prefix"


@pytest.fixture(params=["local", "s3"])
async def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[BlobStore]:
    where: str | Path = tmp_path / "blobs" if request.param == "local" else request.getfixturevalue("s3_url")
    store = open_blobs(where, tmp_path / "scratch")
    yield store
    await store.aclose()


async def test_what_was_put_is_there_under_its_name_alone(blobs: BlobStore, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"from a file")
    await blobs.put("documents/job_1", source)
    await blobs.put_bytes("figures/job_1/a.png", b"from memory")
    assert await blobs.get_bytes("documents/job_1") == b"from a file"
    assert await blobs.get_bytes("figures/job_1/a.png") == b"from memory"
    assert await blobs.get_bytes("documents/job_2") is None
    assert source.read_bytes() == b"from a file"


async def test_a_blob_of_the_same_name_is_replaced_also_where_a_copy_is_in_use(blobs: BlobStore) -> None:
    await blobs.put_bytes("documents/job_1", b"old")
    async with blobs.local("documents/job_1") as path:
        assert path.read_bytes() == b"old"
    await blobs.put_bytes("documents/job_1", b"newer")
    assert await blobs.get_bytes("documents/job_1") == b"newer"
    async with blobs.local("documents/job_1") as path:
        assert path.read_bytes() == b"newer"


async def test_large_and_empty_blobs_come_back_as_they_were(blobs: BlobStore, tmp_path: Path) -> None:
    large = os.urandom(7_000_000)
    source = tmp_path / "large"
    source.write_bytes(large)
    await blobs.put("documents/large", source)
    await blobs.put_bytes("documents/empty", b"")
    async with blobs.local("documents/large") as path:
        assert path.read_bytes() == large
    async with blobs.local("documents/empty") as path:
        assert path.read_bytes() == b""


async def test_local_files_can_be_had_by_many_at_once(blobs: BlobStore) -> None:
    for number in range(3):
        await blobs.put_bytes(f"documents/job_{number}", f"text {number}".encode())

    async def read(number: int) -> bytes:
        async with blobs.local(f"documents/job_{number}") as path:
            await asyncio.sleep(0)
            return path.read_bytes()

    found = await asyncio.gather(*(read(number % 3) for number in range(30)))
    assert found == [f"text {number % 3}".encode() for number in range(30)]


async def test_deleted_blobs_are_gone_and_others_stay(blobs: BlobStore) -> None:
    for name in ("figures/job_1/a", "figures/job_1/b", "figures/job_2/a", "documents/job_1"):
        await blobs.put_bytes(name, name.encode())
    await blobs.delete(["figures/job_1/a", "figures/job_1/b", "documents/never-there", "figures/job_9/x"])
    assert await blobs.get_bytes("figures/job_1/a") is None
    assert await blobs.get_bytes("figures/job_2/a") == b"figures/job_2/a"
    assert await blobs.get_bytes("documents/job_1") == b"documents/job_1"
    await blobs.put_bytes("figures/job_1/a", b"again")
    assert await blobs.get_bytes("figures/job_1/a") == b"again"


async def test_a_local_file_of_what_is_not_there_is_an_error_that_can_be_told(blobs: BlobStore) -> None:
    with pytest.raises(StoreUnavailableError, match="documents/nothing"):
        async with blobs.local("documents/nothing"):
            pass
    await blobs.put_bytes("documents/nothing", b"now it is")
    async with blobs.local("documents/nothing") as path:
        assert path.read_bytes() == b"now it is"


async def test_errors_within_the_block_pass_through_unchanged(blobs: BlobStore) -> None:
    await blobs.put_bytes("documents/job_1", b"x")
    with pytest.raises(FileNotFoundError, match="mine"):
        async with blobs.local("documents/job_1"):
            raise FileNotFoundError("mine")


@pytest.mark.parametrize(
    "name",
    OUTSIDE,
)
async def test_no_name_can_lead_out_of_the_store(blobs: BlobStore, name: str, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"x")
    with pytest.raises(ValueError, match="no name"):
        await blobs.put(name, source)
    with pytest.raises(ValueError, match="no name"):
        await blobs.put_bytes(name, b"x")
    with pytest.raises(ValueError, match="no name"):
        await blobs.get_bytes(name)
    with pytest.raises(ValueError, match="no name"):
        await blobs.delete(["documents/fine", name])
    with pytest.raises(ValueError, match="no name"):
        async with blobs.local(name):
            pass


async def test_a_folder_shows_no_part_of_a_blob_and_leaves_nothing_behind(tmp_path: Path) -> None:
    blobs = LocalBlobs(tmp_path / "blobs")
    await blobs.put_bytes("documents/job_1", b"old")

    def files() -> set[str]:
        return {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}

    with pytest.raises(FileNotFoundError):
        await blobs.put("documents/job_1", tmp_path / "missing")
    assert files() == {"blobs/documents/job_1"}
    assert await blobs.get_bytes("documents/job_1") == b"old"


async def test_a_folder_can_be_filled_and_emptied_at_once(tmp_path: Path) -> None:
    """The folder of a job goes with its last picture, even while another is on its way into it."""
    blobs = LocalBlobs(tmp_path)
    for _ in range(50):
        await blobs.put_bytes("figures/job_1/a", b"a")
        await asyncio.gather(blobs.delete(["figures/job_1/a"]), blobs.put_bytes("figures/job_1/b", b"b"))
        assert await blobs.get_bytes("figures/job_1/b") == b"b"
        await blobs.delete(["figures/job_1/b"])


async def test_a_storage_that_cannot_be_written_is_told_with_the_place(tmp_path: Path) -> None:
    (tmp_path / "blobs").write_text("a file in the way")
    with pytest.raises(StoreUnavailableError, match="blobs"):
        await LocalBlobs(tmp_path / "blobs").put_bytes("documents/job_1", b"x")


async def test_a_bucket_that_is_missing_is_told_without_secrets(s3_url: str, tmp_path: Path) -> None:
    blobs = FsspecBlobs("s3://user:hush@no-such-bucket/prefix", tmp_path)
    with pytest.raises(StoreUnavailableError) as caught:
        await blobs.put_bytes("documents/job_1", b"x")
    assert "no-such-bucket" in str(caught.value)
    assert "hush" not in str(caught.value)
    await blobs.aclose()


async def test_copies_are_kept_within_bounds_and_never_taken_from_those_who_read_them(
    s3_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pagemill.jobs.blob_stores._CACHE_BYTES", 250)
    blobs = FsspecBlobs(s3_url, tmp_path / "scratch")

    def copies() -> int:
        return sum(path.is_file() for path in (tmp_path / "scratch").rglob("*"))

    for number in range(5):
        await blobs.put_bytes(f"documents/job_{number}", bytes([number]) * 100)
    async with blobs.local("documents/job_0") as first:
        for number in range(1, 5):
            async with blobs.local(f"documents/job_{number}") as path:
                assert path.read_bytes() == bytes([number]) * 100
        assert first.read_bytes() == bytes(100)
        assert copies() == 3
    assert copies() == 2
    async with blobs.local("documents/job_1") as path:
        assert path.read_bytes() == b"\1" * 100
    await blobs.aclose()
    assert copies() == 0


async def test_copies_of_processes_that_were_killed_are_removed(s3_url: str, tmp_path: Path) -> None:
    left = tmp_path / "scratch" / "blobs-999999999-x"
    left.mkdir(parents=True)
    (left / "copy").write_bytes(b"x")
    blobs = FsspecBlobs(s3_url, tmp_path / "scratch")
    await blobs.put_bytes("documents/job_1", b"x")
    async with blobs.local("documents/job_1"):
        assert not left.exists()
    await blobs.aclose()


async def test_who_gives_up_waiting_for_a_copy_does_not_take_it_from_others(s3_url: str, tmp_path: Path) -> None:
    blobs = FsspecBlobs(s3_url, tmp_path / "scratch")
    await blobs.put_bytes("documents/job_1", b"x" * 3_000_000)

    async def read() -> int:
        async with blobs.local("documents/job_1") as path:
            return len(path.read_bytes())

    readers = [asyncio.create_task(read()) for _ in range(4)]
    while not (tmp_path / "scratch").exists():
        await asyncio.sleep(0.001)
    readers[0].cancel()
    assert (await asyncio.gather(*readers, return_exceptions=True))[1:] == [3_000_000] * 3
    await blobs.aclose()


def test_a_place_chooses_the_store(tmp_path: Path) -> None:
    assert isinstance(open_blobs(tmp_path / "x", tmp_path), LocalBlobs)
    assert isinstance(open_blobs(str(tmp_path / "x"), tmp_path), LocalBlobs)
    assert isinstance(open_blobs(f"file://{tmp_path}/x", tmp_path), LocalBlobs)
    with pytest.raises(ConfigurationError, match="nonsense"):
        open_blobs("nonsense://x", tmp_path)


def test_a_missing_package_is_named_with_what_installs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fsspec.registry import _registry

    monkeypatch.delitem(_registry, "s3", raising=False)
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(MissingDependencyError, match=r"pagemill\[s3\]"):
        open_blobs("s3://bucket/x", tmp_path)
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(MissingDependencyError, match=r"pagemill\[gateway\]"):
        open_blobs("s3://bucket/x", tmp_path)


async def test_a_folder_can_be_moved_to_another_place(tmp_path: Path) -> None:
    await LocalBlobs(tmp_path / "a").put_bytes("documents/job_1", b"x")
    shutil.move(tmp_path / "a", tmp_path / "b")
    assert await LocalBlobs(tmp_path / "b").get_bytes("documents/job_1") == b"x"
