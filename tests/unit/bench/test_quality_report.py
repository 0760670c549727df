"""The scripts beside the package: they are not installed, so their folder is put on the path."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from pagemill.bench.quality import Heading, Truth, score
from pagemill.bench.quality.tables import table_from_rows

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def scripts_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "bench"))


def document(name: str, category: str, truth: Truth, markdown: str, **more: Any) -> dict[str, Any]:
    return {
        "id": name,
        "category": category,
        "language": truth.language,
        "text_origin": "written",
        "sanity_only": False,
        "pages": 1,
        "problems": [],
        "seconds": 2.0,
        "score": dataclasses.asdict(score(markdown, truth)),
        **more,
    }


@pytest.fixture
def results() -> dict[str, Any]:
    prose = Truth("en", text="abcdefghij", headings=(Heading(1, "abcdefghij"),))
    table = Truth("en", text="H a b", headings=(Heading(1, "H"),), tables=(table_from_rows([["a", "b"]]),))
    images = [
        document("lang_en", "prose, clean", prose, "# abcdefghij"),
        document("scan_en", "prose, scan", prose, "# abcdefghiX"),
        document("s_table", "structure", table, "# H\n\n| a | b |\n|---|---|\n"),
    ]
    real = [document("r1", "some_kind", prose, "abcde"), document("r2", "some_kind", prose, "zz", sanity_only=True)]
    failed = document("r3", "other", Truth("en"), "", problems=["Page 1 is damaged."], pages=0)
    return {
        "engine": {"name": "embedded", "version": "1", "fingerprint": "f", "pages_at_once": 2},
        "peak_memory_mb": 512.0,
        "date": "2025-01-01",
        "command": "python bench/quality.py",
        "machine": {"cpu": "c", "cores": 2, "memory_gb": 4, "system": "Linux", "python": "3", "onnxruntime": "1"},
        "weak_truths": {"w": "bad"},
        "runs": {
            "generated, page images": {"wall_s": 1.0, "documents": images},
            "generated, PDFs": {"wall_s": 1.0, "documents": images[:1]},
            "real, as they are": {"wall_s": 1.0, "documents": [*real, failed]},
            "real, text layers hidden": {"wall_s": 1.0, "documents": [*real, failed]},
        },
    }


def test_the_report_shows_the_figures(results: dict[str, Any], tmp_path: Path) -> None:
    from quality_report import write_report

    out = tmp_path / "quality.md"
    write_report(results, out, [tmp_path / "images" / "p.png"])
    text = out.read_text("utf-8")
    assert "{{" not in text
    assert "![p](images/p.png)" in text
    assert "| English | 0.00 | 10.00 | 0.00 |" in text
    assert "| `s_table` | 0.0 | 1/1, 1 | – | 1/1 | 100 | – |" in text
    # The weak document counts in no mean: r1 alone has half of its characters.
    assert "| some kind | 2 | 50.0 | 50.0 |" in text
    assert "- real, as they are, `r3`: Page 1 is damaged." in text


def test_plots_are_drawn(results: dict[str, Any], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from quality_plots import write_plots

    files = write_plots(results, tmp_path / "images")
    assert len(files) == 3
    assert all(file.stat().st_size > 1000 for file in files)


def test_the_committed_report_is_that_of_the_committed_figures(tmp_path: Path) -> None:
    from quality_report import write_report

    figures = ROOT / "docs" / "quality.json"
    results = json.loads(figures.read_text("utf-8"))
    names = ["languages", "categories", "seconds"]
    write_report(results, tmp_path / "quality.md", [tmp_path / "images" / f"quality-{name}.png" for name in names])
    assert (tmp_path / "quality.md").read_text("utf-8") == (ROOT / "docs" / "quality.md").read_text("utf-8")


def test_ground_truth_comes_from_the_same_blocks_as_the_page() -> None:
    from generated.page import Cell, PageBuilder

    column = PageBuilder("").heading(2, "B & C").items(["x", "y"], ordered=True)
    page = (
        PageBuilder("p")
        .heading(1, "A")
        .columns([column])
        .table([[Cell("m", columns=2), "n"], ["1", "2", "3"]])
        .furniture("head", "foot")
    )
    truth = page.truth.as_json()
    assert truth["headings"] == [(1, "A"), (2, "B & C")]
    assert truth["text"].split("\n") == ["A", "B & C", "x", "y", "m n", "1 2 3"]
    assert (truth["lists"], truth["furniture"]) == (["x", "y"], ["head", "foot"])
    assert "colspan='2'" in truth["tables_html"][0]
    assert "order" not in truth
    html = page.html()
    assert html.index("B &amp; C") < html.index("colspan='2'")
    assert "content: 'foot'" in html


def test_every_described_page_is_built() -> None:
    from generated import blind, holdout, structure

    makers = [
        getattr(structure, name)
        for name in vars(structure)
        if not name[0].isupper() and callable(vars(structure)[name])
    ]
    pages = [make() for make in makers] + [make() for make in blind.BLIND_PAGES] + [holdout.newspaper()]
    assert len({page.name for page in pages}) == len(pages) >= 18
    assert all(page.truth.headings for page in pages)
