"""What a file is, told from its first bytes and never from its name."""

from __future__ import annotations

from pagemill.domain.errors import CorruptDocumentError, UnsupportedFormatError

HEAD_BYTES = 2048
_PDF_WINDOW = 1024  # PDF readers accept junk before the header, up to here (ISO 32000-1, annex H, note 13)

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"\xff\xd8\xff", "jpeg"),
    (b"II*\x00", "tiff"),
    (b"MM\x00*", "tiff"),
    (b"II+\x00", "tiff"),
    (b"MM\x00+", "tiff"),
    (b"GIF87a", "gif"),
    (b"GIF89a", "gif"),
    (b"\x00\x00\x00\x0cjP  \r\n\x87\n", "jp2"),
    (b"\xff\x4f\xff\x51", "jp2"),
)
_ISO_BRANDS = {
    b"avif": "avif",
    b"avis": "avif",
    b"heic": "heif",
    b"heix": "heif",
    b"heim": "heif",
    b"heis": "heif",
    b"hevc": "heif",
    b"hevx": "heif",
    b"mif1": "heif",
    b"msf1": "heif",
}
_FOREIGN: tuple[tuple[bytes, str], ...] = (
    (b"PK\x03\x04", "a ZIP archive or an Office document"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office document"),
    (b"%!PS", "PostScript"),
    (b"{\\rtf", "RTF"),
    (b"AT&TFORM", "DjVu"),
    (b"8BPS", "a Photoshop file"),
    (b"\xff\x0a", "JPEG XL"),
    (b"\x00\x00\x00\x0cJXL ", "JPEG XL"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"7z\xbc\xaf", "a 7-Zip archive"),
    (b"Rar!", "a RAR archive"),
)
_SUFFIXES = """
.pdf .png .apng .jpg .jpeg .jpe .jfif .tif .tiff .webp .gif .bmp .dib .pbm .pgm .ppm .pnm
.jp2 .j2k .jpf .jpx .j2c .jpc .avif .heic .heif .hif
"""
SUFFIXES = frozenset(_SUFFIXES.split())
"""Suffixes of files that are taken up from folders."""


def detect_format(head: bytes, name: str) -> str:
    """Tells the format from the first `HEAD_BYTES` of a file.

    Args:
        head: The file's first bytes.
        name: What to call the file in messages.

    Returns:
        `pdf`, `png`, `jpeg`, `tiff`, `webp`, `gif`, `bmp`, `ppm`, `jp2`, `avif` or `heif`.

    Raises:
        CorruptDocumentError: The file is empty.
        UnsupportedFormatError: It is something else.
    """
    if not head:
        raise CorruptDocumentError(f"{name} is empty (0 bytes).", "Check how the file was made or transferred.")
    for magic, kind in _MAGIC:
        if head.startswith(magic):
            return kind
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "webp"
    if head[:2] == b"BM" and len(head) > 18 and head[14:18] in _BMP_HEADERS:
        return "bmp"
    if head[:1] == b"P" and head[1:2] in b"123456" and head[2:3].isspace():
        return "ppm"
    if head[4:8] == b"ftyp" and (brand := _iso_brand(head)):
        return brand
    if b"%PDF-" in head[: _PDF_WINDOW + 5]:
        return "pdf"
    raise UnsupportedFormatError(
        f"{name} is {_describe(head)}, no PDF or image that can be read.",
        "Convert it to PDF first, or give a PDF, PNG, JPEG, TIFF, WebP, GIF, BMP, PNM, JPEG 2000, AVIF or HEIC file.",
    )


_BMP_HEADERS = {size.to_bytes(4, "little") for size in (12, 16, 40, 52, 56, 64, 108, 124)}


def _iso_brand(head: bytes) -> str | None:
    size = min(int.from_bytes(head[:4], "big"), len(head))
    brands = [head[8:12], *(head[at : at + 4] for at in range(16, size - 3, 4))]
    if b"avif" in brands or b"avis" in brands:
        return "avif"
    return next((_ISO_BRANDS[brand] for brand in brands if brand in _ISO_BRANDS), None)


def _describe(head: bytes) -> str:
    for magic, what in _FOREIGN:
        if head.startswith(magic):
            return what
    start = head.lstrip()[:64].lower()
    if start.startswith((b"<!doctype html", b"<html")):
        return "an HTML page"
    if start.startswith((b"<?xml", b"<svg")):
        return "XML or SVG"
    printable = sum(byte >= 32 or byte in b"\t\r\n\f" for byte in head)
    return "text" if printable > 0.95 * len(head) and b"\x00" not in head else "of an unknown format"
