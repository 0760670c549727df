"""Results of pages as the job store keeps them: compressed JSON, and their pictures as blobs."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

from pagemill.conversion.codec import page_from_json, page_to_json, with_figure_data
from pagemill.domain import FinishReason, Page, PageResult, StoredPage

_LEVEL = 6


@dataclass(frozen=True, slots=True)
class DecodedPage:
    """A page and its result; figures have no bytes until `with_figures`.

    Attributes:
        page: The page as the document has it.
        result: Its result.
        blobs: Where each figure is, by its name.
    """

    page: Page
    result: PageResult
    blobs: Mapping[str, str]

    def with_figures(self, data: Mapping[str, bytes]) -> DecodedPage:
        """With the bytes of its figures, by name; those that are not there are left out."""
        known = tuple(figure for figure in self.result.figures if figure.name in data)
        return replace(self, result=with_figure_data(replace(self.result, figures=known), dict(data)))


def figure_blobs(job_id: str, attempt: int, result: PageResult) -> dict[str, bytes]:
    """The figures of a page by the names of their blobs."""
    return {_blob(job_id, attempt, figure.name): figure.data for figure in result.figures}


def encode_page(job_id: str, attempt: int, page: Page, result: PageResult) -> StoredPage:
    """A page for the store.

    Args:
        job_id: Its job.
        attempt: Of the job: pictures of a later one never replace those of a result that is there.
        page: The page as the document has it.
        result: Its result.
    """
    blobs = {figure.name: _blob(job_id, attempt, figure.name) for figure in result.figures}
    value = {
        "page": [page.index, page.width_pt, page.height_pt, page.rotation],
        "blobs": blobs,
        "result": page_to_json(result),
    }
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return StoredPage(
        index=result.index,
        ok=result.ok,
        data=zlib.compress(text.encode(), _LEVEL),
        error=result.error,
        usage=result.usage,
        figures=tuple(blobs.values()),
    )


def decode_page(stored: StoredPage) -> DecodedPage:
    """The page that `encode_page` packed, or one that the store failed because nobody came to its end."""
    if not stored.data:
        unread = PageResult(stored.index, "", FinishReason.ERROR, attempts=0, error=stored.error)
        return DecodedPage(Page(stored.index, 0.0, 0.0), unread, {})
    value = json.loads(zlib.decompress(stored.data))
    return DecodedPage(Page(*value["page"]), page_from_json(value["result"]), value["blobs"])


def _blob(job_id: str, attempt: int, name: str) -> str:
    return f"figures/{job_id}/{attempt}-{name}"
