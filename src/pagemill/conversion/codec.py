"""Page results as JSON and back, without loss."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pagemill.domain import (
    Block,
    BlockKind,
    BoundingBox,
    Figure,
    FinishReason,
    PageError,
    PageFlag,
    PageResult,
    TextLine,
    Usage,
)

_COORDINATE_DIGITS = 1
_CONFIDENCE_DIGITS = 4


def _box_to_json(box: BoundingBox) -> list[float]:
    return [round(value, _COORDINATE_DIGITS) for value in (box.left, box.top, box.right, box.bottom)]


def _block_to_json(block: Block) -> dict[str, Any]:
    return {
        "kind": block.kind.value,
        "level": block.level,
        "box": _box_to_json(block.box),
        "confidence": round(block.confidence, _CONFIDENCE_DIGITS),
        "markdown": block.markdown,
        "lines": [
            {
                "text": line.text,
                "box": _box_to_json(line.box),
                "confidence": round(line.confidence, _CONFIDENCE_DIGITS),
            }
            for line in block.lines
        ],
    }


def page_to_json(result: PageResult) -> dict[str, Any]:
    """The page as JSON values; figures are named, their bytes are kept elsewhere."""
    error = result.error
    return {
        "index": result.index,
        "finish_reason": result.finish_reason.value,
        "error": None
        if error is None
        else {"code": error.code, "message": error.message, "retryable": error.retryable},
        "flags": [flag.value for flag in result.flags],
        "warnings": list(result.warnings),
        "confidence": None if result.confidence is None else round(result.confidence, _CONFIDENCE_DIGITS),
        "width": result.width,
        "height": result.height,
        "attempts": result.attempts,
        "duration_s": round(result.duration_s, 3),
        "usage": {
            "prompt_tokens": result.usage.prompt_tokens,
            "completion_tokens": result.usage.completion_tokens,
        },
        "markdown": result.markdown,
        "figures": [
            {"name": figure.name, "media_type": figure.media_type, "box": _box_to_json(figure.box)}
            for figure in result.figures
        ],
        "blocks": [_block_to_json(block) for block in result.blocks],
    }


def _block_from_json(data: dict[str, Any]) -> Block:
    return Block(
        kind=BlockKind(data["kind"]),
        level=data["level"],
        box=BoundingBox(*data["box"]),
        confidence=data["confidence"],
        markdown=data["markdown"],
        lines=tuple(TextLine(line["text"], BoundingBox(*line["box"]), line["confidence"]) for line in data["lines"]),
    )


def page_from_json(data: dict[str, Any]) -> PageResult:
    """The page that `page_to_json` described; its figures have no bytes yet (see `with_figure_data`).

    Raises:
        KeyError, TypeError, ValueError: `data` was not written by `page_to_json`.
    """
    error = data["error"]
    return PageResult(
        index=data["index"],
        markdown=data["markdown"],
        finish_reason=FinishReason(data["finish_reason"]),
        usage=Usage(**data["usage"]),
        attempts=data["attempts"],
        error=None if error is None else PageError(**error),
        blocks=tuple(_block_from_json(block) for block in data["blocks"]),
        figures=tuple(
            Figure(figure["name"], b"", figure["media_type"], BoundingBox(*figure["box"])) for figure in data["figures"]
        ),
        confidence=data["confidence"],
        flags=tuple(PageFlag(flag) for flag in data["flags"]),
        warnings=tuple(data["warnings"]),
        duration_s=data["duration_s"],
        width=data["width"],
        height=data["height"],
    )


def with_figure_data(result: PageResult, data: dict[str, bytes]) -> PageResult:
    """The page with the bytes of its figures, by name.

    Raises:
        KeyError: A figure has no bytes in `data`.
    """
    return replace(result, figures=tuple(replace(figure, data=data[figure.name]) for figure in result.figures))
