from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from pagemill.documents import PasswordBook, resolve_sources
from pagemill.domain.errors import InputError, OutputError, SourceNotFoundError


def touch(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")


def names(spool: Path, *inputs: str | Path) -> list[str]:
    return [source.name for source in resolve_sources([str(item) for item in inputs], spool_folder=spool)]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    touch(folder, "page10.pdf", "page2.PDF", "sub/deep/scan.tif", "sub/a.jpeg", "notes.txt", "noext")
    touch(folder, ".hidden.pdf", ".git/x.pdf", "sub/.secret/y.pdf")
    return folder


def test_a_folder_mirrors_its_tree_in_natural_order_without_hidden_files(tree: Path, spool: Path) -> None:
    assert names(spool, tree) == ["page2.PDF", "page10.pdf", "sub/a.jpeg", "sub/deep/scan.tif"]


def test_a_named_file_is_taken_whatever_its_suffix(tree: Path, spool: Path) -> None:
    assert names(spool, tree / "noext", tree / "notes.txt") == ["noext", "notes.txt"]


def test_patterns_are_relative_to_their_fixed_part(tree: Path, spool: Path) -> None:
    assert names(spool, tree / "*.pdf") == ["page10.pdf"]
    assert names(spool, f"{tree}/**/*.*f") == ["page10.pdf", "sub/deep/scan.tif"]
    assert names(spool, f"{tree}/s[tu]b/**") == ["sub/a.jpeg", "sub/deep/scan.tif"]


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(tmp_path: Path, spool: Path) -> None:
    touch(tmp_path, "a[1].pdf", "a1.pdf")
    assert names(spool, tmp_path / "a[1].pdf") == ["a[1].pdf"]


def test_the_same_file_is_found_once(tree: Path, spool: Path) -> None:
    assert names(spool, tree / "page10.pdf", tree, tree / "*.pdf").count("page10.pdf") == 1
    assert len(names(spool, tree, tree)) == 4


def test_clashing_names_get_the_input_in_front(tmp_path: Path, spool: Path) -> None:
    touch(tmp_path, "a/x.pdf", "b/x.pdf", "b/y.pdf")
    assert names(spool, tmp_path / "a", tmp_path / "b") == ["a/x.pdf", "b/x.pdf", "y.pdf"]


def test_names_that_clash_even_then_are_numbered(tmp_path: Path, spool: Path) -> None:
    touch(tmp_path, "1/d/x.pdf", "2/d/x.pdf", "3/d/X.pdf")
    found = names(spool, *(tmp_path / number / "d" for number in "123"))
    assert found == ["d/x.pdf", "d/x-2.pdf", "d/X-3.pdf"]


@pytest.mark.parametrize("name", ["missing.pdf", "missing/*.pdf", ""])
def test_a_missing_input_is_named(tmp_path: Path, spool: Path, name: str) -> None:
    with pytest.raises(SourceNotFoundError) as caught:
        names(spool, str(tmp_path / name) if name else name)
    assert name in str(caught.value)


def test_a_folder_without_documents_is_an_error(tmp_path: Path, spool: Path) -> None:
    touch(tmp_path / "only", "notes.txt")
    with pytest.raises(SourceNotFoundError, match="holds no documents"):
        names(spool, tmp_path / "only")


def test_circles_of_links_end(tmp_path: Path, spool: Path) -> None:
    touch(tmp_path / "in", "a/x.pdf")
    (tmp_path / "in/a/up").symlink_to(tmp_path / "in")
    (tmp_path / "in/a/self").symlink_to(tmp_path / "in/a")
    (tmp_path / "in/b").symlink_to(tmp_path / "in/a")
    assert names(spool, tmp_path / "in") == ["a/x.pdf", "b/x.pdf"]
    assert "a/x.pdf" in names(spool, f"{tmp_path}/in/**/*.pdf")


def test_a_pipe_is_refused_instead_of_waited_for(tmp_path: Path, spool: Path) -> None:
    os.mkfifo(tmp_path / "pipe.pdf")
    with pytest.raises(SourceNotFoundError, match="no regular file"):
        names(spool, tmp_path / "pipe.pdf")
    touch(tmp_path, "real.pdf")
    assert names(spool, tmp_path) == ["real.pdf"]


def test_standard_input_is_spooled_once(spool: Path) -> None:
    (source,) = resolve_sources(["-", "-"], stdin=io.BytesIO(b"%PDF-"), spool_folder=spool)
    assert source.name == "stdin"
    assert source.path.read_bytes() == b"%PDF-"
    assert source.path.parent == spool


def test_a_terminal_as_standard_input_is_refused(spool: Path) -> None:
    class Terminal(io.BytesIO):
        def isatty(self) -> bool:
            return True

    with pytest.raises(InputError, match="terminal"):
        resolve_sources(["-"], stdin=Terminal(), spool_folder=spool)


def test_a_spool_that_cannot_be_written_is_an_output_error(spool: Path) -> None:
    with pytest.raises(OutputError, match="spooled"):
        resolve_sources(["-"], stdin=io.BytesIO(b"x"), spool_folder=spool / "absent")


def test_passwords_are_chosen_by_name(tree: Path, spool: Path) -> None:
    book = PasswordBook.from_lines(["common", "sub/*\tspecial"])
    sources = resolve_sources([str(tree)], spool_folder=spool, passwords=book)
    assert {source.name: source.passwords for source in sources}["sub/a.jpeg"] == ("special", "common")
    assert sources[0].passwords == ("common",)
    assert "common" not in repr(sources)
