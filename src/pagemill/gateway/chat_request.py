"""Requests of the OpenAI chat API: what of them must be known, and the little that is changed.

All fields go on as they came, but their JSON is written anew: of a key that stands there twice, one server reads the
first and another the last value, and it must be the one that was checked here.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pydantic_core

from pagemill.domain.errors import (
    BodyTooLargeError,
    ForbiddenUrlError,
    LimitExceededError,
    RequestError,
    UnsupportedFormatError,
)
from pagemill.engines.openai.tokens import image_tokens
from pagemill.gateway.fetch import fetch_document
from pagemill.gateway.image_heads import image_size
from pagemill.gateway.options import FetchOptions

MODEL_ALIASES = frozenset({"", "default", "pagemill"})
"""Names under which the service's one model can be asked for, beside its own."""

_MAX_PIXELS = 178_956_970
"""Beyond it servers fail on the image, having read all of it."""
_MOST_ITEMS = 200_000
_UNCOUNTED_BYTES = 2**20
_MOST_FETCHED = 16
_LONGEST_HEAD = 256
_HEADS = (1024, 65_536)
"""Characters of base64, multiples of 4: enough for most files; for all but JPEG files with much before the picture."""
_BYTES_PER_TOKEN = 4
_REMEDY = "See https://platform.openai.com/docs/api-reference/chat for its form."


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A request that may be passed on.

    Attributes:
        body: Its JSON.
        tokens: Of its images and its text; estimated.
        answers: How many answers it asks for.
        max_tokens: Most tokens of an answer; None for no bound.
        long_side: Pixels on the long side of its largest image, as the model sees it; 0 without images.
    """

    body: bytes
    tokens: int
    answers: int
    max_tokens: int | None
    long_side: int


async def read_chat_request(
    body: bytes, *, model: str, max_long_side: int, fetch: FetchOptions, max_bytes: int
) -> ChatRequest:
    """Looks into a request.

    Args:
        body: As it came.
        model: Name of the model that is served.
        max_long_side: Pixels to which the server scales larger images down; 0 where it does not.
        fetch: Whether, and from where, pictures may be fetched.
        max_bytes: Most bytes of all pictures that are fetched for it.

    Raises:
        RequestError: It is no such request, or an image of it is none.
        ForbiddenUrlError: It names something that is not fetched.
        LimitExceededError, UnsupportedFormatError: An image is too large, or of a kind that servers do not read.
    """
    request = _parsed(body)
    await _inline_pictures(request, fetch, max_bytes)
    if (request.get("model") or "") in MODEL_ALIASES:
        request["model"] = model
    tokens = long_side = 0
    text_bytes = len(body)
    for place, url in _data_urls(request):
        width, height = _fitted(_image_size(url, place), max_long_side)
        tokens += image_tokens(width, height)
        long_side = max(long_side, width, height)
        text_bytes -= len(url)
    return ChatRequest(
        body=pydantic_core.to_json(request),
        tokens=tokens + max(0, text_bytes) // _BYTES_PER_TOKEN,
        answers=_whole_number(request.get("n")) or 1,
        max_tokens=_whole_number(request.get("max_completion_tokens")) or _whole_number(request.get("max_tokens")),
        long_side=long_side,
    )


def _parsed(body: bytes) -> dict[str, Any]:
    # A body of nothing but commas and brackets would take a hundred times its size; small ones may.
    if len(body) > _UNCOUNTED_BYTES and sum(map(body.count, (b",", b"[", b"{"))) > _MOST_ITEMS:
        raise RequestError(f"The request has more than {_MOST_ITEMS} items.", "Send less at once.")
    try:
        request = pydantic_core.from_json(body, allow_inf_nan=False, cache_strings="keys")
    except ValueError as error:
        raise RequestError(f"The body is no JSON ({error}).", _REMEDY) from None
    if not isinstance(request, dict):
        raise RequestError("The body is no JSON object.", _REMEDY)
    if not isinstance(request.get("model", ""), str | None):
        raise RequestError("The model is no text.", _REMEDY, param="model")
    messages = request.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(message, dict) for message in messages):
        raise RequestError("The messages are no list of objects.", _REMEDY, param="messages")
    return request


def _parts(request: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Parts of messages, each with its place."""
    for number, message in enumerate(request["messages"]):
        content = message.get("content")
        for position, part in enumerate(content if isinstance(content, list) else ()):
            if isinstance(part, dict):
                yield f"messages.{number}.content.{position}", part


def _urls(part: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str, str]]:
    """URLs of a part, whatever kind it is: who holds them, under which name, and what they are."""
    for name, value in part.items():
        if name == "url" or name.endswith("_url"):
            if isinstance(value, str):
                yield part, name, value
            elif isinstance(value, dict):
                yield from _urls(value)


async def _inline_pictures(request: dict[str, Any], fetch: FetchOptions, max_bytes: int) -> None:
    """Sees to it that all URLs are data: URLs, so that no server fetches anything."""
    wanted = []
    for place, part in _parts(request):
        for holder, name, url in _urls(part):
            scheme = "".join(url[:_LONGEST_HEAD].partition(":")[:2]).lower()
            if scheme in ("http:", "https:"):
                wanted.append((place, holder, name, url))
            elif scheme != "data:":
                raise ForbiddenUrlError(
                    "The URL is neither a data: URL nor http or https.",
                    "Send the picture as data:image/png;base64,...",
                    param=place,
                )
    if len(wanted) > _MOST_FETCHED:
        raise RequestError(f"The request names more than {_MOST_FETCHED} URLs.", "Send data: URLs, or less at once.")
    left = max_bytes
    for _, holder, name, url in wanted:
        if left <= 0:
            raise BodyTooLargeError(f"The pictures are larger than {max_bytes} bytes.", "Send smaller ones.")
        fetched = await fetch_document(url, fetch, max_bytes=left)
        left -= fetched.size
        holder[name] = f"data:{fetched.media_type};base64,{base64.b64encode(fetched.data).decode()}"


def _data_urls(request: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Images of the request; sound and films are the server's to judge."""
    for place, part in _parts(request):
        for holder, name, url in _urls(part):
            if name == "image_url" or holder is part.get("image_url"):
                yield place, url


def _image_size(url: str, place: str) -> tuple[int, int]:
    head, comma, _ = url[:_LONGEST_HEAD].partition(",")
    if not comma or not head.lower().endswith(";base64"):
        raise RequestError(
            "The data: URL has no base64 in it.", "Write it as data:image/png;base64,iVBORw0...", param=place
        )
    start = len(head) + 1
    size = None
    try:
        # Where the first bytes do not tell, more are looked at, and at last all.
        for characters in (*_HEADS, len(url)):
            size = size or image_size(base64.b64decode(url[start : start + characters]))
    except ValueError:
        raise RequestError(
            "The data: URL holds no valid base64.", "Encode the whole image, with padding.", param=place
        ) from None
    if size is None:
        raise UnsupportedFormatError(
            f"The image at {place} is no PNG, JPEG, WebP, GIF or BMP.",
            "Convert it, or hand the document in at /v1/documents, which reads PDF and more kinds of images.",
        )
    if size[0] * size[1] > _MAX_PIXELS:
        raise LimitExceededError(
            f"The image at {place} has {size[0]} x {size[1]} pixels, more than {_MAX_PIXELS}.", "Scale it down."
        )
    return size


def _fitted(size: tuple[int, int], max_long_side: int) -> tuple[int, int]:
    scale = min(1.0, max_long_side / max(size)) if max_long_side else 1.0
    return max(1, math.ceil(size[0] * scale)), max(1, math.ceil(size[1] * scale))


def _whole_number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
