from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.types import Message

from pagemill.domain.errors import RequestError, UnsupportedFormatError
from pagemill.gateway.multipart import Form, read_form

PDF = b"%PDF-1.7\n" + bytes(range(256)) * 40


def part(name: str, data: bytes, filename: str | None = None) -> bytes:
    file = "" if filename is None else f'; filename="{filename}"'
    return f'--b\r\nContent-Disposition: form-data; name="{name}"{file}\r\n\r\n'.encode() + data + b"\r\n"


END = b"--b--\r\n"


async def read(body: bytes, folder: Path, *, files: int = 2, size: int = 2**16, media: str = "") -> Form:
    chunks = [body[at : at + size] for at in range(0, len(body), size)] or [b""]
    messages = iter(
        [{"type": "http.request", "body": chunk, "more_body": at + 1 < len(chunks)} for at, chunk in enumerate(chunks)]
    )

    async def receive() -> Message:
        return next(messages)

    head = [(b"content-type", (media or "multipart/form-data; boundary=b").encode())]
    request = Request({"type": "http", "method": "POST", "headers": head}, receive)
    return await read_form(request, folder, max_files=files)


@pytest.mark.parametrize("size", [1, 7, 2**16])
async def test_files_and_fields_come_whole_however_they_are_cut(tmp_path: Path, size: int) -> None:
    other = b"\x89PNG\r\n\x1a\n\r\n--\r\n--a\r\n-- b\r\n--"
    body = part("pages", b"1-3") + part("file", PDF, "a.pdf") + part("file", other, "../b.png") + part("x", b"")
    form = await read(body + END, tmp_path, size=size)
    assert form.fields == (("pages", "1-3"), ("x", ""))
    assert [(upload.name, upload.size) for upload in form.files] == [("a.pdf", len(PDF)), ("b.png", len(other))]
    assert [upload.path.read_bytes() for upload in form.files] == [PDF, other]
    assert form.files[0].sha256 == hashlib.sha256(PDF).hexdigest()
    assert {upload.path.parent for upload in form.files} == {tmp_path}


async def test_a_file_larger_than_the_buffer_is_whole(tmp_path: Path) -> None:
    data = b"%PDF-1.7\n" + bytes(5 * 2**20 + 17)
    form = await read(part("file", data, "a.pdf") + END, tmp_path)
    assert form.files[0].path.read_bytes() == data
    assert form.files[0].sha256 == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (part("file", PDF, "a.pdf") * 3 + END, "file"),
        (part("document", PDF, "a.pdf") + END, "document"),
        (part("options", b"x" * 70_000) + END, "options"),
        (part("pages", b"\xff\xfe") + END, "pages"),
        (part("x", b"") * 65 + END, None),
        (b'--b\r\nContent-Disposition: form-data; name="x"\r\nX: ' + b"y" * 9000 + b"\r\n\r\n\r\n" + END, None),
        (part("file", PDF, "a.pdf"), None),
        (b"", None),
        (b"no form at all", None),
    ],
    ids=["files", "field", "long", "no-utf8", "fields", "head", "cut", "empty", "none"],
)
async def test_forms_out_of_bounds_are_refused(tmp_path: Path, body: bytes, param: str | None) -> None:
    with pytest.raises(RequestError) as caught:
        await read(body, tmp_path)
    assert caught.value.param == param
    assert caught.value.remedy


@pytest.mark.parametrize(
    "media", ["application/pdf", "multipart/form-data", f"multipart/form-data; boundary={'b' * 300}"]
)
async def test_what_is_no_form_is_refused(tmp_path: Path, media: str) -> None:
    with pytest.raises(RequestError):
        await read(part("file", PDF, "a.pdf") + END, tmp_path, media=media)


async def test_a_file_that_is_no_document_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedFormatError, match="a ZIP archive"):
        await read(part("file", b"PK\x03\x04", "a.pdf") + END, tmp_path)


@settings(deadline=None, max_examples=200)
@given(body=st.binary(max_size=300), size=st.integers(1, 50))
async def test_no_bytes_break_it(tmp_path_factory: pytest.TempPathFactory, body: bytes, size: int) -> None:
    folder = tmp_path_factory.mktemp("form")
    for whole in (body, b"--b\r\n" + body, part("file", PDF, "a.pdf") + b"--b" + body):
        try:
            await read(whole, folder, size=size)
        except RequestError:
            continue
