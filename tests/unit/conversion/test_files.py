from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from pagemill.conversion.files import read_checked, remove_abandoned, write_atomic, write_checked
from pagemill.domain.errors import OutputError


def test_checked_file_comes_back_as_it_was(tmp_path: Path) -> None:
    write_checked(tmp_path / "a" / "b.bin", b"content", tmp_path / "tmp")
    assert read_checked(tmp_path / "a" / "b.bin") == b"content"


@pytest.mark.parametrize("damage", ["cut", "flip", "empty"])
def test_damaged_file_counts_as_absent(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "b.bin"
    write_checked(path, b"content", tmp_path)
    raw = path.read_bytes()
    path.write_bytes({"cut": raw[:-2], "flip": raw[:-1] + b"X", "empty": b""}[damage])
    assert read_checked(path) is None


def test_failed_write_keeps_the_old_content_and_leaves_nothing_behind(tmp_path: Path) -> None:
    folder = tmp_path / "target"
    folder.mkdir()
    scratch = tmp_path / "scratch"
    with pytest.raises(OutputError, match="cannot be written"):
        write_atomic(folder, b"new", scratch)
    assert folder.is_dir()
    assert list(scratch.iterdir()) == []


def test_full_disk_is_said_plainly() -> None:
    from pagemill.conversion.files import output_error

    assert "No space is left" in str(output_error(Path("x"), OSError(28, "No space left on device")))


def test_only_old_unfinished_files_are_removed(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_bytes(b"")
    new.write_bytes(b"")
    long_ago = time.time() - 7200
    os.utime(old, (long_ago, long_ago))
    remove_abandoned(tmp_path)
    assert not old.exists()
    assert new.exists()


def test_files_get_the_usual_permissions(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_bytes(b"")
    write_atomic(tmp_path / "written", b"", tmp_path)
    assert (tmp_path / "written").stat().st_mode == plain.stat().st_mode
