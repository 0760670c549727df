from __future__ import annotations

import asyncio
import io
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from PIL import Image

from document_builders import image_bytes, text_pdf
from pagemill.documents import RenderOptions, RenderPool
from pagemill.documents.process import RenderProcess
from pagemill.domain import DocumentSource, Page, TextVerdict
from pagemill.domain.errors import (
    ConfigurationError,
    CorruptDocumentError,
    LimitExceededError,
    RenderError,
    SourceNotFoundError,
)


def source_of(path: Path, *passwords: str) -> DocumentSource:
    return DocumentSource(path, path.name, passwords)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20) if sys.version_info >= (3, 11) else _no_timeout():
        while not condition():
            await asyncio.sleep(0.01)


class _no_timeout:  # noqa: N801 - stands in for a function
    async def __aenter__(self) -> None:
        return None

    async def __aexit__(self, *error: object) -> None:
        return None


def stop(pid: int) -> None:
    """Makes a process hang in a way that only SIGKILL ends."""
    os.kill(pid, signal.SIGSTOP)


async def test_a_document_is_inspected_and_rendered(pool: RenderPool, tmp_path: Path) -> None:
    source = source_of(text_pdf(tmp_path / "x.pdf", "one", "two"))
    info = await pool.inspect(source)
    assert info.format == "pdf"
    assert [(page.index, page.width_pt, page.height_pt) for page in info.pages] == [(0, 300, 400), (1, 300, 400)]
    assert info.sha256 == __import__("hashlib").sha256(source.path.read_bytes()).hexdigest()
    image = await pool.render(source, info.pages[1], text_layer=True)
    assert (image.index, image.width, image.height, image.media_type) == (1, 300, 400, "image/png")
    assert Image.open(io.BytesIO(image.data)).size == (300, 400)
    assert image.text_layer.verdict is TextVerdict.SANE
    assert [span.text for span in image.text_layer.spans] == ["two"]
    assert (await pool.render(source, info.pages[1])).text_layer is None


async def test_pages_of_many_tasks_are_never_mixed(tmp_path: Path) -> None:
    sources = [
        source_of(text_pdf(tmp_path / f"{name}.pdf", *(f"{name}{number}" for number in range(5)))) for name in "abcdef"
    ]
    async with RenderPool(RenderOptions(long_side=300), workers=2) as pool:

        async def word(source: DocumentSource, index: int) -> str:
            image = await pool.render(source, Page(index, 300, 400), text_layer=True)
            return image.text_layer.spans[0].text

        wanted = [(source, index) for source in sources for index in range(5)] * 2
        found = await asyncio.gather(*(word(source, index) for source, index in wanted))
    assert found == [f"{source.path.stem}{index}" for source, index in wanted]


async def test_errors_of_the_worker_arrive_as_they_are(pool: RenderPool, tmp_path: Path) -> None:
    (tmp_path / "bad.pdf").write_bytes(b"%PDF-1.4 broken")
    with pytest.raises(CorruptDocumentError, match=r"bad\.pdf"):
        await pool.inspect(source_of(tmp_path / "bad.pdf"))
    with pytest.raises(SourceNotFoundError, match=r"gone\.pdf"):
        await pool.inspect(source_of(tmp_path / "gone.pdf"))
    with pytest.raises(CorruptDocumentError, match="Page 8 of"):
        await pool.render(source_of(text_pdf(tmp_path / "x.pdf")), Page(7, 1, 1))


async def test_a_killed_worker_costs_nothing_but_a_new_one(pool: RenderPool, tmp_path: Path) -> None:
    source = source_of(text_pdf(tmp_path / "x.pdf"))
    (before,) = pool.pids
    os.kill(before, signal.SIGKILL)
    image = await pool.render(source, Page(0, 300, 400))
    assert image.width == 300
    assert pool.pids != (before,)


async def test_a_worker_killed_in_the_middle_of_a_page_is_replaced_and_the_page_done(
    pool: RenderPool, tmp_path: Path
) -> None:
    source = source_of(text_pdf(tmp_path / "x.pdf"))
    (before,) = pool.pids
    stop(before)  # the page is sent, and certainly not answered
    rendering = asyncio.create_task(pool.render(source, Page(0, 300, 400)))
    await asyncio.sleep(0.1)
    os.kill(before, signal.SIGKILL)
    assert (await rendering).width == 300
    assert pool.pids
    assert pool.pids != (before,)


async def test_a_page_that_crashes_twice_fails_alone(
    pool: RenderPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = source_of(text_pdf(tmp_path / "x.pdf"))
    real = RenderProcess.ask
    crashes = iter(range(2))

    async def ask(self: RenderProcess, request: dict[str, object]) -> object:
        if next(crashes, None) is not None:
            os.kill(self.pid, signal.SIGSEGV)
        return await real(self, request)

    monkeypatch.setattr(RenderProcess, "ask", ask)
    with pytest.raises(RenderError, match=r"Page 1 of x\.pdf crashed its render process \(SIGSEGV\)") as caught:
        await pool.render(source, Page(0, 300, 400))
    assert caught.value.retryable
    assert (await pool.render(source, Page(0, 300, 400))).width == 300


async def test_killing_a_process_leaves_its_exit_status_to_asyncio(monkeypatch: pytest.MonkeyPatch) -> None:
    process = await RenderProcess.start(RenderOptions())

    def poll(_self: subprocess.Popen[bytes], sig: int) -> None:
        raise AssertionError(f"Popen.send_signal({sig}) polls first, and may collect the exit status itself")

    monkeypatch.setattr(subprocess.Popen, "send_signal", poll)
    await process.kill()
    assert process.last_words().endswith("SIGKILL")
    await process.kill()  # what is dead stays so


async def test_a_hang_is_killed_once_and_the_pool_goes_on(tmp_path: Path) -> None:
    source = source_of(text_pdf(tmp_path / "x.pdf"))
    async with RenderPool(RenderOptions(long_side=300, page_timeout_s=1.0), workers=1) as pool:
        (before,) = pool.pids
        stop(before)
        with pytest.raises(RenderError, match=r"Page 1 of x\.pdf took longer than 1 s"):
            await pool.render(source, Page(0, 300, 400))
        assert not psutil.pid_exists(before)
        assert (await pool.render(source, Page(0, 300, 400))).width == 225


async def test_a_slow_page_blocks_only_its_own_worker(tmp_path: Path) -> None:
    source = source_of(text_pdf(tmp_path / "x.pdf"))
    async with RenderPool(RenderOptions(long_side=300), workers=2) as pool:
        first, _ = pool.pids
        stop(first)
        try:
            pages = [asyncio.create_task(pool.render(source, Page(0, 300, 400))) for _ in range(5)]
            await until(lambda: sum(page.done() for page in pages) >= 4)
            assert sum(page.done() for page in pages) == 4
        finally:
            os.kill(first, signal.SIGCONT)
        await asyncio.gather(*pages)


async def test_memory_over_the_limit_is_an_error_with_the_limit_in_it(tmp_path: Path) -> None:
    path = tmp_path / "big.png"
    path.write_bytes(image_bytes(Image.new("1", (20_000, 16_000)), "TIFF", compression="group4"))
    async with RenderPool(RenderOptions(memory_limit_bytes=300 * 1024**2, max_pixels=10**9), workers=1) as pool:
        info = await pool.inspect(source_of(path))
        with pytest.raises(LimitExceededError, match="300 MiB"):
            await pool.render(source_of(path), info.pages[0])
        assert (await pool.render(source_of(text_pdf(tmp_path / "x.pdf")), Page(0, 300, 400))).width == 1155


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits are read from /proc")
async def test_workers_are_limited_and_carry_no_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "hunter2")
    async with RenderPool(RenderOptions(memory_limit_bytes=10**9), workers=1) as pool:
        process = psutil.Process(pool.pids[0])
        assert process.rlimit(psutil.RLIMIT_AS) == (10**9, 10**9)
        assert process.rlimit(psutil.RLIMIT_CORE) == (0, 0)
        assert process.rlimit(psutil.RLIMIT_FSIZE) == (0, 0)
        assert "SECRET_TOKEN" not in process.environ()


async def test_a_worker_that_cannot_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pagemill.documents.process._BOOT", "raise SystemExit('no such luck')")
    with pytest.raises(ConfigurationError, match="no such luck"):
        await RenderPool(workers=2).start()


async def test_a_missing_interpreter_is_a_configuration_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    with pytest.raises(ConfigurationError, match="cannot be started"):
        await RenderPool(workers=1).start()


async def test_workers_are_recycled_after_so_many_pages(tmp_path: Path) -> None:
    source = source_of(text_pdf(tmp_path / "x.pdf"))
    seen = set()
    async with RenderPool(RenderOptions(long_side=100, recycle_after_pages=2), workers=1) as pool:
        for _ in range(6):
            await pool.render(source, Page(0, 300, 400))
            seen.update(pool.pids)
    assert len(seen) == 3
    assert not any(psutil.pid_exists(pid) for pid in seen)


async def test_a_worker_grown_too_large_is_recycled(tmp_path: Path) -> None:
    path = tmp_path / "big.png"
    path.write_bytes(image_bytes(Image.new("L", (9_000, 9_000)), "PNG", compress_level=1))
    async with RenderPool(RenderOptions(recycle_above_bytes=64 * 1024**2), workers=1) as pool:
        (before,) = pool.pids
        await pool.render(source_of(path), Page(0, 9000, 9000))
        await pool.render(source_of(text_pdf(tmp_path / "x.pdf")), Page(0, 300, 400))
        grown = pool.resident_bytes
        assert grown < 64 * 1024**2 or pool.pids != (before,)


async def test_a_changed_file_is_opened_anew(pool: RenderPool, tmp_path: Path) -> None:
    source = source_of(text_pdf(tmp_path / "x.pdf", "before"))
    page = Page(0, 300, 400)
    assert (await pool.render(source, page, text_layer=True)).text_layer.spans[0].text == "before"
    text_pdf(tmp_path / "x.pdf", "after the change")
    assert (await pool.render(source, page, text_layer=True)).text_layer.spans[0].text == "after the change"


async def test_a_cancelled_task_does_not_break_the_pool(pool: RenderPool, tmp_path: Path) -> None:
    source = source_of(text_pdf(tmp_path / "x.pdf"))
    (before,) = pool.pids
    tasks = [asyncio.create_task(pool.render(source, Page(0, 300, 400))) for _ in range(4)]
    await asyncio.sleep(0)
    for task in tasks[:3]:
        task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(result) for result in results[:3]] == [asyncio.CancelledError] * 3
    assert results[3].width == 300
    assert pool.pids == (before,), "a quick page is waited for rather than its process killed"


async def test_a_cancelled_task_whose_page_hangs_frees_its_worker(pool: RenderPool, tmp_path: Path) -> None:
    source = source_of(text_pdf(tmp_path / "x.pdf"))
    (before,) = pool.pids
    stop(before)
    task = asyncio.create_task(pool.render(source, Page(0, 300, 400)))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await pool.render(source, Page(0, 300, 400))).width == 300
    assert not psutil.pid_exists(before)


async def test_closing_ends_processes_and_wakes_those_who_wait(tmp_path: Path) -> None:
    source = source_of(text_pdf(tmp_path / "x.pdf"))
    pool = RenderPool(workers=1)
    await pool.start()
    await pool.start()
    pids = pool.pids
    stop(pids[0])
    tasks = [asyncio.create_task(pool.render(source, Page(0, 300, 400))) for _ in range(3)]
    await asyncio.sleep(0.05)
    await pool.aclose()
    await pool.aclose()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(result, asyncio.CancelledError | RuntimeError) for result in results)
    assert not psutil.pid_exists(pids[0])
    with pytest.raises(RuntimeError, match="not started"):
        await pool.render(source, Page(0, 300, 400))


async def test_answers_of_a_wrong_shape_are_render_errors(
    pool: RenderPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nonsense(self: RenderProcess, request: object) -> tuple[dict[str, object], bytes]:
        return {"size": "?"}, b""

    monkeypatch.setattr(RenderProcess, "ask", nonsense)
    source = source_of(text_pdf(tmp_path / "x.pdf"))
    with pytest.raises(RenderError, match="wrong answer"):
        await pool.render(source, Page(0, 300, 400))
    with pytest.raises(RenderError, match="wrong answer"):
        await pool.inspect(source)


SCRIPT = """
import asyncio, sys
from pathlib import Path
from pagemill.documents import RenderPool
from pagemill.domain import DocumentSource

print("main runs")

async def run():
    async with RenderPool(workers=2) as pool:
        source = DocumentSource(Path(sys.argv[1]), "x.pdf")
        info = await pool.inspect(source)
        print(len((await pool.render(source, info.pages[0])).data) > 0, *pool.pids, flush=True)
        if len(sys.argv) > 2:
            await asyncio.sleep(60)

asyncio.run(run())
"""


def test_a_script_needs_no_main_guard_and_is_not_run_again(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('the working folder must not be imported from')")
    script = tmp_path / "scripts" / "script.py"
    script.parent.mkdir()
    script.write_text(SCRIPT)
    path = text_pdf(tmp_path / "x.pdf")
    done = subprocess.run(
        [sys.executable, script, path], capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False
    )
    assert done.stderr == ""
    assert done.stdout.startswith("main runs\nTrue ")
    assert done.stdout.count("main runs") == 1


def test_workers_die_with_their_parent(tmp_path: Path) -> None:
    path = text_pdf(tmp_path / "x.pdf")
    with subprocess.Popen([sys.executable, "-c", SCRIPT, path, "stay"], stdout=subprocess.PIPE, text=True) as parent:
        parent.stdout.readline()
        pids = [int(word) for word in parent.stdout.readline().split()[1:]]
        stop(pids[0])
        parent.kill()
        parent.wait()
        deadline = time.monotonic() + 20
        alive = set(pids)
        while alive and time.monotonic() < deadline:
            alive = {pid for pid in alive if psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie"}
            time.sleep(0.02)
        assert not alive


def test_it_works_in_a_thread_with_a_loop_of_its_own(tmp_path: Path) -> None:
    source = source_of(text_pdf(tmp_path / "x.pdf"))
    widths: list[int] = []

    async def run() -> None:
        async with RenderPool(RenderOptions(long_side=200), workers=1) as pool:
            widths.append((await pool.render(source, Page(0, 300, 400))).width)

    threads = [threading.Thread(target=lambda: asyncio.run(run())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert widths == [150, 150]


async def test_native_chatter_does_not_garble_answers(pool: RenderPool, shared_data: Path) -> None:
    source = source_of(shared_data / "robustness" / "imgbad__oom-225817ca0f8c663be7ab4b9e717b02c661e66834.tif")
    with pytest.raises(CorruptDocumentError):
        await pool.inspect(source)


@pytest.mark.slow
async def test_memory_stays_flat_over_many_pages(tmp_path: Path) -> None:
    source = source_of(text_pdf(tmp_path / "x.pdf", *("a line of words\n" * 20 for _ in range(600))))
    resident = []
    options = RenderOptions(long_side=800, recycle_after_pages=10_000)
    async with RenderPool(options, workers=1) as pool:
        info = await pool.inspect(source)
        for page in info.pages:
            await pool.render(source, page, text_layer=True)
            resident.append(pool.resident_bytes)
    assert max(resident[300:]) < 1.15 * max(resident[100:300])
