from __future__ import annotations

import pytest

from pagemill.documents.sniff import detect_format
from pagemill.domain.errors import CorruptDocumentError, UnsupportedFormatError


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"%PDF-1.7\n", "pdf"),
        (b"junk before the header\r\n%PDF-1.4", "pdf"),
        (b"\x89PNG\r\n\x1a\n", "png"),
        (b"\xff\xd8\xff\xe0", "jpeg"),
        (b"II*\x00", "tiff"),
        (b"MM\x00+", "tiff"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "webp"),
        (b"P4\n8 8\n", "ppm"),
        (b"\x00\x00\x00\x0cjP  \r\n\x87\n", "jp2"),
        (b"\xff\x4f\xff\x51", "jp2"),
        (b"\x00\x00\x00\x1cftypmif1\x00\x00\x00\x00mif1avif", "avif"),
        (b"\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic", "heif"),
        (b"BM" + bytes(12) + b"\x28\x00\x00\x00" + bytes(20), "bmp"),
    ],
)
def test_content_decides(head: bytes, expected: str) -> None:
    assert detect_format(head, "x") == expected


@pytest.mark.parametrize(
    ("head", "what"),
    [
        (b"PK\x03\x04", "Office"),
        (b"%!PS-Adobe", "PostScript"),
        (b"<!DOCTYPE html><html>", "HTML"),
        (b"<?xml version", "XML"),
        (b"just words\n", "text"),
        (b"BMW is a car maker", "text"),
        (bytes(range(256)), "unknown"),
        (b"\x00\x00\x00\x1cftypisom\x00\x00\x00\x00isommp42", "unknown"),
    ],
)
def test_other_content_is_named_in_the_refusal(head: bytes, what: str) -> None:
    with pytest.raises(UnsupportedFormatError, match=what) as caught:
        detect_format(head, "report.pdf")
    assert "report.pdf" in str(caught.value)
    assert "Convert" in caught.value.remedy


def test_an_empty_file_is_damaged() -> None:
    with pytest.raises(CorruptDocumentError, match="empty"):
        detect_format(b"", "x")
