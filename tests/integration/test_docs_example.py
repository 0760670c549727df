"""The example by hand in docs/how-to/lightonocr.md, run as it stands there."""

from __future__ import annotations

import asyncio
import io
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from fake_openai import Answer, FakeServer

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "lightonocr.md"


@pytest.mark.skipif(
    not all(shutil.which(tool) for tool in ("bash", "pdftoppm", "curl", "base64")), reason="pdftoppm or curl is missing"
)
async def test_the_page_by_hand_works_as_written(tmp_path: Path, make_pdf: Callable[..., Path]) -> None:
    script = re.search(r"```bash\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert script is not None
    make_pdf(tmp_path / "document.pdf", size=(595, 842))
    async with FakeServer(lambda _: Answer("# By hand\n")) as server:
        text = script[1].replace("http://127.0.0.1:8000/v1", server.url)
        process = await asyncio.create_subprocess_exec(
            "bash", "-euo", "pipefail", "-c", text, cwd=tmp_path, stdout=asyncio.subprocess.PIPE
        )
        output, _ = await process.communicate()
    assert process.returncode == 0
    assert output.decode() == "stop\n# By hand\n\n"
    (request,) = server.requests
    assert max(Image.open(io.BytesIO(request.image)).size) == 1540
    assert request.body["messages"][0]["content"][0]["type"] == "image_url"
    assert len(request.body["messages"][0]["content"]) == 1
