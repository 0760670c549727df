"""The OCR API of Mistral: its request and its answer.

Fields are those of Mistral's own client; how tables and pictures are referred to (`[tbl-0.md](tbl-0.md)`,
`![img-0.png](img-0.png)`, numbered through the document) is what clients of that API look for in the Markdown.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, field_validator

from pagemill.domain import Block, BlockKind, BoundingBox, Figure, Page, PageResult
from pagemill.domain.errors import RequestError
from pagemill.gateway.mistral_tables import TableFormat, take_tables

_POINTS_PER_INCH = 72
_PICTURE_LINK = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)")
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\((https?://[^)\s]+)|<(https?://[^>\s]+)>")
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


@dataclass
class PageShaper:
    """Gives the pages of one document their shape, in order: pictures and tables are numbered through it.

    Args:
        request: What was asked for.
    """

    request: OcrWishes
    _images: int = field(default=0, init=False)
    _tables: int = field(default=0, init=False)

    def wanted_figures(self, result: PageResult) -> tuple[Figure, ...]:
        """The pictures of the next page that will be in the answer; their bytes are needed by `shape`."""
        limit, least = self.request.image_limit, self.request.image_min_size or 0
        large = [figure for figure in result.figures if min(figure.box.width, figure.box.height) >= least]
        return tuple(large if limit is None else large[: max(0, limit - self._images)])

    def shape(self, page: Page, result: PageResult, data: Mapping[str, bytes]) -> OcrPage:
        """The next page.

        Args:
            page: The page.
            result: What was read.
            data: Bytes of its pictures by name, where they are to be in the answer.
        """
        names: dict[str, str] = {}
        images = [self._image(figure, names, data) for figure in self.wanted_figures(result)]
        markdown = self._body(result)
        dropped = {figure.name for figure in result.figures} - names.keys()
        markdown = _PICTURE_LINK.sub(lambda match: _relinked(match, names, dropped), markdown)
        links = [match[1] or match[2] for match in _LINK.finditer(markdown)]
        tables: list[OcrTable] = []
        if (wanted := self.request.table_format) is not None:
            markdown = take_tables(markdown, wanted, lambda content: self._reference(content, wanted, tables))
        asked = self.request
        return OcrPage(
            index=result.index,
            markdown=markdown.strip("\n"),
            images=images,
            dimensions=_dimensions(page, result),
            tables=tables,
            hyperlinks=list(dict.fromkeys(links)),
            header=_furniture(result, BlockKind.HEADER) if asked.extract_header else None,
            footer=_furniture(result, BlockKind.FOOTER) if asked.extract_footer else None,
            confidence_scores=_confidence(result) if asked.confidence_scores_granularity else None,
            blocks=self._blocks(result, names) if asked.include_blocks is not False and result.blocks else None,
        )

    def _body(self, result: PageResult) -> str:
        head = None if self.request.extract_header else _furniture(result, BlockKind.HEADER)
        foot = None if self.request.extract_footer else _furniture(result, BlockKind.FOOTER)
        return "\n\n".join(part for part in (head, result.markdown.strip("\n"), foot) if part)

    def _image(self, figure: Figure, names: dict[str, str], data: Mapping[str, bytes]) -> OcrImage:
        name = f"img-{self._images}.{figure.media_type.rpartition('/')[2]}"
        self._images += 1
        names[figure.name] = name
        content = data.get(figure.name)
        encoded = None if content is None else f"data:{figure.media_type};base64,{base64.b64encode(content).decode()}"
        return OcrImage(id=name, **_corners(figure.box), image_base64=encoded)

    def _reference(self, content: str, wanted: TableFormat, tables: list[OcrTable]) -> str:
        name = f"tbl-{self._tables}.{'md' if wanted == 'markdown' else 'html'}"
        self._tables += 1
        tables.append(OcrTable(id=name, content=content, format=wanted))
        return f"[{name}]({name})"

    def _blocks(self, result: PageResult, names: Mapping[str, str]) -> list[OcrBlock]:
        by_block = self.request.confidence_scores_granularity == "block"
        return [_block(block, names, with_confidence=by_block) for block in result.blocks]


def _relinked(match: re.Match[str], names: Mapping[str, str], dropped: Iterable[str]) -> str:
    name = names.get(match[1])
    if name is None:
        return "" if match[1] in dropped else match.group(0)
    return f"![{name}]({name})"


def _block(block: Block, names: Mapping[str, str], *, with_confidence: bool) -> OcrBlock:
    linked = _PICTURE_LINK.search(block.markdown)
    # Clients insist on a name for pictures, even where the picture was left out.
    image = (names.get(linked[1]) if linked else None) or "" if block.kind is BlockKind.FIGURE else None
    least = min((line.confidence for line in block.lines), default=block.confidence)
    scores = OcrBlockConfidence(
        average_content_confidence_score=block.confidence, minimum_content_confidence_score=least
    )
    return OcrBlock(
        type="image" if block.kind is BlockKind.FIGURE else block.kind.value,
        **_corners(block.box),
        content=_PICTURE_LINK.sub(lambda match: _relinked(match, names, ()), block.markdown),
        image_id=image,
        confidence_scores=scores if with_confidence else None,
    )


def _corners(box: BoundingBox) -> dict[str, int]:
    return {
        "top_left_x": round(box.left),
        "top_left_y": round(box.top),
        "bottom_right_x": round(box.right),
        "bottom_right_y": round(box.bottom),
    }


def _furniture(result: PageResult, kind: BlockKind) -> str | None:
    return "\n\n".join(block.markdown for block in result.blocks if block.kind is kind) or None


def _confidence(result: PageResult) -> OcrConfidence | None:
    if result.confidence is None:
        return None
    least = min((line.confidence for block in result.blocks for line in block.lines), default=result.confidence)
    return OcrConfidence(
        average_page_confidence_score=result.confidence, minimum_page_confidence_score=min(least, result.confidence)
    )


def _dimensions(page: Page, result: PageResult) -> OcrDimensions | None:
    if not (result.width and result.height):
        return None
    # By the long sides: a scan may have been turned.
    inches = max(page.width_pt, page.height_pt) / _POINTS_PER_INCH
    return OcrDimensions(
        dpi=max(1, round(max(result.width, result.height) / inches)), height=result.height, width=result.width
    )
