"""Values that an invoice must show: numbers, dates and names, in any of the usual spellings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any

from pagemill.bench.quality.text import normalise

_ISO_DATE = re.compile(r"^\d{4}-\d{2}-\d{2}$")


def field_values(entry: Any) -> list[str | float]:  # noqa: ANN401 - any JSON
    """All leaf values of a JSON document, strings and numbers, in order."""
    if isinstance(entry, Mapping):
        return [value for item in entry.values() for value in field_values(item)]
    if isinstance(entry, list):
        return [value for item in entry for value in field_values(item)]
    return [entry] if isinstance(entry, str | int | float) and not isinstance(entry, bool) and entry != "" else []


def is_telling(value: str | float) -> bool:
    """Whether finding a value says anything: short numbers and words are on every page."""
    return abs(value) >= 10 or value != int(value) if not isinstance(value, str) else len(value) >= 3


def is_shown(value: str | float, text: str) -> bool:
    """Whether `text`, normalised, shows a value.

    Args:
        value: A number, an ISO date or any other text.
        text: Normalised text of the page.
    """
    return any(_stands_alone(spelling, text) for spelling in _spellings(value))


def _spellings(value: str | float) -> Iterable[str]:
    if isinstance(value, str) and _ISO_DATE.match(value):
        try:
            day = date.fromisoformat(value)
        except ValueError:
            return [value]
        patterns = ("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%d-%m-%y", "%d.%m.%y", "%B %d, %Y")
        return [day.strftime(pattern) for pattern in patterns]
    if isinstance(value, str) and not re.fullmatch(r"-?\d+\.\d+", value):
        return [normalise(value, "en").casefold()]
    number = float(value)
    plain = {f"{number:,.2f}", f"{number:,g}" if abs(number) < 1e6 else f"{number:,.0f}"}
    english = [text.replace(",", mark) for text in plain for mark in (",", "", " ", "'")]
    continental = [
        text.replace(",", "\0").replace(".", ",").replace("\0", mark) for text in plain for mark in (".", "", " ")
    ]
    return english + continental


def _stands_alone(spelling: str, text: str) -> bool:
    """Whether `spelling` is in the text and not a part of a longer number or word."""
    pattern = rf"(?<![\w]){re.escape(spelling)}(?![\w])(?![.,]\d)"
    return re.search(pattern, text.casefold() if not spelling[:1].isdigit() else text, re.IGNORECASE) is not None
