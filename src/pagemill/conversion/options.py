"""What can be set about a conversion."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from pagemill.conversion.enhance import Enhancement
from pagemill.domain import SamplingParams
from pagemill.domain.errors import ConfigurationError


class OutputFormat(str, Enum):
    """Files that a document can become."""

    MARKDOWN = "md"
    JSON = "json"
    HTML = "html"
    TEXT = "txt"


class FurniturePolicy(str, Enum):
    """What becomes of running headers, footers and page numbers, where the engine tells them apart."""

    DROP = "drop"
    COMMENT = "comment"
    KEEP = "keep"


class ReusePolicy(str, Enum):
    """Which results of earlier runs are used again."""

    ALL = "all"
    """Every stored page, failed ones too."""
    GOOD = "good"
    """Good pages; failed ones are tried again."""
    NONE = "none"
    """Nothing: every page is done anew."""


@dataclass(frozen=True, slots=True)
class ConversionOptions:
    """How documents are converted.

    Attributes:
        pages: Page ranges such as `1-3,7`; None for all.
        formats: Files to write for each document.
        furniture: Headers, footers and page numbers: dropped, kept as comments, or kept.
        page_markers: Whether each page starts with an HTML comment that names it.
        reuse: Which results of earlier runs are used again.
        overwrite_changed: Whether an output file that was edited since it was written may be overwritten.
        sampling: Sampling of generating engines.
        page_attempts: How often a page is tried when its error may pass.
        readings: How often an engine that writes text reads a page whose text is cut, loops or is empty, each time in
            another way.
        enhance: What is done to the image of a page for engines that write text: equalised where its ink is faint
            (`auto`), always (`clahe`), made black and white (`binarize`), or nothing.
        orient: Whether such engines also read a page the other way up where its ink says that it may be turned.
        page_timeout_s: Seconds that one recognition may take, without the time for which the page waits its turn.
        buffer_bytes: Encoded page images that may wait between rendering and recognition, in bytes.
        open_documents: How many documents are worked on at once.
        render_workers: Render processes; None for one a core.
    """

    pages: str | None = None
    formats: tuple[OutputFormat, ...] = (OutputFormat.MARKDOWN, OutputFormat.JSON)
    furniture: FurniturePolicy = FurniturePolicy.DROP
    page_markers: bool = True
    reuse: ReusePolicy = ReusePolicy.ALL
    overwrite_changed: bool = False
    sampling: SamplingParams = SamplingParams()
    page_attempts: int = 2
    readings: int = 4
    enhance: Enhancement = Enhancement.AUTO
    orient: bool = True
    page_timeout_s: float = 600.0
    buffer_bytes: int = 64 * 2**20
    open_documents: int = 8
    render_workers: int | None = None

    def __post_init__(self) -> None:
        """Refuses values that cannot work.

        Raises:
            ConfigurationError: A value is out of range.
        """
        for name, value, least in (
            ("page_attempts", self.page_attempts, 1),
            ("readings", self.readings, 1),
            ("page_timeout_s", self.page_timeout_s, 0.001),
            ("buffer_bytes", self.buffer_bytes, 1),
            ("open_documents", self.open_documents, 1),
            ("render_workers", self.render_workers or 1, 1),
        ):
            if value < least:
                raise ConfigurationError(f"{name} is {value}.", f"It must be at least {least:g}.")
        if not self.formats:
            raise ConfigurationError("No output format is chosen.", "Name at least one of md, json, html, txt.")
