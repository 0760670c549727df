"""A fake OpenAI-compatible server as a process, for tests only: its answer names the image that it was given.

python marked_engine.py PORT LOG DELAY_S. Each page that it is asked for is a line of the log: hash, time.
"""

from __future__ import annotations

import asyncio
import hashlib
import sys
import time
from pathlib import Path
from typing import Any

from fake_openai import Answer, FakeServer, Request


def mark_of(image: bytes) -> str:
    """What tells one page image from all others."""
    return hashlib.sha256(image).hexdigest()[:20]


class MarkedServer(FakeServer):
    """Writes down what it is asked for, and when, also where nobody waits for the answer to its end."""

    log: Path

    async def _answer(self, http: Any, answer: Answer) -> Any:
        with self.log.open("a") as file:
            file.write(f"{answer.text.split()[2]} {time.time()}\n")
        return await super()._answer(http, answer)


async def main(port: int, log: Path, delay_s: float) -> None:
    def script(request: Request) -> Answer:
        mark = mark_of(request.image)
        request.image = b""
        request.body = {}
        return Answer(f"# Page {mark}\n", delay_s=delay_s)

    server = MarkedServer(script, port=port)
    server.log = log
    async with server:
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3])))
