"""Documents: where they come from, what is known of them, and what became of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from pagemill.domain.page import Page
from pagemill.domain.result import PageResult, Usage


@dataclass(frozen=True, slots=True)
class DocumentSource:
    """A file to convert.

    Attributes:
        path: The file on disk (standard input is spooled to one).
        name: Path relative to the input that named it, with `/`; the output tree mirrors it.
        passwords: Tried in turn on an encrypted PDF; never shown in a representation.
    """

    path: Path
    name: str
    passwords: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class DocumentInfo:
    """What opening a source tells.

    Attributes:
        sha256: Hash of the file's bytes, in hex.
        format: `pdf`, `png`, `jpeg`, `tiff`, ... as found in the content, whatever the file's name says.
        pages: Every page, in order.
        warnings: What was repaired or left out while opening, in words.
    """

    sha256: str
    format: str
    pages: tuple[Page, ...]
    warnings: tuple[str, ...] = ()


class ConversionStatus(str, Enum):
    """How a document ended."""

    SUCCESS = "success"
    PARTIAL_SUCCESS = "partial_success"
    FAILURE = "failure"


@dataclass(frozen=True, slots=True)
class ConversionResult:
    """A converted document.

    Attributes:
        source: The source that was converted.
        status: `success` where every page is good, `failure` where none is, `partial_success` between.
        pages: One result for each page asked for, in page order; failed pages are among them.
        usage: Sum over all pages.
        error: Why the document could not be opened; pages is empty then.
        outputs: Files that were written for it.
        engine: Name and version of the engine.
        duration_s: Wall-clock seconds from opening to the last output.
        reused_pages: How many pages came from an earlier run.
    """

    source: DocumentSource
    status: ConversionStatus
    pages: tuple[PageResult, ...] = ()
    usage: Usage = Usage()
    error: Exception | None = None
    outputs: tuple[Path, ...] = ()
    engine: str = ""
    duration_s: float = 0.0
    reused_pages: int = 0
    markdown: str = ""
    info: DocumentInfo | None = None
