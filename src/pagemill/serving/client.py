"""What the supervisor asks of the server: health, metrics, and pages that show whether it can read."""

from __future__ import annotations

import asyncio
import base64
import io
import re
from dataclasses import dataclass
from typing import Any

import aiohttp
from PIL import Image, ImageDraw, ImageFont
from typing_extensions import Self

from pagemill.engines.openai.repetition import LoopWatch
from pagemill.serving.liveness import EngineSample, parse_metrics, with_server_load

CANARY_LINES = ("Canary page", "The quick brown fox jumps over the lazy dog.", "Total: 1,234.50 EUR")
_CANARY_TOKENS = 512
_HEALTH_TIMEOUT_S = 5.0
_SHOWN = 300


@dataclass(frozen=True, slots=True)
class CanaryVerdict:
    """What became of the canary page.

    Attributes:
        ok: Whether an answer came that ended by itself and does not loop.
        detail: What was wrong.
        text: The answer.
    """

    ok: bool
    detail: str = ""
    text: str = ""

    @property
    def reads(self) -> bool:
        """Whether the answer holds anything that stands on the page."""
        return any(word in self.text.lower() for word in ("canary", "quick brown", "lazy dog", "1,234"))


def draw_page(lines: tuple[str, ...], width: int = 448, height: int = 280) -> bytes:
    """A PNG of a page with a few lines, the first one large."""
    image = Image.new("RGB", (width, height), "white")
    draw = ImageDraw.Draw(image)
    top = 28
    for number, line in enumerate(lines):
        size = 30 if number == 0 else 18
        draw.text((28, top), line, fill="black", font=ImageFont.load_default(size))
        top += 2 * size
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


class ServerClient:
    """Asks one server; use as an asynchronous context manager.

    Args:
        base_url: Its URL, with /v1.
        model: Name of the served model.
        api_key: Key that it wants.
    """

    def __init__(self, base_url: str, model: str, api_key: str | None) -> None:
        self._base_url = base_url
        self._root = base_url.removesuffix("/v1")
        self._model = model
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        # A connection of its own for each request: those of a server that was replaced are of no use.
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(force_close=True), headers=self._headers, trust_env=False
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    @property
    def _http(self) -> aiohttp.ClientSession:
        assert self._session is not None
        return self._session

    async def healthy(self) -> bool:
        """Whether the HTTP side is up."""
        try:
            async with self._http.get(f"{self._root}/health", timeout=_timeout(_HEALTH_TIMEOUT_S)) as response:
                return response.status == 200
        except (aiohttp.ClientError, asyncio.TimeoutError, OSError):
            return False

    async def samples(self, timeout_s: float) -> dict[str, EngineSample] | None:
        """The engines' progress; None where the server does not answer in time."""
        found = await self._ask(timeout_s)
        return None if found is None else with_server_load(*found)

    async def not_taken_up(self, timeout_s: float) -> float:
        """Pages that the server has taken and no engine yet; 0 where it does not answer in time."""
        found = await self._ask(timeout_s)
        return 0.0 if found is None else found[1] - sum(sample.in_flight for sample in found[0].values())

    async def _ask(self, timeout_s: float) -> tuple[dict[str, EngineSample], float] | None:
        try:
            async with self._http.get(f"{self._root}/metrics", timeout=_timeout(timeout_s)) as response:
                if response.status != 200:
                    return None
                samples = parse_metrics(await response.text())
            async with self._http.get(f"{self._root}/load", timeout=_timeout(timeout_s)) as response:
                load = (await response.json(content_type=None))["server_load"] if response.status == 200 else 0
                return samples, float(load)
        except (aiohttp.ClientError, asyncio.TimeoutError, OSError, ValueError, LookupError, TypeError):
            return None

    async def canary(self, timeout_s: float) -> CanaryVerdict:
        """Has a page read as clients have it read, and looks at the answer."""
        body = self._request(draw_page(CANARY_LINES), _CANARY_TOKENS)
        try:
            async with self._http.post(
                f"{self._base_url}/chat/completions", json=body, timeout=_timeout(timeout_s)
            ) as response:
                if response.status != 200:
                    return CanaryVerdict(False, f"status {response.status}: {(await response.text())[:_SHOWN]}")
                choice = (await response.json(content_type=None))["choices"][0]
                return judge_canary(choice["message"]["content"] or "", choice["finish_reason"])
        except asyncio.TimeoutError:
            return CanaryVerdict(False, f"no answer in {timeout_s:g} s")
        except (aiohttp.ClientError, OSError, ValueError, LookupError, TypeError) as error:
            return CanaryVerdict(False, f"no answer ({error or type(error).__name__})")

    async def probe(self, timeout_s: float, engine: str | None = None) -> bool:
        """Whether a tiny page gets a token.

        Args:
            timeout_s: Seconds it may take.
            engine: The engine that is to read it, where there are several.
        """
        body = self._request(draw_page(("ok",), 112, 112), 1)
        headers = {} if engine is None else {"X-data-parallel-rank": engine}
        try:
            async with self._http.post(
                f"{self._base_url}/chat/completions", json=body, headers=headers, timeout=_timeout(timeout_s)
            ) as response:
                await response.read()
                return response.status == 200
        except (aiohttp.ClientError, asyncio.TimeoutError, OSError):
            return False

    def _request(self, png: bytes, max_tokens: int) -> dict[str, Any]:
        url = f"data:image/png;base64,{base64.b64encode(png).decode()}"
        return {
            "model": self._model,
            "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}],
            "temperature": 0.2,
            "top_p": 0.9,
            "max_tokens": max_tokens,
        }


def judge_canary(text: str, finish_reason: str) -> CanaryVerdict:
    """Whether an answer to the canary page is sound: it ended by itself, says something and does not loop."""
    shown = re.sub(r"\s+", " ", text).strip()[:_SHOWN]
    if LoopWatch().feed(text) is not None:
        return CanaryVerdict(False, f"the answer repeats itself: {shown}", text)
    if finish_reason != "stop":
        return CanaryVerdict(False, f"the answer did not end ({finish_reason}): {shown}", text)
    if not shown:
        return CanaryVerdict(False, "the answer is empty", text)
    return CanaryVerdict(True, text=text)


def _timeout(seconds: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=seconds)
