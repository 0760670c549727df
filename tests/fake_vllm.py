"""A fake `vllm serve`, for tests of the supervisor only: it reads nothing, but starts, dies, hangs and refuses to go.

It takes vLLM's arguments and looks at --host, --port and --shutdown-timeout. What it does is set by FAKE_VLLM, a JSON
object in its environment (see `DEFAULTS`); FAKE_VLLM_RUNS names a file in which its runs are counted, so that "runs"
may give each run its own behaviour. Like the real one it has an engine process below its server, which SIGSTOP can
hang, whose metrics stand still then, and whose death ends the server with status 0.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path

DEFAULTS = {
    "log": [],  # lines written at once
    "exit": None,  # then end with this status
    "start_s": 0.0,  # seconds until it is healthy
    "answer": "# Canary page\n\nThe quick brown fox.\n",
    "finish_reason": "stop",
    "canary_s": 0.0,  # seconds the canary page takes
    "prepare_s": 0.0,  # seconds until the engine takes a page up; one that comes to it after SIGTERM is aborted
    "page_s": 0.0,  # seconds another page takes, in which the engine reads nothing else
    "tokens_every_s": None,  # tokens in metrics grow with time while a page is read
    "second_engine_hangs": False,  # there is an engine 1, with pages in flight, that gives no tokens
    "die_after_s": None,  # the engine dies so long after the start
    "linger_s": 0.05,  # seconds between the end of its service and its own end
    "ignore_sigterm": False,
    "orphan_ignores_sigterm": False,
}


class Engine:
    """A child that answers `ping` with `pong`: stopped by SIGSTOP it hangs."""

    def __init__(self, ignore_sigterm: bool) -> None:
        self.ignore_sigterm = ignore_sigterm
        self.turn = asyncio.Lock()

    async def start(self) -> None:
        ignore = "signal.signal(signal.SIGTERM, signal.SIG_IGN);" if self.ignore_sigterm else ""
        code = f"import signal, sys; {ignore}\nfor line in sys.stdin: print(line, end='', flush=True)"
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )

    async def work(self) -> None:
        self.process.stdin.write(b"ping\n")
        await self.process.stdout.readline()


class Server:
    def __init__(self, behaviour: dict) -> None:
        self.behaviour = behaviour
        self.engine = Engine(behaviour["orphan_ignores_sigterm"])
        self.healthy_at = time.monotonic() + behaviour["start_s"]
        self.tokens = 0
        self.running = 0
        self.taken_up = 0
        self.stopping = False

    async def serve(self, host: str, port: int, drain_s: float) -> int:
        await self.engine.start()
        print(f"(EngineCore pid={self.engine.process.pid}) INFO 12-01 00:00:00 [core.py:1] engine pid", flush=True)
        server = await asyncio.start_server(self.handle, host, port)
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        if self.behaviour["ignore_sigterm"]:
            loop.add_signal_handler(signal.SIGTERM, lambda: None)
        else:
            loop.add_signal_handler(signal.SIGTERM, stop.set)
        waits = [asyncio.create_task(stop.wait()), asyncio.create_task(self.engine.process.wait())]
        if self.behaviour["die_after_s"] is not None:
            loop.call_later(self.behaviour["die_after_s"], self.engine.process.kill)
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        server.close()
        if stop.is_set():
            self.stopping = True
            deadline = time.monotonic() + drain_s
            while self.running and time.monotonic() < deadline:
                await asyncio.sleep(0.01)
            self.engine.process.kill()
        else:
            text = "EngineCore encountered an issue. See stack trace (above) for the root cause."
            print(
                f"(APIServer pid={os.getpid()}) ERROR 12-01 00:00:00 [async_llm.py:1] EngineDeadError: {text}",
                flush=True,
            )
        await asyncio.sleep(self.behaviour["linger_s"])
        return 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            length = next(
                (int(h.split(":")[1]) for h in head.split("\r\n") if h.lower().startswith("content-length")), 0
            )
            body = json.loads(await reader.readexactly(length) or b"{}")
            if self.behaviour["second_engine_hangs"] and "x-data-parallel-rank: 1" in head.lower():
                await asyncio.sleep(3600)
            status, data = await self.answer(head.split()[1], body)
            writer.write(
                f"HTTP/1.1 {status} X\r\nContent-Length: {len(data)}\r\nConnection: close\r\n\r\n".encode() + data
            )
            await writer.drain()
        writer.close()

    async def answer(self, path: str, body: dict) -> tuple[int, bytes]:
        if path == "/health":
            return (200 if time.monotonic() >= self.healthy_at else 503), b""
        if path == "/v1/models":
            return 200, b'{"data": [{"id": "lightonocr", "max_model_len": 16384}]}'
        if path == "/load":
            return 200, json.dumps({"server_load": self.running}).encode()
        if path == "/metrics":
            # A hung engine reports nothing of the pages that wait for it, as vLLM's does not.
            text = f'vllm:generation_tokens_total{{engine="0"}} {self.tokens}\n'
            text += f'vllm:num_requests_running{{engine="0"}} {self.taken_up}\n'
            if self.behaviour["second_engine_hangs"]:
                text += 'vllm:generation_tokens_total{engine="1"} 7\nvllm:num_requests_running{engine="1"} 1\n'
            return 200, text.encode()
        if not body:
            return 404, b""
        self.running += 1
        try:
            reason = await self.read_page(body)
        finally:
            self.running -= 1
        choice = {"message": {"content": self.behaviour["answer"]}, "finish_reason": reason}
        return 200, json.dumps({"choices": [choice]}).encode()

    async def read_page(self, body: dict) -> str:
        await asyncio.sleep(self.behaviour["prepare_s"])
        if self.stopping:
            return "abort"
        seconds = {1: 0.0, 512: self.behaviour["canary_s"]}.get(body["max_tokens"], self.behaviour["page_s"])
        async with self.engine.turn:
            await self.engine.work()
            self.taken_up += 1
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                await asyncio.sleep(self.behaviour["tokens_every_s"] or 0.01)
                self.tokens += self.behaviour["tokens_every_s"] is not None
            self.tokens += 1
            self.taken_up -= 1
        return self.behaviour["finish_reason"]


def main() -> int:
    arguments = sys.argv[1:]
    value = {name: arguments[arguments.index(name) + 1] for name in ("--host", "--port", "--shutdown-timeout")}
    settings = json.loads(os.environ.get("FAKE_VLLM", "{}"))
    runs = settings.pop("runs", [])
    if counter := os.environ.get("FAKE_VLLM_RUNS"):
        with Path(counter).open("a") as file:
            file.write(f"{os.getpid()}\n")
        number = len(Path(counter).read_text().split()) - 1
        settings |= runs[min(number, len(runs) - 1)] if runs else {}
    behaviour = DEFAULTS | settings
    for line in behaviour["log"]:
        print(line, flush=True)
    if behaviour["exit"] is not None:
        return behaviour["exit"]
    return asyncio.run(
        Server(behaviour).serve(value["--host"], int(value["--port"]), float(value["--shutdown-timeout"]))
    )


if __name__ == "__main__":
    sys.exit(main())
