"""How good an output is: pure functions of Markdown and ground truth, usable with any engine."""

from pagemill.bench.quality.facts import Fact, FactVerdict, check_fact, facts_from_jsonl
from pagemill.bench.quality.scoring import Score, Truth, score
from pagemill.bench.quality.sets import Sample, TextOrigin, load_collection, load_generated
from pagemill.bench.quality.structure import Heading, HeadingScore
from pagemill.bench.quality.tables import Matches, Table, TableScore, tables_in_html, tables_in_markdown
from pagemill.bench.quality.text import WordOverlap, character_error_rate, normalise, plain_text, word_overlap

__all__ = [
    "Fact",
    "FactVerdict",
    "Heading",
    "HeadingScore",
    "Matches",
    "Sample",
    "Score",
    "Table",
    "TableScore",
    "TextOrigin",
    "Truth",
    "WordOverlap",
    "character_error_rate",
    "check_fact",
    "facts_from_jsonl",
    "load_collection",
    "load_generated",
    "normalise",
    "plain_text",
    "score",
    "tables_in_html",
    "tables_in_markdown",
    "word_overlap",
]
