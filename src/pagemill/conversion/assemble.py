"""Page results to one Markdown document."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote

from pagemill.conversion.options import FurniturePolicy
from pagemill.domain import BlockKind, PageFlag, PageResult

_LINK_TARGET = re.compile(r"(!\[[^\]]*\]\()([^)\s]+)(\))")


def page_marker(result: PageResult) -> str:
    """The comment at the start of a page: its number, and what a reader must know about it."""
    number = result.index + 1
    if not result.ok:
        reason = result.error.code if result.error else result.finish_reason.value
        kept = "incomplete" if result.markdown.strip() else "failed"
        return f"<!-- page {number}: {kept} ({_comment_safe(reason)}) -->"
    if PageFlag.BLANK in result.flags:
        return f"<!-- page {number}: blank -->"
    return f"<!-- page {number} -->"


def page_markdown(result: PageResult, furniture: FurniturePolicy, figure_folder: str = "") -> str:
    """The Markdown of one page without its marker, with links that lead into `figure_folder`."""
    body = result.markdown.strip("\n")
    if furniture is not FurniturePolicy.DROP:
        head = [_furniture(block.markdown, furniture) for block in result.blocks if block.kind is BlockKind.HEADER]
        foot = [_furniture(block.markdown, furniture) for block in result.blocks if block.kind is BlockKind.FOOTER]
        body = "\n\n".join(part for part in (*head, body, *foot) if part)
    names = {figure.name for figure in result.figures}
    if not names or not figure_folder:
        return body

    def relink(match: re.Match[str]) -> str:
        before, target, after = match.groups()
        return f"{before}{quote(figure_folder)}/{quote(target)}{after}" if target in names else match.group(0)

    return _LINK_TARGET.sub(relink, body)


def document_markdown(
    pages: Iterable[PageResult], furniture: FurniturePolicy, figure_folder: str = "", *, page_markers: bool = True
) -> Iterator[str]:
    """The Markdown of a document, a piece for each page; joined without a separator they are the file."""
    first = True
    for result in pages:
        piece = document_piece(result, furniture, figure_folder, page_markers=page_markers, first=first)
        if piece:
            yield piece
            first = False


def document_piece(
    result: PageResult, furniture: FurniturePolicy, figure_folder: str = "", *, page_markers: bool = True, first: bool
) -> str:
    """What one page adds to the Markdown of its document.

    Args:
        result: The page.
        furniture: Headers and footers.
        figure_folder: Folder of the pictures.
        page_markers: Whether the page is named; failed ones always are.
        first: Whether the document has nothing in it so far.
    """
    body = page_markdown(result, furniture, figure_folder)
    parts = [page_marker(result)] if page_markers or not result.ok else []
    if body:
        parts.append(body)
    return ("" if first else "\n") + "\n\n".join(parts) + "\n" if parts else ""


def _furniture(markdown: str, policy: FurniturePolicy) -> str:
    return f"<!-- {_comment_safe(markdown)} -->" if policy is FurniturePolicy.COMMENT else markdown


def _comment_safe(text: str) -> str:
    """The text on one line, without what would end an HTML comment."""
    return re.sub(r"-{2,}", "-", " ".join(text.split())).replace(">", "&gt;")
