"""What an engine makes of a page."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from pagemill.domain.geometry import BoundingBox


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How a generating engine samples; other engines ignore it.

    The defaults are those of the LightOnOCR-2-1B model card.

    Attributes:
        temperature: Randomness of sampling; 0 is greedy, which loops more often.
        top_p: Share of the probability mass that is sampled from.
        max_tokens: Most tokens of one page; a page that reaches it is cut.
    """

    temperature: float = 0.2
    top_p: float = 0.9
    max_tokens: int = 4096


class FinishReason(str, Enum):
    """Why an engine ended a page. Only `STOP` is success."""

    STOP = "stop"
    LENGTH = "length"
    REPETITION = "repetition"
    ABORT = "abort"
    ERROR = "error"


class BlockKind(str, Enum):
    """Kinds of page regions."""

    TITLE = "title"
    TEXT = "text"
    LIST = "list"
    TABLE = "table"
    FIGURE = "figure"
    CAPTION = "caption"
    EQUATION = "equation"
    CODE = "code"
    HEADER = "header"
    FOOTER = "footer"


class PageFlag(str, Enum):
    """Things about a page that a reader of the result may want to know."""

    BLANK = "blank"
    TEXT_LAYER = "text_layer"
    MIXED = "mixed"
    ROTATED = "rotated"
    DESKEWED = "deskewed"
    LOW_CONFIDENCE = "low_confidence"
    DAMAGED_SOURCE = "damaged_source"
    TRUNCATED = "truncated"
    RETRIED = "retried"
    TILED = "tiled"
    TEXT_EXCEEDS_INK = "text_exceeds_ink"
    UNKNOWN_SCRIPT = "unknown_script"


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens, where the engine counts them."""

    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        """Sum, field by field."""
        return Usage(self.prompt_tokens + other.prompt_tokens, self.completion_tokens + other.completion_tokens)


@dataclass(frozen=True, slots=True)
class TextLine:
    """A recognised line.

    Attributes:
        text: Its characters.
        box: Where it stands, in pixels of the upright page, see `PageResult.width`.
        confidence: 0 to 1; 1.0 for text taken from a sane text layer.
    """

    text: str
    box: BoundingBox
    confidence: float


@dataclass(frozen=True, slots=True)
class Block:
    """A region of the page in reading order.

    Attributes:
        kind: What it is.
        markdown: Its Markdown, complete in itself.
        box: Where it stands, in pixels of the upright page, see `PageResult.width`.
        confidence: Mean of its lines, weighted by length; 1.0 where it has none.
        level: Heading level from 1, for titles; 0 for all else.
        lines: The lines it was made of.
    """

    kind: BlockKind
    markdown: str
    box: BoundingBox
    confidence: float = 1.0
    level: int = 0
    lines: tuple[TextLine, ...] = ()


@dataclass(frozen=True, slots=True)
class Figure:
    """A cropped picture that the Markdown links to as `name`."""

    name: str
    data: bytes
    media_type: str
    box: BoundingBox


@dataclass(frozen=True, slots=True)
class PageError:
    """Why a page failed, as data.

    Attributes:
        code: Stable code of the error, as in `pagemill.domain.errors`.
        message: What happened and what to do.
        retryable: Whether the same page may succeed when tried again.
    """

    code: str
    message: str
    retryable: bool = False


@dataclass(frozen=True, slots=True)
class PageResult:
    """A recognised, or failed, page.

    Attributes:
        index: Position in the document, from 0.
        markdown: The page's text; for a failed page, what could be kept (often nothing).
        finish_reason: `STOP` where the page is complete.
        usage: Tokens.
        attempts: How many times the engine was asked.
        error: Why the page failed; None where it is good.
        blocks: Regions in reading order, from engines that know them. Headers and footers are only here.
        figures: Pictures that the Markdown links to.
        confidence: 0 to 1, mean over all characters; None where the engine has none.
        flags: What is special about the page.
        warnings: What was found wrong with its source, in words.
        duration_s: Seconds of recognition, the last attempt only.
        width: Width in pixels of the page that boxes refer to, once it is turned upright and straight; 0 where unknown.
        height: Height of that page.
    """

    index: int
    markdown: str
    finish_reason: FinishReason = FinishReason.STOP
    usage: Usage = Usage()
    attempts: int = 1
    error: PageError | None = None
    blocks: tuple[Block, ...] = ()
    figures: tuple[Figure, ...] = ()
    confidence: float | None = None
    flags: tuple[PageFlag, ...] = ()
    warnings: tuple[str, ...] = ()
    duration_s: float = 0.0
    width: int = 0
    height: int = 0

    @property
    def ok(self) -> bool:
        """Whether the page is complete."""
        return self.error is None and self.finish_reason is FinishReason.STOP
