"""Edit distances, from RapidFuzz, which comes with the `bench` dependency group only."""

from __future__ import annotations

from pagemill.domain.errors import MissingDependencyError

try:
    from rapidfuzz import fuzz
    from rapidfuzz.distance import Indel, Levenshtein
except ImportError as error:
    raise MissingDependencyError(
        "Scoring quality needs the package rapidfuzz, which is not installed.", "Run `pip install rapidfuzz`."
    ) from error


def edit_distance(one: str, other: str) -> int:
    """Levenshtein distance in characters."""
    return int(Levenshtein.distance(one, other))


def similarity(one: str, other: str) -> float:
    """Twice the longest common subsequence over the sum of lengths, 0 to 1; 1 for two empty strings."""
    return float(Indel.normalized_similarity(one, other))


def similarity_inside(part: str, whole: str) -> float:
    """Similarity (0 to 1) of `part` to the stretch of `whole` that fits it best."""
    return float(fuzz.partial_ratio(part, whole)) / 100 if part and whole else float(part == whole)


def position_inside(part: str, whole: str, least: float) -> int | None:
    """Where in `whole` the stretch begins that fits `part` best.

    Args:
        part: What to look for.
        whole: Where to look.
        least: Similarity (0 to 1) below which nothing is found.
    """
    exact = whole.find(part)
    if exact >= 0:
        return exact
    found = fuzz.partial_ratio_alignment(part, whole, score_cutoff=least * 100)
    return None if found is None or len(part) > len(whole) else int(found.dest_start)
