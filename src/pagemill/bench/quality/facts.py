"""Facts about a page that are true or false: the unit tests of olmOCR-bench.

Kinds and meaning follow the description of olmOCR-bench (Poznanski et al.: "olmOCR 2: Unit Test Rewards for Document
OCR", arXiv:2510.19817). Facts of kind `math` need a formula renderer and are counted as unsupported.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from pagemill.bench.quality.similarity import position_inside, similarity, similarity_inside
from pagemill.bench.quality.tables import Table, tables_in_markdown
from pagemill.bench.quality.text import normalise, plain_text

_ANY_LANGUAGE = "en"
_LEAST_CELL_SIMILARITY = 0.5


class FactVerdict(str, Enum):
    """What became of a fact."""

    PASSED = "passed"
    FAILED = "failed"
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True, slots=True)
class Fact:
    """One test.

    Attributes:
        id: Its name.
        kind: `present`, `absent`, `order`, `table`, `baseline` or `math`.
        values: Its other fields as they stand in the file.
    """

    id: str
    kind: str
    values: Mapping[str, Any]


def facts_from_jsonl(text: str) -> list[Fact]:
    """Reads facts, one JSON object a line.

    Raises:
        ValueError: A line is no JSON object with `id` and `type`.
    """
    facts = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        entry = json.loads(line)
        if not isinstance(entry, dict) or "id" not in entry or "type" not in entry:
            raise ValueError(f"Line {number} is not a fact: it needs the keys id and type.")
        facts.append(Fact(str(entry["id"]), str(entry["type"]), entry))
    return facts


def check_fact(fact: Fact, markdown: str) -> FactVerdict:
    """Whether a fact holds for an output; kinds that are not known are unsupported."""
    check = _CHECKS.get(fact.kind)
    if check is None:
        return FactVerdict.UNSUPPORTED
    return FactVerdict.PASSED if check(fact.values, markdown) else FactVerdict.FAILED


def _comparable(text: str) -> str:
    return normalise(text, _ANY_LANGUAGE)


def _threshold(values: Mapping[str, Any], text: str) -> float:
    return 1 - int(values.get("max_diffs") or 0) / max(1, len(text))


def _is_present(values: Mapping[str, Any], markdown: str) -> bool:
    wanted, text = _comparable(str(values["text"])), _comparable(plain_text(markdown))
    if not values.get("case_sensitive", True):
        wanted, text = wanted.casefold(), text.casefold()
    first, last = values.get("first_n"), values.get("last_n")
    if first and last:
        text = f"{text[: int(first)]} {text[-int(last) :]}"
    elif first or last:
        text = text[: int(first)] if first else text[-int(last or 0) :]
    # Where the page is shorter than what is looked for, a part of it must not pass for the whole.
    return len(wanted) <= len(text) and similarity_inside(wanted, text) >= _threshold(values, wanted)


def _is_absent(values: Mapping[str, Any], markdown: str) -> bool:
    return not _is_present(values, markdown)


def _is_in_order(values: Mapping[str, Any], markdown: str) -> bool:
    text = _comparable(plain_text(markdown))
    before, after = _comparable(str(values["before"])), _comparable(str(values["after"]))
    first = position_inside(before, text, _threshold(values, before))
    if first is None:
        return False
    return position_inside(after, text[first + 1 :], _threshold(values, after)) is not None


def _is_baseline(values: Mapping[str, Any], markdown: str) -> bool:
    length = sum(character.isalnum() for character in plain_text(markdown))
    return length <= int(values["max_length"]) if "max_length" in values else length > 0


def _is_in_table(values: Mapping[str, Any], markdown: str) -> bool:
    return any(_cell_fits(values, table.map_text(_comparable)) for table in tables_in_markdown(markdown))


def _cell_fits(values: Mapping[str, Any], table: Table) -> bool:
    grid = table.grid()
    places = [(i, j) for i, row in enumerate(grid) for j, text in enumerate(row) if _same_cell(values, "cell", text)]
    return any(all(_same_cell(values, name, text) for name, text in _around(grid, i, j).items()) for i, j in places)


def _around(grid: Sequence[Sequence[str]], row: int, column: int) -> dict[str, str]:
    """Neighbours of a cell, and the first texts of its column and row, which stand for their headings."""
    above = [line[column] for line in grid[:row]]
    left = list(grid[row][:column])
    return {
        "up": above[-1] if above else "",
        "down": grid[row + 1][column] if row + 1 < len(grid) else "",
        "left": left[-1] if left else "",
        "right": grid[row][column + 1] if column + 1 < len(grid[row]) else "",
        "top_heading": next((text for text in above if text), ""),
        "left_heading": next((text for text in left if text), ""),
    }


def _same_cell(values: Mapping[str, Any], name: str, text: str) -> bool:
    if not values.get(name):
        return True
    wanted = _comparable(str(values[name]))
    return similarity(wanted, text) >= max(_LEAST_CELL_SIMILARITY, _threshold(values, wanted))


_CHECKS: dict[str, Callable[[Mapping[str, Any], str], bool]] = {
    "present": _is_present,
    "absent": _is_absent,
    "order": _is_in_order,
    "table": _is_in_table,
    "baseline": _is_baseline,
}
