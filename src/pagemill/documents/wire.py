"""What the pool and its render processes say to each other.

A message is a head (`>II`: bytes of JSON, bytes of data), the JSON, and the data. Nothing that comes out of a
render process, which has handled hostile files, is unpickled or trusted to have the right shape.
"""

from __future__ import annotations

import json
import struct
from dataclasses import asdict
from typing import Any

from pagemill.documents.reader import Raster
from pagemill.domain import (
    BoundingBox,
    DocumentInfo,
    Page,
    PageImage,
    TextLayer,
    TextSpan,
    TextVerdict,
)
from pagemill.domain import errors as error_module
from pagemill.domain.errors import InputError, RenderError

HEAD = struct.Struct(">II")
MAX_JSON = 64 * 1024**2
MAX_DATA = 1024**3

_ERRORS: dict[str, type[InputError]] = {
    kind.code: kind for kind in vars(error_module).values() if isinstance(kind, type) and issubclass(kind, InputError)
}


class WireError(Exception):
    """A message has not the agreed shape."""


def pack(message: dict[str, Any], data: bytes = b"") -> bytes:
    """One message as bytes."""
    text = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    return HEAD.pack(len(text), len(data)) + text + data


def unpack_head(head: bytes) -> tuple[int, int]:
    """Lengths of the JSON and of the data.

    Raises:
        WireError: They are out of all reason.
    """
    json_length, data_length = HEAD.unpack(head)
    if json_length > MAX_JSON or data_length > MAX_DATA:
        raise WireError(f"a message of {json_length} + {data_length} bytes")
    return json_length, data_length


def unpack_json(text: bytes) -> dict[str, Any]:
    """The JSON of a message.

    Raises:
        WireError: It is no object.
    """
    try:
        message = json.loads(text.decode("utf-8", "surrogatepass"))
    except ValueError as error:
        raise WireError("a message that is no JSON") from error
    if not isinstance(message, dict):
        raise WireError("a message that is no object")
    return message


def error_to_json(error: InputError) -> dict[str, Any]:
    """An error as data."""
    message = str(error)
    if error.remedy:
        message = message.removesuffix(error.remedy).rstrip()
    return {"error": error.code, "message": message, "remedy": error.remedy}


def error_from_json(message: dict[str, Any]) -> InputError:
    """The error that `error_to_json` described."""
    kind = _ERRORS.get(str(message.get("error")), RenderError)
    return kind(str(message.get("message", "")), str(message.get("remedy", "")))


def info_to_json(info: DocumentInfo) -> dict[str, Any]:
    """A document's description as data."""
    return {
        "sha256": info.sha256,
        "format": info.format,
        "warnings": info.warnings,
        "pages": [[page.width_pt, page.height_pt, page.rotation] for page in info.pages],
    }


def info_from_json(message: dict[str, Any]) -> DocumentInfo:
    """The description that `info_to_json` wrote.

    Raises:
        WireError: Its shape is wrong.
    """
    try:
        pages = tuple(
            Page(index, float(width), float(height), int(rotation))
            for index, (width, height, rotation) in enumerate(message["pages"])
        )
        return DocumentInfo(str(message["sha256"]), str(message["format"]), pages, tuple(map(str, message["warnings"])))
    except (KeyError, TypeError, ValueError) as error:
        raise WireError("a document's description of the wrong shape") from error


def page_to_json(raster: Raster, media_type: str) -> dict[str, Any]:
    """All of a rendered page but its pixels, as data."""
    layer = raster.text_layer
    return {
        "media_type": media_type,
        "size": raster.image.size,
        "warnings": raster.warnings,
        "text_layer": layer
        and {
            "verdict": layer.verdict.value,
            "reasons": layer.reasons,
            "images": [_box_to_json(box) for box in layer.images],
            "spans": [{**asdict(span), "box": _box_to_json(span.box)} for span in layer.spans],
        },
    }


def page_from_json(index: int, message: dict[str, Any], data: bytes) -> PageImage:
    """The page that `page_to_json` described.

    Raises:
        WireError: Its shape is wrong.
    """
    try:
        width, height = map(int, message["size"])
        layer = message["text_layer"]
        return PageImage(
            index,
            data,
            str(message["media_type"]),
            width,
            height,
            None if layer is None else _layer_from_json(layer),
            tuple(map(str, message["warnings"])),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise WireError("a page of the wrong shape") from error


def _layer_from_json(layer: dict[str, Any]) -> TextLayer:
    return TextLayer(
        TextVerdict(layer["verdict"]),
        tuple(_span_from_json(span) for span in layer["spans"]),
        tuple(_box_from_json(box) for box in layer["images"]),
        tuple(map(str, layer["reasons"])),
    )


def _span_from_json(span: dict[str, Any]) -> TextSpan:
    return TextSpan(
        str(span["text"]),
        _box_from_json(span["box"]),
        float(span["font_size"]),
        str(span["font"]),
        bool(span["bold"]),
        bool(span["italic"]),
        bool(span["sane"]),
        bool(span["vertical"]),
    )


def _box_to_json(box: BoundingBox) -> list[float]:
    return [round(box.left, 2), round(box.top, 2), round(box.right, 2), round(box.bottom, 2)]


def _box_from_json(values: list[float]) -> BoundingBox:
    left, top, right, bottom = map(float, values)
    return BoundingBox(left, top, right, bottom)
