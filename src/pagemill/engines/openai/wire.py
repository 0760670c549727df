"""The OpenAI chat API as OCR uses it: one image in, a stream of text out."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any

from pagemill.domain import FinishReason, PageImage, SamplingParams, Usage
from pagemill.domain.errors import (
    EngineError,
    EngineOverloadedError,
    EngineTimeoutError,
    EngineUnavailableError,
    RequestRejectedError,
)

_REPETITION_DETECTION = {"max_pattern_size": 64, "min_pattern_size": 4, "min_count": 8}
_SHOWN_ERROR = 300
_SHOWN_EVENT = 80


def chat_request(model: str, image: PageImage, params: SamplingParams, *, repetition_detection: bool) -> dict[str, Any]:
    """The body of a request: the image alone, without any text; LightOnOCR tends to repeat instructions."""
    url = f"data:{image.media_type};base64,{base64.b64encode(image.data).decode()}"
    body: dict[str, Any] = {
        "model": model,
        "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}],
        "temperature": params.temperature,
        "top_p": params.top_p,
        "max_tokens": params.max_tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if repetition_detection:
        body["repetition_detection"] = _REPETITION_DETECTION
    return body


@dataclass(frozen=True, slots=True)
class Delta:
    """What one event of the stream adds.

    Attributes:
        text: New text.
        finish_reason: Why the answer ended, in its last event.
        usage: Tokens, where the server counts them.
    """

    text: str = ""
    finish_reason: FinishReason | None = None
    usage: Usage | None = None


class StreamParser:
    """Cuts a stream of server-sent events into what each adds; bytes may come in any pieces."""

    def __init__(self) -> None:
        self._rest = b""
        self.done = False

    def feed(self, data: bytes) -> list[Delta]:
        """Takes bytes of the stream.

        Raises:
            EngineError: The server reports an error inside the stream, or sends no events at all.
        """
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        return [delta for line in lines for delta in self._of_line(line)]

    def end(self) -> list[Delta]:
        """Takes the end of the stream: what stands behind the last line break, where it is a whole event."""
        rest, self._rest = self._rest, b""
        try:
            return self._of_line(rest)
        except EngineUnavailableError:
            return []

    def _of_line(self, raw: bytes) -> list[Delta]:
        line = raw.strip()
        if not line.startswith(b"data:"):
            return []
        content = line[5:].strip()
        if content == b"[DONE]":
            self.done = True
            return []
        return [_delta(content)] if content else []


def _delta(content: bytes) -> Delta:
    try:
        event = json.loads(content)
        if event.get("error"):
            status = event["error"].get("code") if isinstance(event["error"], dict) else None
            raise error_of_response(status if isinstance(status, int) else 500, content, None)
        choice = (event.get("choices") or [{}])[0]
        reason = choice.get("finish_reason")
        usage = event.get("usage")
        return Delta(
            text=str((choice.get("delta") or {}).get("content") or ""),
            finish_reason=None if reason is None else finish_reason(reason),
            usage=None if not usage else Usage(usage.get("prompt_tokens") or 0, usage.get("completion_tokens") or 0),
        )
    except (ValueError, TypeError, AttributeError, LookupError) as error:
        shown = content[:_SHOWN_EVENT].decode("utf-8", "replace")
        raise EngineUnavailableError(
            f"The server sent an event that is none of the API's ({shown}).", "Look at its log."
        ) from error


def finish_reason(text: str) -> FinishReason:
    """The server's word for why it stopped; what is unknown is no success."""
    try:
        return FinishReason(text)
    except ValueError:
        return FinishReason.ERROR


def error_of_response(status: int, body: bytes, retry_after: str | None) -> EngineError:
    """The error that an HTTP status and body stand for.

    Args:
        status: HTTP status.
        body: Body of the answer.
        retry_after: Value of the header Retry-After, in seconds or as a date (which is not read).
    """
    detail = _message(body)
    if status == 408:
        return EngineTimeoutError(f"The server waited too long for the page ({detail}).", "It is asked again.")
    if status in (425, 429, 503):
        seconds = float(retry_after) if retry_after and retry_after.strip().isdigit() else None
        return EngineOverloadedError(f"The server is full ({status}: {detail}).", "It is asked again.", seconds)
    if status in (401, 403):
        return RequestRejectedError(
            f"The server refuses the key ({status}: {detail}).", "Set engine option api_key.", any_page=True
        )
    if status == 404:
        return RequestRejectedError(
            f"The server does not know the model or the path ({detail}).",
            "Check the options model and endpoints.",
            any_page=True,
        )
    if status == 413:
        return RequestRejectedError(f"The image is too large for the server ({detail}).", "Lower --long-side.")
    if 400 <= status < 500 or status == 501:
        return RequestRejectedError(f"The server refuses the page ({status}: {detail}).", "Look at the page's image.")
    return EngineUnavailableError(f"The server failed ({status}: {detail}).", "Look at its log.")


def _message(body: bytes) -> str:
    text = body.decode("utf-8", "replace").strip()
    try:
        data = json.loads(text)
    except ValueError:
        return text[:_SHOWN_ERROR]
    error = data.get("error", data) if isinstance(data, dict) else data
    message = error.get("message", error) if isinstance(error, dict) else error
    return str(message)[:_SHOWN_ERROR]
