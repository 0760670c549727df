"""What is known of a document, and the score of an output against it."""

from __future__ import annotations

from dataclasses import dataclass

from pagemill.bench.quality.facts import Fact, FactVerdict, check_fact
from pagemill.bench.quality.fields import is_shown
from pagemill.bench.quality.structure import (
    Heading,
    HeadingScore,
    furniture_leaks,
    score_headings,
    score_list_items,
    score_order,
    without_furniture,
    without_item_numbers,
)
from pagemill.bench.quality.tables import Matches, Table, TableScore, score_tables, tables_in_markdown
from pagemill.bench.quality.text import (
    WordOverlap,
    character_error_rate,
    normalise,
    plain_text,
    squeezed,
    word_overlap,
)


@dataclass(frozen=True, slots=True)
class Truth:
    """Ground truth of a document. What is None or empty is not known and not scored.

    Attributes:
        language: ISO 639-1 code.
        text: All text in reading order, plain.
        headings: All headings, in order.
        list_items: Texts of all list items.
        tables: Tables; not necessarily all of them.
        furniture: Running headers and footers, which must not be in the output.
        order: Snippets in the order in which they are to be read.
        facts: Statements to check.
        fields: Values that the pages show.
    """

    language: str
    text: str | None = None
    headings: tuple[Heading, ...] | None = None
    list_items: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    furniture: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()
    fields: tuple[str | float, ...] = ()


@dataclass(frozen=True, slots=True)
class Score:
    """Score of one document; None where the truth says nothing.

    Attributes:
        character_error_rate: Over the text in reading order; may exceed 1.
        words: Words found and invented, whatever their order.
        headings: Headings and their levels.
        list_items: List items.
        tables: Tables.
        furniture_leaks: Running headers and footers in the text.
        order: Neighbouring snippets in the right order.
        facts_passed: Facts that hold.
        facts_failed: Names of the facts that do not.
        facts_unsupported: Facts that cannot be checked.
        fields: Values found.
    """

    character_error_rate: float | None = None
    words: WordOverlap | None = None
    headings: HeadingScore | None = None
    list_items: Matches | None = None
    tables: TableScore | None = None
    furniture_leaks: int | None = None
    order: Matches | None = None
    facts_passed: int = 0
    facts_failed: tuple[str, ...] = ()
    facts_unsupported: int = 0
    fields: Matches | None = None


def score(markdown: str, truth: Truth, *, full_markdown: str | None = None) -> Score:
    """Scores the Markdown of a document.

    Args:
        markdown: What a user gets.
        truth: What is known of the document.
        full_markdown: The same with running headers and footers, for truths whose text holds these, as PDF text
            layers do; it is used for the two text measures only.
    """
    language = truth.language
    error_rate: float | None = None
    words: WordOverlap | None = None
    if truth.text is not None:
        shown = without_furniture(full_markdown or markdown, truth.furniture, language)
        if truth.list_items:
            shown = without_item_numbers(shown, truth.list_items, language)
        output, expected = normalise(plain_text(shown), language), normalise(truth.text, language)
        error_rate = character_error_rate(output, expected)
        words = word_overlap(output, expected, language)
    verdicts = [(fact.id, check_fact(fact, markdown)) for fact in truth.facts]
    return Score(
        character_error_rate=error_rate,
        words=words,
        headings=None if truth.headings is None else score_headings(markdown, truth.headings, language),
        list_items=score_list_items(markdown, truth.list_items, language) if truth.list_items else None,
        tables=_score_tables(markdown, truth) if truth.tables else None,
        furniture_leaks=furniture_leaks(markdown, truth.furniture, language) if truth.furniture else None,
        order=score_order(markdown, truth.order, language) if truth.order else None,
        facts_passed=sum(verdict is FactVerdict.PASSED for _, verdict in verdicts),
        facts_failed=tuple(name for name, verdict in verdicts if verdict is FactVerdict.FAILED),
        facts_unsupported=sum(verdict is FactVerdict.UNSUPPORTED for _, verdict in verdicts),
        fields=_score_fields(full_markdown or markdown, truth) if truth.fields else None,
    )


def _score_tables(markdown: str, truth: Truth) -> TableScore:
    found = [_comparable(table, truth.language) for table in tables_in_markdown(markdown)]
    return score_tables(found, [_comparable(table, truth.language) for table in truth.tables])


def _comparable(table: Table, language: str) -> Table:
    return table.map_text(lambda text: squeezed(text, language))


def _score_fields(markdown: str, truth: Truth) -> Matches:
    text = normalise(plain_text(markdown), truth.language)
    shown = sum(is_shown(value, text) for value in truth.fields)
    return Matches(shown, shown, len(truth.fields))
