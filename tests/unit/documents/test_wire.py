from __future__ import annotations

import pytest
from PIL import Image

from pagemill.documents import wire
from pagemill.documents.reader import Raster
from pagemill.domain import BoundingBox, DocumentInfo, Page, TextLayer, TextSpan, TextVerdict
from pagemill.domain.errors import CorruptDocumentError, EncryptedDocumentError, InputError, RenderError


def round_trip(message: dict[str, object], data: bytes = b"") -> tuple[dict[str, object], bytes]:
    packed = wire.pack(message, data)
    json_length, data_length = wire.unpack_head(packed[: wire.HEAD.size])
    body = packed[wire.HEAD.size :]
    assert len(body) == json_length + data_length
    return wire.unpack_json(body[:json_length]), body[json_length:]


def test_a_document_survives_the_way() -> None:
    info = DocumentInfo("ab" * 32, "pdf", (Page(0, 595.2, 842.0), Page(1, 0.0, 0.0, 90)), ("slot 2 is damaged",))
    message, _ = round_trip(wire.info_to_json(info))
    assert wire.info_from_json(message) == info


def test_a_page_survives_the_way() -> None:
    span = TextSpan("æ\U0001d465", BoundingBox(1, 2, 3.5, 4.25), 12.5, "Font", bold=True, vertical=True, sane=False)
    layer = TextLayer(TextVerdict.GARBLED, (span,), (BoundingBox(0, 0, 9, 9),), ("why",))
    raster = Raster(Image.new("L", (20, 30)), layer, ("cut short",))
    message, data = round_trip(wire.page_to_json(raster, "image/png"), b"pixels")
    page = wire.page_from_json(4, message, data)
    assert (page.index, page.width, page.height, page.data, page.warnings) == (4, 20, 30, b"pixels", ("cut short",))
    assert page.text_layer == layer


@pytest.mark.parametrize("kind", [CorruptDocumentError, EncryptedDocumentError, InputError])
def test_an_error_survives_the_way(kind: type[InputError]) -> None:
    error = wire.error_from_json(round_trip(wire.error_to_json(kind("It is broken.", "Mend it.")))[0])
    assert type(error) is kind
    assert str(error) == "It is broken. Mend it."
    assert error.remedy == "Mend it."


def test_an_unknown_error_is_a_render_error() -> None:
    assert type(wire.error_from_json({"error": "__import__", "message": "x"})) is RenderError


@pytest.mark.parametrize("text", [b"[]", b"{", b"\xff\xff", b'"x"'])
def test_what_is_no_object_is_refused(text: bytes) -> None:
    with pytest.raises(wire.WireError):
        wire.unpack_json(text)


def test_absurd_lengths_are_refused_before_anything_is_read() -> None:
    with pytest.raises(wire.WireError):
        wire.unpack_head(b"\xff" * 8)


@pytest.mark.parametrize("message", [{}, {"size": [1], "text_layer": None}, {"size": "ab", "text_layer": {}}])
def test_pages_of_a_wrong_shape_are_refused(message: dict[str, object]) -> None:
    with pytest.raises(wire.WireError):
        wire.page_from_json(0, message, b"")
    with pytest.raises(wire.WireError):
        wire.info_from_json(message)


def test_lone_surrogates_in_names_survive() -> None:
    assert round_trip({"path": "\udcff.pdf"})[0] == {"path": "\udcff.pdf"}
