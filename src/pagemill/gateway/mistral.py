"""The OCR API of Mistral: its request and its answer.

Fields are those of Mistral's own client.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, field_validator

from pagemill.domain.errors import RequestError
from pagemill.gateway.mistral_tables import TableFormat

_PAGE_RANGE = re.compile(r"(\d{1,9})(?:\s*-\s*(\d{1,9}))?")
_KIND_OF_FIELD = {"image_url": "image_url", "document_url": "document_url", "file_id": "file"}
_OPEN = ConfigDict(extra="ignore", frozen=True)


class ImageUrl(BaseModel):
    """URL of an image, as an object."""

    model_config = _OPEN

    url: str = Field(description="A data: URL; http(s) where the service allows it.")


class DocumentUrlChunk(BaseModel):
    """A document."""

    model_config = _OPEN

    type: Literal["document_url"] = "document_url"
    document_url: str = Field(description="A data: URL; http(s) where the service allows it.")
    document_name: str | None = Field(None, description="Its name.")

    @property
    def url(self) -> str:
        """Where it is."""
        return self.document_url


class ImageUrlChunk(BaseModel):
    """An image."""

    model_config = _OPEN

    type: Literal["image_url"] = "image_url"
    image_url: ImageUrl | str = Field(description="A data: URL; http(s) where the service allows it.")
    document_name: None = None

    @property
    def url(self) -> str:
        """Where it is."""
        return self.image_url if isinstance(self.image_url, str) else self.image_url.url


class FileChunk(BaseModel):
    """A file that was uploaded before; refused, as there is no such upload."""

    model_config = _OPEN

    type: Literal["file"] = "file"
    file_id: str


def _kind_of(document: object) -> str:
    """Which kind of document this is; clients may leave `type` out."""
    if isinstance(document, BaseModel):
        document = document.model_dump()
    if not isinstance(document, Mapping):
        return "document_url"
    by_field = next((kind for name, kind in _KIND_OF_FIELD.items() if name in document), "document_url")
    return str(document.get("type") or by_field)


OcrDocument = Annotated[
    Annotated[DocumentUrlChunk, Tag("document_url")]
    | Annotated[ImageUrlChunk, Tag("image_url")]
    | Annotated[FileChunk, Tag("file")],
    Discriminator(_kind_of),
]


class OcrWishes(BaseModel):
    """How to read a document; fields that are not known are ignored."""

    model_config = _OPEN

    pages: list[Annotated[int, Field(ge=0)]] | str | None = Field(
        None, description="Pages from 0, as a list or as ranges such as `0-5,7`; all by default."
    )
    include_image_base64: bool | None = Field(None, description="Whether pictures are in the answer.")
    image_limit: int | None = Field(None, ge=0, description="Most pictures.")
    image_min_size: int | None = Field(None, ge=0, description="Least width and height of a picture, in pixels.")
    table_format: TableFormat | None = Field(
        None, description="Tables are taken out of the Markdown, in this notation; they stay in it by default."
    )
    extract_header: bool | None = Field(None, description="Whether running headers are apart from the Markdown.")
    extract_footer: bool | None = Field(None, description="Whether running footers are apart from the Markdown.")
    include_blocks: bool | None = Field(None, description="Whether regions are told, where the engine knows them.")
    confidence_scores_granularity: Literal["page", "block", "word"] | None = Field(
        None, description="Whether confidences are told, where the engine has them; not by `word`."
    )
    bbox_annotation_format: Any = Field(None, description="Not supported; must be null.")
    document_annotation_format: Any = Field(None, description="Not supported; must be null.")
    document_annotation_prompt: Any = Field(None, description="Not supported; must be null.")

    @field_validator("pages")
    @classmethod
    def _some_pages(cls, pages: list[int] | str | None) -> list[int] | str | None:
        if isinstance(pages, list) and not pages:
            return None
        return pages

    def check(self) -> None:
        """Refuses what no engine here can do, rather than leaving it out in silence.

        Raises:
            RequestError: The request asks for such a thing.
        """
        for name in ("bbox_annotation_format", "document_annotation_format", "document_annotation_prompt"):
            if getattr(self, name) is not None:
                raise RequestError(f"{name} is not supported.", "Leave it out; annotate the Markdown.", param=name)
        if self.confidence_scores_granularity == "word":
            name = "confidence_scores_granularity"
            raise RequestError("Confidences are not told by word.", "Ask for `block` or `page`.", param=name)


class OcrRequest(OcrWishes):
    """What to read, and how."""

    model: str | None = Field(None, description="Any name; the service has one model and says which.")
    document: OcrDocument

    @property
    def wishes(self) -> OcrWishes:
        """All but the document, which may be large."""
        return OcrWishes.model_construct(**{name: getattr(self, name) for name in OcrWishes.model_fields})


class OcrImage(BaseModel):
    """A picture; its corners are in pixels of `OcrPage.dimensions`."""

    id: str
    top_left_x: int
    top_left_y: int
    bottom_right_x: int
    bottom_right_y: int
    image_base64: str | None = None
    image_annotation: None = None


class OcrTable(BaseModel):
    """A table that was taken out of the Markdown."""

    id: str
    content: str
    format: TableFormat


class OcrDimensions(BaseModel):
    """Size of a page's image in pixels."""

    dpi: int
    height: int
    width: int


class OcrBlockConfidence(BaseModel):
    """How sure the engine is of a region's text, from 0 to 1."""

    average_content_confidence_score: float
    minimum_content_confidence_score: float


class OcrBlock(BaseModel):
    """A region of the page."""

    type: str
    top_left_x: int
    top_left_y: int
    bottom_right_x: int
    bottom_right_y: int
    content: str
    image_id: str | None = None
    confidence_scores: OcrBlockConfidence | None = None


class OcrConfidence(BaseModel):
    """How sure the engine is of a page, from 0 to 1."""

    average_page_confidence_score: float
    minimum_page_confidence_score: float


class OcrPage(BaseModel):
    """A page."""

    index: int
    markdown: str
    images: list[OcrImage]
    dimensions: OcrDimensions | None
    tables: list[OcrTable] = Field(default_factory=list)
    hyperlinks: list[str] = Field(default_factory=list)
    header: str | None = None
    footer: str | None = None
    confidence_scores: OcrConfidence | None = None
    blocks: list[OcrBlock] | None = None


class OcrUsage(BaseModel):
    """What it took."""

    pages_processed: int
    doc_size_bytes: int | None = None


class FailedPage(BaseModel):
    """A page that could not be read; its Markdown is what could be kept."""

    index: int
    code: str
    message: str


class OcrExtra(BaseModel):
    """What Mistral's answer has no place for."""

    job_id: str
    failed_pages: list[FailedPage] = Field(default_factory=list)


class OcrEnd(BaseModel):
    """What stands behind the pages."""

    model: str
    document_annotation: None = None
    usage_info: OcrUsage
    pagemill: OcrExtra


class OcrResponse(OcrEnd):
    """The pages."""

    pages: list[OcrPage]


def page_ranges(pages: list[int] | str | None) -> str | None:
    """Pages counted from 0 as ranges counted from 1, see `PageSelection`.

    Raises:
        RequestError: They cannot be read.
    """
    if pages is None:
        return None
    runs: list[list[int]] = []
    for first, last in sorted(_zero_based(pages)):
        if runs and first <= runs[-1][1] + 1:
            runs[-1][1] = max(runs[-1][1], last)
        else:
            runs.append([first, last])
    return ",".join(str(first + 1) if first == last else f"{first + 1}-{last + 1}" for first, last in runs)


def _zero_based(pages: list[int] | str) -> list[tuple[int, int]]:
    if not isinstance(pages, str):
        return [(page, page) for page in pages]
    found = []
    for part in pages.split(","):
        match = _PAGE_RANGE.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if last < first:
            raise RequestError(
                f"'{part[:50]}' in pages cannot be understood.",
                "Write ranges such as 0-5,7; pages count from 0.",
                param="pages",
            )
        found.append((first, last))
    return found
