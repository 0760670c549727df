from __future__ import annotations

from pathlib import Path

import pytest

from pagemill.conversion.output_tree import OutputTree
from pagemill.domain import DocumentSource
from pagemill.domain.errors import OutputError

SHA = "a" * 64
OTHER = "b" * 64


def source(tmp_path: Path, name: str, folder: str = "in") -> DocumentSource:
    return DocumentSource(tmp_path / folder / name, name)


def test_documents_that_differ_in_suffix_keep_both(tmp_path: Path) -> None:
    tree = OutputTree(tmp_path / "out")
    first = tree.allocate(source(tmp_path, "sub/report.pdf"), SHA, ["md"])
    second = tree.allocate(source(tmp_path, "sub/report.png"), OTHER, ["md"])
    assert first.file("md") == "sub/report.md"
    assert second.file("md") == "sub/report.png.md"


def test_the_same_document_gets_the_same_place_again(tmp_path: Path) -> None:
    tree = OutputTree(tmp_path / "out")
    first = tree.allocate(source(tmp_path, "report.pdf"), SHA, ["md"])
    tree.write(first, [(first.file("md"), b"one")])
    changed = tree.allocate(source(tmp_path, "report.pdf"), OTHER, ["md"])
    assert changed == first
    assert OutputTree(tmp_path / "out").allocate(source(tmp_path, "report.pdf"), OTHER, ["md"]) == first


def test_another_folder_with_the_same_name_does_not_overwrite(tmp_path: Path) -> None:
    tree = OutputTree(tmp_path / "out")
    first = tree.allocate(source(tmp_path, "report.pdf", "march"), SHA, ["md"])
    second = tree.allocate(source(tmp_path, "report.pdf", "april"), OTHER, ["md"])
    third = tree.allocate(source(tmp_path, "report.pdf", "may"), "c" * 64, ["md"])
    assert [slot.file("md") for slot in (first, second, third)] == ["report.md", "report.pdf.md", "report.pdf-2.md"]


def test_a_document_that_moved_is_still_itself(tmp_path: Path) -> None:
    tree = OutputTree(tmp_path / "out")
    first = tree.allocate(source(tmp_path, "report.pdf", "old"), SHA, ["md"])
    assert tree.allocate(source(tmp_path, "report.pdf", "new"), SHA, ["md"]) == first


def test_a_foreign_file_is_never_overwritten(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "report.md").write_text("mine")
    tree = OutputTree(out)
    slot = tree.allocate(source(tmp_path, "report.pdf"), SHA, ["md"])
    tree.write(slot, [(slot.file("md"), b"converted")])
    assert (out / "report.md").read_text() == "mine"
    assert (out / "report.pdf.md").read_text() == "converted"


def test_an_edited_output_is_left_alone_unless_forced(tmp_path: Path) -> None:
    tree = OutputTree(tmp_path / "out")
    slot = tree.allocate(source(tmp_path, "report.pdf"), SHA, ["md"])
    (path,) = tree.write(slot, [(slot.file("md"), b"one")])
    path.write_text("edited")
    with pytest.raises(OutputError, match="was changed since pagemill wrote it"):
        tree.write(slot, [(slot.file("md"), b"two")])
    assert path.read_text() == "edited"
    OutputTree(tmp_path / "out", overwrite_changed=True).write(slot, [(slot.file("md"), b"two")])
    assert path.read_text() == "two"


def test_killed_between_record_and_file_is_no_edit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pagemill.conversion import output_tree

    tree = OutputTree(tmp_path / "out")
    slot = tree.allocate(source(tmp_path, "report.pdf"), SHA, ["md"])
    tree.write(slot, [(slot.file("md"), b"one")])
    real = output_tree.write_atomic

    def killed(path: Path, data: bytes, scratch: Path) -> None:
        if path.suffix == ".md":
            raise KeyboardInterrupt
        real(path, data, scratch)

    monkeypatch.setattr(output_tree, "write_atomic", killed)
    with pytest.raises(KeyboardInterrupt):
        tree.write(slot, [(slot.file("md"), b"two")])
    monkeypatch.undo()
    tree.write(slot, [(slot.file("md"), b"three")])
    assert (tmp_path / "out" / "report.md").read_bytes() == b"three"


def test_pictures_of_an_earlier_conversion_go_when_they_are_not_linked_any_more(tmp_path: Path) -> None:
    tree = OutputTree(tmp_path / "out")
    slot = tree.allocate(source(tmp_path, "report.pdf"), SHA, ["md"])
    tree.write(slot, [(f"{slot.assets}/a.png", b"a"), (f"{slot.assets}/b.png", b"b"), (slot.file("md"), b"1")])
    (tmp_path / "out" / slot.assets / "mine.png").write_bytes(b"mine")
    tree.write(slot, [(f"{slot.assets}/b.png", b"b"), (slot.file("md"), b"2")])
    left = sorted(path.name for path in (tmp_path / "out" / slot.assets).iterdir())
    assert left == ["b.png", "mine.png"]


@pytest.mark.parametrize(
    "name", ["../../etc/passwd.pdf", "/etc/passwd.pdf", "a/../../b.pdf", ".pagemill/outputs/x.pdf", "..", "", "x" * 300]
)
def test_no_name_leaves_the_output_folder_or_enters_its_state(tmp_path: Path, name: str) -> None:
    out = tmp_path / "out"
    tree = OutputTree(out)
    slot = tree.allocate(DocumentSource(tmp_path / "x.pdf", name), SHA, ["md"])
    (path,) = tree.write(slot, [(slot.file("md"), b"x")])
    assert path.resolve().is_relative_to(out.resolve())
    assert not path.resolve().is_relative_to((out / ".pagemill").resolve())


def test_own_pictures_are_told_from_documents(tmp_path: Path) -> None:
    tree = OutputTree(tmp_path)
    slot = tree.allocate(source(tmp_path, "report.pdf"), SHA, ["md"])
    tree.write(slot, [(f"{slot.assets}/a.png", b"a")])
    (tmp_path / "holiday.assets").mkdir()
    (tmp_path / "holiday.assets" / "scan.png").write_bytes(b"scan")
    assert tree.is_picture_of_output(tmp_path / slot.assets / "a.png")
    assert not tree.is_picture_of_output(tmp_path / "holiday.assets" / "scan.png")
    assert not tree.is_picture_of_output(tmp_path / "report.pdf")
