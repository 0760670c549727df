from __future__ import annotations

import json
from pathlib import Path

import pytest

from pagemill.bench.quality import Heading, TextOrigin, load_collection, load_generated
from pagemill.domain.errors import SourceNotFoundError


def test_generated_pages_as_images_and_as_pdfs(tmp_path: Path) -> None:
    entry = {
        "lang": "en",
        "text": "Head\na b",
        "headings": [[1, "Head"]],
        "tables": [[["a", "b"]]],
        "tables_html": ["<table><tr><td colspan=2>a</td><td>b</td></tr></table>"],
    }
    (tmp_path / "gt.json").write_text(json.dumps({"s_one": entry, "h_two": entry, "x_gone": entry}))
    for name in ("s_one.png", "s_one.pdf", "h_two.jpg"):
        (tmp_path / name).touch()
    images = load_generated(tmp_path)
    assert [(s.id, s.path.suffix, s.category) for s in images] == [
        ("s_one", ".png", "structure"),
        ("h_two", ".jpg", "hold-out scans"),
    ]
    assert images[0].truth.headings == (Heading(1, "Head"),)
    assert images[0].truth.tables[0].grid() == [["a", "a", "b"]]
    assert [s.path.suffix for s in load_generated(tmp_path, pdfs=True)] == [".pdf"]


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    def entry(name: str, kind: str, truths: list[str], notes: str = "") -> str:
        truth = [f"{name}.gt.{suffix}" for suffix in truths]
        return json.dumps(
            {
                "id": name,
                "path": f"{name}.pdf",
                "category": "c",
                "language": "en",
                "ground_truth": truth,
                "ground_truth_type": kind,
                "notes": notes,
            }
        )

    files = {
        "a.gt.txt": "Total 12.50 and 7, page",
        "a.gt.fields.json": '[{"amount": 12.5, "other": 99.5, "count": 7}]',
        "b.gt.txt": "diplomatic",
        "b.gt.norm.txt": "modern",
        "c.gt.md": "# Head\n\n- item",
        "c.gt.txt": "Head • item 3",
        "d.gt.tests.jsonl": '{"id": "t", "type": "baseline", "max_length": 1}',
        "d.gt.csv": '"x, y",z\n',
        "d.gt.tables.html": "<table><tr><td>q</td></tr></table>",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, "utf-8")
    lines = [
        entry("a", "fields.json + text_layer", ["txt", "fields.json"]),
        entry("b", "PAGE-XML (human)", ["txt", "norm.txt"]),
        entry("c", "markdown_source + text_layer", ["md", "txt"]),
        entry("d", "unit_tests", ["tests.jsonl", "csv", "tables.html"], "sanity check only"),
    ]
    (tmp_path / "manifest.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_collection_reads_every_kind_of_ground_truth(collection: Path) -> None:
    a, b, c, d = load_collection(collection)
    assert (a.text_origin, a.truth.fields) == (TextOrigin.TEXT_LAYER, (12.5,))
    assert (b.text_origin, b.truth.text) == (TextOrigin.HUMAN, "modern")
    assert (c.text_origin, c.truth.headings) == (TextOrigin.WRITTEN, (Heading(1, "Head"),))
    assert (d.text_origin, d.truth.text, d.sanity_only) == (TextOrigin.NONE, None, True)
    assert [table.grid() for table in d.truth.tables] == [[["q"]], [["x, y", "z"]]]
    assert [fact.kind for fact in d.truth.facts] == ["baseline"]


def test_ground_truths_known_to_be_bad_can_be_named(collection: Path) -> None:
    assert [s.id for s in load_collection(collection, weak={"a"}) if s.sanity_only] == ["a", "d"]


@pytest.mark.parametrize("load", [load_generated, load_collection])
def test_a_folder_without_a_set_is_named(load: object, tmp_path: Path) -> None:
    assert callable(load)
    with pytest.raises(SourceNotFoundError, match=r"gt\.json|manifest\.jsonl"):
        load(tmp_path)


@pytest.mark.shared_data
def test_the_real_collection_can_be_read(shared_data: Path) -> None:
    samples = load_collection(shared_data / "quality")
    assert len(samples) > 50
    assert all(sample.path.is_file() for sample in samples)
    assert sum(len(sample.truth.tables) for sample in samples) >= 9
    assert sum(len(sample.truth.facts) for sample in samples) >= 20
    assert sum(len(sample.truth.fields) >= 3 for sample in samples if sample.category == "invoice") >= 8
