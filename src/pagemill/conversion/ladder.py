"""Reading a page again, in other ways, when the first reading is no good.

Only an answer that ended by itself counts. One that was cut, loops or is empty is asked for again with other sampling,
then at another size, then in pieces, within a budget of attempts. What was best stays: the text before a loop is kept,
and the page is marked as incomplete.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import PurePath

from pagemill.conversion.tiles import Tile, cut, join, resized, tiles_needed
from pagemill.domain import BoundingBox, FinishReason, PageError, PageFlag, PageImage, PageResult, SamplingParams, Usage
from pagemill.domain.errors import DegenerateOutputError

Recognize = Callable[[PageImage, SamplingParams], Awaitable[PageResult]]

_WARMER = ((0.4, 0.9), (0.7, 0.95))
"""Temperature and top_p of the second and third reading; greedy and cold sampling loop more often."""
_OTHER_SIZE = 0.8
_PIECES = 2


@dataclass(frozen=True, slots=True)
class _Rung:
    params: SamplingParams
    scale: float = 1.0
    pieces: int = 1


async def read_page(
    recognize: Recognize, image: PageImage, params: SamplingParams, *, attempts: int, max_long_side: int
) -> PageResult:
    """Reads a page, again where needed.

    Args:
        recognize: Reads one image once.
        image: The page.
        params: Sampling of the first reading.
        attempts: Most readings of the page; a reading in pieces counts once.
        max_long_side: Longer pages are read in pieces from the start; 0 for no bound.

    Returns:
        A good result, or the best of the bad ones with its error set.

    Raises:
        EngineError: An engine's error that no other reading can mend.
    """
    best: PageResult | None = None
    usage = Usage()
    made = 0
    for rung in _rungs(image, params, max_long_side):
        if made == attempts:
            break
        made += 1
        result = await _read(recognize, image, rung, max_long_side)
        usage += result.usage
        flags = (
            *result.flags,
            *((PageFlag.RETRIED,) if made > 1 else ()),
            *((PageFlag.TILED,) if rung.pieces > 1 else ()),
        )
        result = replace(result, flags=flags, attempts=made, usage=usage)
        if result.ok and result.markdown.strip():
            return result
        if best is None or len(result.markdown) > len(best.markdown):
            best = result
    assert best is not None
    return _given_up(replace(best, attempts=made, usage=usage))


def _rungs(image: PageImage, params: SamplingParams, max_long_side: int) -> Iterator[_Rung]:
    pieces = tiles_needed(image, max_long_side) if max_long_side else 1
    yield _Rung(params, pieces=pieces)
    for temperature, top_p in _WARMER:
        yield _Rung(replace(params, temperature=max(params.temperature, temperature), top_p=top_p), pieces=pieces)
    yield _Rung(params, scale=_OTHER_SIZE, pieces=pieces)
    yield _Rung(params, pieces=max(_PIECES, pieces * 2 if pieces > 1 else _PIECES))


async def _read(recognize: Recognize, image: PageImage, rung: _Rung, max_long_side: int) -> PageResult:
    if rung.pieces == 1:
        whole = image
        if rung.scale != 1.0:
            whole = resized(image, round(max(image.width, image.height) * rung.scale))
        return await recognize(whole, rung.params)
    tiles = cut(image, rung.pieces)
    results = []
    for number, tile in enumerate(tiles):
        piece = resized(tile.image, max_long_side) if max_long_side else tile.image
        if rung.scale != 1.0:
            piece = resized(piece, round(max(piece.width, piece.height) * rung.scale))
        results.append(_placed(await recognize(piece, rung.params), tile, number, tile.image.width / piece.width))
    bad = next((result.finish_reason for result in results if not result.ok), FinishReason.STOP)
    return replace(
        results[0],
        markdown=join([result.markdown for result in results], [tile.overlaps for tile in tiles]),
        figures=tuple(figure for result in results for figure in result.figures),
        finish_reason=bad,
        usage=sum((result.usage for result in results), Usage()),
        duration_s=sum(result.duration_s for result in results),
        width=image.width,
        height=image.height,
    )


def _placed(result: PageResult, tile: Tile, number: int, scale: float) -> PageResult:
    """A piece's result with pictures named apart from those of other pieces, and their boxes on the whole page."""
    markdown = result.markdown
    figures = []
    for figure in result.figures:
        path = PurePath(figure.name)
        name = f"{path.stem}-{number + 1}{path.suffix}"
        markdown = markdown.replace(f"({figure.name})", f"({name})")
        box = BoundingBox(
            tile.left + figure.box.left * scale,
            tile.top + figure.box.top * scale,
            tile.left + figure.box.right * scale,
            tile.top + figure.box.bottom * scale,
        )
        figures.append(replace(figure, name=name, box=box))
    return replace(result, markdown=markdown, figures=tuple(figures))


def _given_up(result: PageResult) -> PageResult:
    """The best of the bad readings, with the reason as its error."""
    empty = not result.markdown.strip()
    what = "nothing" if empty and result.finish_reason is FinishReason.STOP else _WORDS[result.finish_reason]
    kept = "" if empty else " The text before that is kept."
    error = DegenerateOutputError(
        f"The engine wrote {what} in {result.attempts} readings of the page.{kept}",
        "Look at the page; another engine or --retry-failed may read it.",
    )
    reason = FinishReason.ERROR if result.finish_reason is FinishReason.STOP else result.finish_reason
    return replace(
        result,
        finish_reason=reason,
        error=PageError(error.code, str(error), error.retryable),
        flags=(*result.flags, PageFlag.TRUNCATED),
    )


_WORDS = {
    FinishReason.STOP: "nothing",
    FinishReason.LENGTH: "to its limit of tokens without an end",
    FinishReason.REPETITION: "the same text over and over",
    FinishReason.ABORT: "until it was shut down",
    FinishReason.ERROR: "until it failed",
}
