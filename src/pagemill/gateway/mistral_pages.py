"""Pages in the shape of Mistral's OCR API.

How tables and pictures are referred to (`[tbl-0.md](tbl-0.md)`, `![img-0.png](img-0.png)`, numbered through the
document) is what clients of that API look for in the Markdown.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pagemill.domain import Block, BlockKind, BoundingBox, Figure, Page, PageResult
from pagemill.gateway.mistral import (
    OcrBlock,
    OcrBlockConfidence,
    OcrConfidence,
    OcrDimensions,
    OcrImage,
    OcrPage,
    OcrTable,
    OcrWishes,
)
from pagemill.gateway.mistral_tables import TableFormat, take_tables

_POINTS_PER_INCH = 72
_PICTURE_LINK = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)")
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\((https?://[^)\s]+)|<(https?://[^>\s]+)>")


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
