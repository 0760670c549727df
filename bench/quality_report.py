"""Writes the report of `bench/quality.py` from its figures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

Document = Mapping[str, Any]
Value = float | None

LANGUAGES = {
    "en": "English",
    "fr": "French",
    "de": "German",
    "es": "Spanish",
    "it": "Italian",
    "nl": "Dutch",
    "pt": "Portuguese",
    "sv": "Swedish",
    "da": "Danish",
    "no": "Norwegian",
    "zh": "Chinese",
    "ja": "Japanese",
    "ar": "Arabic",
}
IMAGES, PDFS = "generated, page images", "generated, PDFs"
FILES, PIXELS = "real, as they are", "real, text layers hidden"


def average(values: Iterable[Value]) -> Value:
    """Mean of what is known; None where nothing is."""
    known = [value for value in values if value is not None]
    return mean(known) if known else None


def error_rate(document: Document) -> Value:
    """Character error rate."""
    return None if document["sanity_only"] else document["score"]["character_error_rate"]


def words_found(document: Document) -> Value:
    """Share of the words that were found."""
    words = document["score"]["words"]
    return None if document["sanity_only"] or words is None else words["recall"]


def words_right(document: Document) -> Value:
    """Share of the output's words that are on the page."""
    words = document["score"]["words"]
    return None if document["sanity_only"] or words is None else words["precision"]


def seconds_per_page(document: Document) -> Value:
    """Seconds of recognition."""
    if document["seconds"] is None or not document["pages"]:
        return None
    return document["seconds"] / document["pages"]


def f1(counts: Mapping[str, int] | None) -> Value:
    """F1 of counted matches."""
    if counts is None:
        return None
    total = counts["predicted"] + counts["expected"]
    return 2 * counts["correct"] / total if total else 1.0


def headings_f1(document: Document) -> Value:
    """F1 of headings."""
    headings = document["score"]["headings"]
    return f1(headings["headings"]) if headings and headings["headings"]["expected"] else None


def grid(document: Document) -> Value:
    """GriTS-Con of the tables."""
    tables = document["score"]["tables"]
    return tables["grid_similarity"] if tables else None


def adjacency(document: Document) -> Value:
    """Adjacency F1 of the tables."""
    tables = document["score"]["tables"]
    return f1(tables["adjacency"]) if tables else None


def percent(value: Value, digits: int = 1) -> str:
    """As text, `–` where nothing is known."""
    return "–" if value is None else f"{100 * value:.{digits}f}"


def number(value: Value) -> str:
    """Seconds as text."""
    return "–" if value is None else f"{value:.1f}"


def fraction(counts: Mapping[str, int] | None) -> str:
    """Found of expected, and what was predicted beyond."""
    if counts is None:
        return "–"
    extra = counts["predicted"] - counts["correct"]
    return f"{counts['correct']}/{counts['expected']}" + (f" +{extra}" if extra > 0 else "")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; all columns but the first are numbers."""
    lines = [f"| {' | '.join(head)} |", "|---" + "|--:" * (len(head) - 1) + "|"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows])


def grouped(documents: Iterable[Document], key: Callable[[Document], str]) -> dict[str, list[Document]]:
    """Documents by a key, in order of first appearance."""
    groups: dict[str, list[Document]] = defaultdict(list)
    for document in documents:
        groups[key(document)].append(document)
    return dict(groups)


MEASURES: dict[str, Callable[[Document], Value]] = {
    "CER %": error_rate,
    "words found %": words_found,
    "words right %": words_right,
    "headings F1 %": headings_f1,
    "tables GriTS %": grid,
    "tables adjacency F1 %": adjacency,
}


def _measure_row(name: str, documents: Sequence[Document]) -> list[str]:
    cells = [percent(average(map(measure, documents))) for measure in MEASURES.values()]
    return [
        name,
        str(len(documents)),
        str(sum(d["pages"] for d in documents)),
        *cells,
        number(average(map(seconds_per_page, documents))),
    ]


_HEAD = ("documents", "pages", *MEASURES, "s/page")


def overview(results: Mapping[str, Any]) -> str:
    """One row a set."""
    rows = []
    for name, run in results["runs"].items():
        parts = grouped(run["documents"], lambda d: d["category"]) if name == IMAGES else {"": run["documents"]}
        rows += [_measure_row(f"{name}{': ' if part else ''}{part}", documents) for part, documents in parts.items()]
    walls = [
        f"{name} {run['wall_s'] / sum(document['pages'] for document in run['documents']):.2f}"
        for name, run in results["runs"].items()
    ]
    return f"{table(('set', *_HEAD), rows)}\n\nSeconds of the clock for each page of a whole run: {'; '.join(walls)}."


def languages(results: Mapping[str, Any]) -> str:
    """Character error rates of the generated prose, a row a language."""
    runs = {name: {d["id"]: d for d in run["documents"]} for name, run in results["runs"].items()}
    other = {d["id"]: d for d in results.get("compared", {}).get("documents", ())}
    codes = [name.removeprefix("lang_") for name in runs[IMAGES] if name.startswith("lang_")]

    def row(label: str, codes: Sequence[str]) -> list[str]:
        columns = [(runs[IMAGES], "lang_"), (runs[IMAGES], "scan_"), (runs[PDFS], "lang_")]
        columns += [(other, "lang_"), (other, "scan_")] if other else []
        return [
            label,
            *(
                percent(average(error_rate(d[kind + c]) if kind + c in d else None for c in codes), 2)
                for d, kind in columns
            ),
        ]

    head = ["language", "clean image", "poor scan", "PDF"]
    head += [f"{results['compared']['name']}, {kind}" for kind in ("clean", "scan")] if other else []
    return table(head, [row(LANGUAGES[code], [code]) for code in codes] + [row("**mean**", codes)])


def _structure_cells(document: Document | None) -> list[str]:
    if document is None:
        return ["–"] * 6
    result = document["score"]
    headings, tables = result["headings"], result["tables"]
    has_headings = headings and (headings["headings"]["expected"] or headings["headings"]["predicted"])
    return [
        percent(error_rate(document)),
        f"{fraction(headings['headings'])}, {headings['levels_right']}" if has_headings else "–",
        fraction(result["list_items"]),
        f"{tables['rows']['correct']}/{tables['rows']['expected']}" if tables else "–",
        percent(grid(document), 0),
        "–" if result["furniture_leaks"] is None else str(result["furniture_leaks"]),
    ]


_STRUCTURE_HEAD = ("page", "CER %", "headings, levels right", "list items", "table rows", "GriTS %", "leaks")


def structure(documents: Sequence[Document]) -> str:
    """A row for each generated page that tests structure, and sums."""
    pages = [d for d in documents if d["id"].split("_")[0] in ("s", "h", "b", "bs")]
    return table(_STRUCTURE_HEAD, [[f"`{d['id']}`", *_structure_cells(d)] for d in pages])


def comparison(results: Mapping[str, Any]) -> str:
    """Sums over structure pages and hold-out, for this engine and another."""
    engines = {results["engine"]["name"]: results["runs"][IMAGES]["documents"]}
    engines |= {results["compared"]["name"]: results["compared"]["documents"]} if "compared" in results else {}
    rows = []
    for category in ("structure", "hold-out scans", "blind, clean", "blind, scans"):
        for name, documents in engines.items():
            chosen = [d for d in documents if d["category"] == category]
            if not chosen:
                continue
            scores = [d["score"] for d in chosen]
            headings = [s["headings"] for s in scores if s["headings"]]
            tables = [s["tables"] for s in scores if s["tables"]]
            lists = [s["list_items"] for s in scores if s["list_items"]]
            rows.append(
                [
                    f"{category}: {name}",
                    percent(average(map(error_rate, chosen))),
                    f"{fraction(_total(h['headings'] for h in headings))}, {sum(h['levels_right'] for h in headings)}",
                    fraction(_total(lists)),
                    fraction(_total({**t["rows"], "predicted": 0} for t in tables)),
                    percent(average(map(grid, chosen)), 0),
                    str(sum(s["furniture_leaks"] or 0 for s in scores)),
                ]
            )
    return table(("pages: engine", *_STRUCTURE_HEAD[1:]), rows)


def _total(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total = {"correct": 0, "predicted": 0, "expected": 0}
    for entry in counts:
        for name in total:
            total[name] += entry[name]
    return total


def real_groups(results: Mapping[str, Any], key: Callable[[Document], str], head: str) -> str:
    """Real documents by group, read both ways."""
    ways = {name: grouped(results["runs"][name]["documents"], key) for name in (FILES, PIXELS)}
    measures = (error_rate, words_found, words_right, grid, seconds_per_page)
    rows = []
    for group in sorted(ways[FILES]):
        cells = []
        for measure in measures:
            text = number if measure is seconds_per_page else percent
            cells += [text(average(map(measure, ways[name][group]))) for name in (FILES, PIXELS)]
        rows.append([group, str(len(ways[FILES][group])), *cells])
    names = ("CER %", "words found %", "words right %", "GriTS %", "s/page")
    columns = [f"{name}, {way}" for name in names for way in ("file", "pixels")]
    return table((head, "documents", *columns), rows)


def real_documents(results: Mapping[str, Any]) -> str:
    """A row for each real document."""
    pixels = {d["id"]: d for d in results["runs"][PIXELS]["documents"]}
    rows = []
    for document in results["runs"][FILES]["documents"]:
        other = pixels[document["id"]]
        rows.append(
            [
                f"`{document['id']}`",
                document["text_origin"] + (" (weak)" if document["sanity_only"] else ""),
                *(percent(measure(d)) for measure in (error_rate, words_found, grid) for d in (document, other)),
                _facts(document),
                _facts(other),
                fraction(document["score"]["fields"]),
                fraction(other["score"]["fields"]),
            ]
        )
    head = ["document", "text from"]
    for name in ("CER %", "words found %", "GriTS %", "facts", "values"):
        head += [f"{name}, file", f"{name}, pixels"]
    return table(head, rows)


def _facts(document: Document) -> str:
    result = document["score"]
    judged = result["facts_passed"] + len(result["facts_failed"])
    return f"{result['facts_passed']}/{judged}" if judged else "–"


def facts(results: Mapping[str, Any]) -> str:
    """Sums of facts and values."""
    rows = []
    for name in (FILES, PIXELS):
        scores = [d["score"] for d in results["runs"][name]["documents"]]
        passed, failed = sum(s["facts_passed"] for s in scores), sum(len(s["facts_failed"]) for s in scores)
        values = _total(s["fields"] for s in scores if s["fields"])
        rows.append(
            [name, f"{passed}/{passed + failed}", str(sum(s["facts_unsupported"] for s in scores)), fraction(values)]
        )
    return table(("set", "facts that hold", "not judged (formulas)", "invoice values found"), rows)


def problems(results: Mapping[str, Any]) -> str:
    """Pages that failed."""
    lines = [
        f"- {name}, `{document['id']}`: {problem}"
        for name, run in results["runs"].items()
        for document in run["documents"]
        for problem in document["problems"]
    ]
    return "\n".join(lines) or "None."


def write_report(results: Mapping[str, Any], out: Path, plots: Sequence[Path]) -> None:
    """Writes the report.

    Args:
        results: The figures.
        out: The Markdown file.
        plots: Plots to show, beside the file or below its folder.
    """
    template = (Path(__file__).parent / "quality_template.md").read_text("utf-8")
    parts = {
        "engine": "{name} {version}".format(**results["engine"]),
        "fingerprint": results["engine"]["fingerprint"],
        "pages_at_once": str(results["engine"]["pages_at_once"]),
        "memory": f"{results['peak_memory_mb']:.0f}",
        "date": results["date"],
        "command": results["command"],
        "machine": "{cpu}, {cores} cores, {memory_gb} GB, {system}, Python {python}, onnxruntime {onnxruntime}".format(
            **results["machine"]
        ),
        "plots": "\n\n".join(f"![{path.stem}]({path.relative_to(out.parent).as_posix()})" for path in plots),
        "overview": overview(results),
        "languages": languages(results),
        "comparison": comparison(results),
        "structure": structure(results["runs"][IMAGES]["documents"]),
        "problems": problems(results),
        "weak": "; ".join(f"`{name}`: {reason}" for name, reason in results["weak_truths"].items()),
        "real": _real_part(results) if FILES in results["runs"] else "Not measured in this run.",
    }
    for name, text in parts.items():
        template = template.replace("{{" + name + "}}", text)
    out.write_text(template, "utf-8")


def _real_part(results: Mapping[str, Any]) -> str:
    by_language = real_groups(results, lambda d: LANGUAGES.get(d["language"], d["language"]), "language")
    by_category = real_groups(results, lambda d: d["category"].replace("_", " "), "category")
    return "\n\n".join(
        [
            facts(results),
            "### By language",
            by_language,
            "### By category",
            by_category,
            "### Every document",
            real_documents(results),
        ]
    )
