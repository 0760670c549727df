"""Every file of the robustness collection gives what its manifest expects, through the real pool."""

from __future__ import annotations

import asyncio
import io
import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from pagemill.documents import RenderOptions, RenderPool
from pagemill.domain import DocumentSource, PageImage, TextVerdict
from pagemill.domain.errors import EncryptedDocumentError, InputError

pytestmark = pytest.mark.shared_data

MEMORY = 1024**3


async def outcome(pool: RenderPool, source: DocumentSource) -> tuple[str, list[PageImage | BaseException]]:
    try:
        info = await pool.inspect(source)
    except InputError as error:
        return "error", [error]
    pages = await asyncio.gather(
        *(pool.render(source, page, text_layer=True) for page in info.pages[:5]), return_exceptions=True
    )
    good = [page for page in pages if isinstance(page, PageImage)]
    bad = [page for page in pages if not isinstance(page, PageImage)]
    assert all(isinstance(error, InputError) for error in bad), bad
    for page in good:
        with Image.open(io.BytesIO(page.data)) as image:
            image.load()
            assert image.size == (page.width, page.height)
            assert max(image.size) <= pool.options.long_side_for(*image.size) + 1
    return "ok" if good else "error", list(pages)


@pytest.fixture(scope="module")
def manifest(shared_data: Path) -> list[dict[str, Any]]:
    lines = (shared_data / "robustness" / "manifest.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


async def test_every_file_gives_its_expected_outcome(shared_data: Path, manifest: list[dict[str, Any]]) -> None:
    wrong = []
    options = RenderOptions(memory_limit_bytes=MEMORY, page_timeout_s=30, inspect_timeout_s=30)
    async with RenderPool(options, workers=2) as pool:
        for entry in manifest:
            source = DocumentSource(shared_data / "robustness" / entry["path"], entry["path"])
            found, pages = await outcome(pool, source)
            if found not in entry["expected_outcome"]:
                wrong.append((entry["path"], found, pages))
            assert pool.resident_bytes < MEMORY
    assert not wrong


async def test_passwords_open_what_they_should(shared_data: Path, manifest: list[dict[str, Any]]) -> None:
    async with RenderPool(workers=1) as pool:
        for entry in manifest:
            if entry["group"] != "password":
                continue
            path = shared_data / "robustness" / entry["path"]
            with pytest.raises(EncryptedDocumentError):
                await pool.inspect(DocumentSource(path, entry["path"], ("wrong",)))
            if "password" in entry:
                found, _ = await outcome(pool, DocumentSource(path, entry["path"], ("wrong", entry["password"])))
                assert found == "ok", entry["path"]


EXPECTED_VERDICTS = {
    "en_olmo_page1.pdf": {TextVerdict.GARBLED},
    "en_scan_old_noisy_book.pdf": {TextVerdict.HIDDEN},
    "en_hand_lincoln.pdf": {TextVerdict.ABSENT},
    "en_blank_page.pdf": {TextVerdict.ABSENT},
}


async def test_text_layers_of_real_documents_are_judged_rightly(shared_data: Path) -> None:
    wrong = []
    async with RenderPool(RenderOptions(long_side=500), workers=2) as pool:
        for path in sorted((shared_data / "quality").glob("*.pdf")):
            source = DocumentSource(path, path.name)
            absent = {TextVerdict.ABSENT} if path.name.startswith("noisy_") else {TextVerdict.SANE}
            for page in (await pool.inspect(source)).pages:
                layer = (await pool.render(source, page, text_layer=True)).text_layer
                if layer.verdict not in EXPECTED_VERDICTS.get(path.name, absent):
                    wrong.append((path.name, layer.verdict, layer.reasons))
    assert not wrong
