"""Sets of documents with ground truth: the generated pages, and the collection of real documents."""

from __future__ import annotations

import csv
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from pagemill.bench.quality.facts import Fact, facts_from_jsonl
from pagemill.bench.quality.fields import field_values, is_shown, is_telling
from pagemill.bench.quality.scoring import Truth
from pagemill.bench.quality.structure import Heading, headings_in
from pagemill.bench.quality.tables import Table, table_from_rows, tables_in_html
from pagemill.bench.quality.text import normalise, plain_text
from pagemill.domain.errors import SourceNotFoundError

_IMAGE_SUFFIXES = (".jpg", ".png")
_GENERATED_CATEGORIES = {
    "lang": "prose, clean",
    "scan": "prose, scan",
    "s": "structure",
    "h": "hold-out scans",
    "b": "blind, clean",
    "bs": "blind, scans",
}


class TextOrigin(str, Enum):
    """Where the text of a ground truth comes from, the most trustworthy first."""

    WRITTEN = "written"
    """The document was made from this text."""
    HUMAN = "human"
    """Transcribed or checked by people."""
    TEXT_LAYER = "text layer"
    """Extracted from the PDF: words good, order and formulas not reliable."""
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Sample:
    """A document of a set.

    Attributes:
        id: Its name in the set.
        path: The file.
        category: What kind of document it is.
        truth: What is known of it.
        text_origin: Where `truth.text` comes from.
        sanity_only: Whether its ground truth is too weak for comparisons.
    """

    id: str
    path: Path
    category: str
    truth: Truth
    text_origin: TextOrigin
    sanity_only: bool = False


def load_generated(folder: Path, *, pdfs: bool = False) -> list[Sample]:
    """The pages that `bench/generate_set.py` wrote.

    Args:
        folder: Its output.
        pdfs: The PDFs with their text layers instead of the images; pages that have none are left out.

    Raises:
        SourceNotFoundError: The folder has no `gt.json`.
    """
    entries = json.loads(_read(folder / "gt.json", "Run bench/generate_set.py first."))
    samples = []
    for name, entry in entries.items():
        suffixes = (".pdf",) if pdfs else _IMAGE_SUFFIXES
        path = next((folder / (name + suffix) for suffix in suffixes if (folder / (name + suffix)).is_file()), None)
        if path is not None:
            category = _GENERATED_CATEGORIES.get(name.split("_")[0], "other")
            samples.append(Sample(name, path, category, _generated_truth(entry), TextOrigin.WRITTEN))
    return samples


def _generated_truth(entry: Mapping[str, Any]) -> Truth:
    return Truth(
        language=entry["lang"],
        text=entry["text"],
        headings=tuple(Heading(level, text) for level, text in entry["headings"]),
        list_items=tuple(entry.get("lists", ())),
        tables=tuple(table for text in entry.get("tables_html", ()) for table in tables_in_html(text)),
        furniture=tuple(entry.get("furniture", ())),
        order=tuple(entry.get("order", ())),
    )


def load_collection(folder: Path, *, weak: Collection[str] = ()) -> list[Sample]:
    """Real documents with a `manifest.jsonl`, one object a line (`id`, `path`, `category`, `language`, `ground_truth`).

    Ground truths are told by their names: `.gt.txt` text, `.gt.md` Markdown source, `.gt.norm.txt` text in modern
    spelling (preferred), `.gt.tables.html` and `.gt.csv` tables, `.gt.tests.jsonl` facts, `.gt.fields.json` values.
    Values count where the document's own text shows them, and are longer than two characters. Machine outputs
    (`.gt.ref.md`) are ignored.

    Args:
        folder: The collection.
        weak: Names of samples whose ground truth is known to be bad, beside those that the manifest names.

    Raises:
        SourceNotFoundError: The folder has no manifest.
    """
    lines = _read(folder / "manifest.jsonl", "Give the folder of a collection with ground truth.").splitlines()
    entries = [json.loads(line) for line in lines if line.strip()]
    return [_collection_sample(folder, entry, weak) for entry in entries]


def _collection_sample(folder: Path, entry: Mapping[str, Any], weak: Collection[str]) -> Sample:
    files = {name.removeprefix(f"{entry['id']}.gt."): folder / name for name in entry["ground_truth"]}
    language, kind = str(entry["language"]), str(entry["ground_truth_type"])
    text, headings, origin = None, None, TextOrigin.NONE
    if "md" in files:
        source = files["md"].read_text("utf-8")
        text, origin = plain_text(source), TextOrigin.WRITTEN
        headings = tuple(Heading(h.level, h.text) for h in headings_in(source))
    elif "txt" in files:
        text = files["norm.txt" if "norm.txt" in files else "txt"].read_text("utf-8")
        human = any(word in kind for word in ("human transcription", "PAGE-XML", "plain text (human"))
        origin = TextOrigin.HUMAN if human else TextOrigin.TEXT_LAYER
    return Sample(
        id=str(entry["id"]),
        path=folder / str(entry["path"]),
        category=str(entry["category"]),
        truth=Truth(
            language=language,
            text=text,
            headings=headings,
            tables=tuple(_tables(files)),
            facts=tuple(_facts(files)),
            fields=tuple(_fields(files, language)),
        ),
        text_origin=origin,
        sanity_only=entry["id"] in weak or "sanity check" in str(entry.get("notes", "")),
    )


def _tables(files: Mapping[str, Path]) -> Iterator[Table]:
    if "tables.html" in files:
        yield from tables_in_html(files["tables.html"].read_text("utf-8"))
    if "csv" in files:
        with files["csv"].open(encoding="utf-8", newline="") as file:
            yield table_from_rows(list(csv.reader(file)))


def _facts(files: Mapping[str, Path]) -> list[Fact]:
    return facts_from_jsonl(files["tests.jsonl"].read_text("utf-8")) if "tests.jsonl" in files else []


def _fields(files: Mapping[str, Path], language: str) -> list[str | float]:
    if "fields.json" not in files or "txt" not in files:
        return []
    page = normalise(files["txt"].read_text("utf-8"), language)
    values = field_values(json.loads(files["fields.json"].read_text("utf-8")))
    return [value for value in dict.fromkeys(values) if is_telling(value) and is_shown(value, page)]


def _read(path: Path, remedy: str) -> str:
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise SourceNotFoundError(f"{path} cannot be read: {error.strerror}.", remedy) from error
