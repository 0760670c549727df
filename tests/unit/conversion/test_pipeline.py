from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from fakes import FakeEngine
from pagemill import ConversionOptions, convert, convert_async, convert_stream
from pagemill.conversion import DocumentStarted, Event, PageFinished, ReusePolicy
from pagemill.domain import ConversionStatus, PageFlag, PageImage
from pagemill.domain.errors import (
    DegenerateOutputError,
    EngineUnavailableError,
    OutputError,
    RequestRejectedError,
    SourceNotFoundError,
)

MakePdf = Callable[..., Path]


def fail_on(*indexes: int, error: Exception) -> Callable[[PageImage], None]:
    def behaviour(page: PageImage) -> None:
        if page.index in indexes:
            raise error

    return behaviour


async def test_pages_come_out_in_order_whatever_order_they_end_in(tmp_path: Path, make_pdf: MakePdf) -> None:
    engine = FakeEngine(max_in_flight=4)
    slow_first = {0: 0.2, 1: 0.1}
    real = engine.recognize

    async def recognize(page: PageImage, params: object) -> object:
        await asyncio.sleep(slow_first.get(page.index, 0))
        return await real(page, params)  # type: ignore[arg-type]

    engine.recognize = recognize  # type: ignore[method-assign, assignment]
    (result,) = await convert_async(make_pdf(tmp_path / "a.pdf", 6), engine=engine)
    assert [page.index for page in result.pages] == list(range(6))
    assert engine.seen[0] != 0
    positions = [result.markdown.index(f"# Page {number}\n") for number in range(1, 7)]
    assert positions == sorted(positions)


async def test_one_bad_page_costs_that_page_alone(tmp_path: Path, make_pdf: MakePdf) -> None:
    engine = FakeEngine(fail_on(1, error=RequestRejectedError("Too many tokens.", "Use a smaller image.")))
    (result,) = await convert_async(make_pdf(tmp_path / "a.pdf", 3), tmp_path / "out", engine=engine)
    assert result.status is ConversionStatus.PARTIAL_SUCCESS
    assert [page.ok for page in result.pages] == [True, False, True]
    assert result.pages[1].error is not None
    assert result.pages[1].error.code == "request_rejected"
    assert "<!-- page 2: failed (request_rejected) -->" in (tmp_path / "out" / "a.md").read_text()
    assert engine.seen.count(1) == 1


async def test_errors_that_may_pass_are_tried_again(tmp_path: Path, make_pdf: MakePdf) -> None:
    failures = iter([DegenerateOutputError("It loops.")])

    def once(_page: PageImage) -> None:
        if (error := next(failures, None)) is not None:
            raise error

    (result,) = await convert_async(make_pdf(tmp_path / "a.pdf"), engine=FakeEngine(once))
    assert result.status is ConversionStatus.SUCCESS
    assert result.pages[0].attempts == 2


async def test_a_bug_in_an_engine_is_a_failed_page_with_a_remedy(tmp_path: Path, make_pdf: MakePdf) -> None:
    engine = FakeEngine(fail_on(0, error=ZeroDivisionError("oops")))
    (result,) = await convert_async(make_pdf(tmp_path / "a.pdf"), engine=engine)
    assert result.status is ConversionStatus.FAILURE
    assert result.pages[0].error is not None
    assert "ZeroDivisionError: oops" in result.pages[0].error.message


async def test_a_page_over_its_time_fails(tmp_path: Path, make_pdf: MakePdf) -> None:
    options = ConversionOptions(page_timeout_s=0.05, page_attempts=1)
    (result,) = await convert_async(make_pdf(tmp_path / "a.pdf"), engine=FakeEngine(delay_s=30), options=options)
    assert result.pages[0].error is not None
    assert result.pages[0].error.code == "engine_timeout"


async def test_hostile_picture_names_are_refused(tmp_path: Path, make_pdf: MakePdf) -> None:
    from dataclasses import replace

    engine = FakeEngine()
    real = engine.recognize

    async def recognize(page: PageImage, params: object) -> object:
        result = await real(page, params)  # type: ignore[arg-type]
        return replace(result, figures=(replace(result.figures[0], name="../../evil.png"),))

    engine.recognize = recognize  # type: ignore[method-assign, assignment]
    (result,) = await convert_async(make_pdf(tmp_path / "in" / "a.pdf"), tmp_path / "out", engine=engine)
    assert result.status is ConversionStatus.FAILURE
    assert not list(tmp_path.rglob("evil.png"))


async def test_a_second_run_does_nothing_twice_and_writes_the_same(tmp_path: Path, make_pdf: MakePdf) -> None:
    path = make_pdf(tmp_path / "a.pdf", 4)
    await convert_async(path, tmp_path / "out", engine=FakeEngine())
    before = {file: file.read_bytes() for file in (tmp_path / "out").glob("a.*") if file.is_file()}
    engine = FakeEngine()
    (result,) = await convert_async(path, tmp_path / "out", engine=engine)
    assert engine.seen == []
    assert result.reused_pages == 4
    assert {file: file.read_bytes() for file in before} == before


async def test_another_engine_or_rendering_does_not_reuse(tmp_path: Path, make_pdf: MakePdf) -> None:
    from pagemill import RenderOptions

    path = make_pdf(tmp_path / "a.pdf", 2)
    await convert_async(path, tmp_path / "out", engine=FakeEngine())
    newer = FakeEngine(version="2")
    await convert_async(path, tmp_path / "out", engine=newer)
    smaller = FakeEngine()
    await convert_async(path, tmp_path / "out", engine=smaller, render=RenderOptions(long_side=400))
    assert len(newer.seen) == len(smaller.seen) == 2


async def test_failed_pages_are_tried_again_only_when_asked(tmp_path: Path, make_pdf: MakePdf) -> None:
    path, out = make_pdf(tmp_path / "a.pdf", 3), tmp_path / "out"
    await convert_async(path, out, engine=FakeEngine(fail_on(1, error=RequestRejectedError("no"))))
    engine = FakeEngine()
    (kept,) = await convert_async(path, out, engine=engine)
    assert engine.seen == []
    assert kept.status is ConversionStatus.PARTIAL_SUCCESS
    (again,) = await convert_async(path, out, engine=engine, options=ConversionOptions(reuse=ReusePolicy.GOOD))
    assert engine.seen == [1]
    assert again.status is ConversionStatus.SUCCESS
    assert "failed" not in (out / "a.md").read_text()


async def test_forced_runs_do_everything_anew(tmp_path: Path, make_pdf: MakePdf) -> None:
    path = make_pdf(tmp_path / "a.pdf", 2)
    await convert_async(path, tmp_path / "out", engine=FakeEngine())
    engine = FakeEngine()
    await convert_async(path, tmp_path / "out", engine=engine, options=ConversionOptions(reuse=ReusePolicy.NONE))
    assert sorted(engine.seen) == [0, 1]


async def test_two_files_with_the_same_bytes_are_read_once(tmp_path: Path, make_pdf: MakePdf) -> None:
    first = make_pdf(tmp_path / "in" / "a.pdf", 3)
    (tmp_path / "in" / "copy.pdf").write_bytes(first.read_bytes())
    engine = FakeEngine(delay_s=0.02)
    for reuse in (ReusePolicy.ALL, ReusePolicy.NONE):
        engine.seen.clear()
        results = await convert_async(
            tmp_path / "in", tmp_path / "out", engine=engine, options=ConversionOptions(reuse=reuse)
        )
        assert sorted(engine.seen) == [0, 1, 2]
        assert {result.status for result in results} == {ConversionStatus.SUCCESS}
    assert (tmp_path / "out" / "a.md").read_text() == (tmp_path / "out" / "copy.md").read_text().replace(
        "copy.assets", "a.assets"
    )


async def test_two_runs_at_once_share_the_work(tmp_path: Path, make_pdf: MakePdf) -> None:
    path, out = make_pdf(tmp_path / "a.pdf", 12), tmp_path / "out"
    engines = [FakeEngine(delay_s=0.02), FakeEngine(delay_s=0.02)]
    both = await asyncio.gather(*(convert_async(path, out, engine=engine) for engine in engines))
    assert sorted(engines[0].seen + engines[1].seen) == list(range(12))
    assert [results[0].status for results in both] == [ConversionStatus.SUCCESS] * 2
    assert both[0][0].markdown == both[1][0].markdown


async def test_the_engine_gets_no_more_than_it_asked_for(tmp_path: Path, make_pdf: MakePdf) -> None:
    for name in ("a", "b", "c"):
        make_pdf(tmp_path / "in" / f"{name}.pdf", 5, text=name)
    engine = FakeEngine(delay_s=0.1, max_in_flight=3)
    results = await convert_async(tmp_path / "in", engine=engine)
    assert len(results) == 3
    assert engine.most_in_flight == 3


async def test_page_ranges_and_pages_out_of_range(tmp_path: Path, make_pdf: MakePdf) -> None:
    make_pdf(tmp_path / "in" / "long.pdf", 5, text="long")
    make_pdf(tmp_path / "in" / "short.pdf", 1, text="short")
    results = await convert_async(tmp_path / "in", engine=FakeEngine(), options=ConversionOptions(pages="2-3"))
    by_name = {result.source.name: result for result in results}
    assert [page.index for page in by_name["long.pdf"].pages] == [1, 2]
    assert by_name["short.pdf"].status is ConversionStatus.FAILURE
    assert "1 page" in str(by_name["short.pdf"].error)


async def test_broken_files_do_not_end_the_run(tmp_path: Path, make_pdf: MakePdf) -> None:
    make_pdf(tmp_path / "in" / "good.pdf", 2)
    (tmp_path / "in" / "broken.pdf").write_bytes(b"%PDF-1.4 nothing")
    (tmp_path / "in" / "empty.png").write_bytes(b"")
    events: list[Event] = []
    results = await convert_async(tmp_path / "in", tmp_path / "out", engine=FakeEngine(), on_event=events.append)
    statuses = {result.source.name: result.status for result in results}
    assert statuses == {
        "good.pdf": ConversionStatus.SUCCESS,
        "broken.pdf": ConversionStatus.FAILURE,
        "empty.png": ConversionStatus.FAILURE,
    }
    assert [event.name for event in events if isinstance(event, DocumentStarted)] == ["good.pdf"]
    assert sum(isinstance(event, PageFinished) for event in events) == 2


async def test_an_output_that_cannot_be_written_fails_its_document_and_keeps_its_pages(
    tmp_path: Path, make_pdf: MakePdf
) -> None:
    path, out = make_pdf(tmp_path / "a.pdf", 2), tmp_path / "out"
    await convert_async(path, out, engine=FakeEngine(version="1"))
    (out / "a.md").write_text("edited by hand")
    engine = FakeEngine(version="2")
    real = engine.recognize

    async def recognize(page: PageImage, params: object) -> object:
        from dataclasses import replace

        return replace(await real(page, params), markdown="other")  # type: ignore[arg-type]

    engine.recognize = recognize  # type: ignore[method-assign, assignment]
    (result,) = await convert_async(path, out, engine=engine)
    assert isinstance(result.error, OutputError)
    assert (out / "a.md").read_text() == "edited by hand"
    again = FakeEngine(version="2")
    (result,) = await convert_async(path, out, engine=again, options=ConversionOptions(overwrite_changed=True))
    assert again.seen == []
    assert result.status is ConversionStatus.SUCCESS


async def test_an_engine_that_cannot_start_ends_the_run(tmp_path: Path, make_pdf: MakePdf) -> None:
    class Dead(FakeEngine):
        async def start(self) -> None:
            raise EngineUnavailableError("No engine answers.", "Start it.")

    with pytest.raises(EngineUnavailableError):
        await convert_async(make_pdf(tmp_path / "a.pdf"), engine=Dead())


async def test_leaving_early_stops_the_work_and_leaves_nothing_running(tmp_path: Path, make_pdf: MakePdf) -> None:
    for number in range(4):
        make_pdf(tmp_path / "in" / f"{number}.pdf", 10, text=str(number))
    engine = FakeEngine(delay_s=0.01)
    stream = convert_stream(tmp_path / "in", tmp_path / "out", engine=engine)
    await anext(stream)
    await stream.aclose()
    assert engine.in_flight == 0
    assert len(engine.seen) < 40
    assert len(asyncio.all_tasks()) == 1


async def test_a_run_over_its_own_output_takes_no_pictures_for_documents(tmp_path: Path, make_pdf: MakePdf) -> None:
    make_pdf(tmp_path / "a.pdf")
    for _ in range(2):
        results = await convert_async(tmp_path, tmp_path, engine=FakeEngine())
        assert [result.source.name for result in results] == ["a.pdf"]


def test_convert_works_without_and_within_a_running_loop(tmp_path: Path, make_pdf: MakePdf) -> None:
    path = make_pdf(tmp_path / "a.pdf")
    assert convert(path, engine=FakeEngine())[0].status is ConversionStatus.SUCCESS

    async def inside() -> None:
        assert convert(path, engine=FakeEngine())[0].status is ConversionStatus.SUCCESS

    asyncio.run(inside())


def test_an_engine_of_the_caller_is_left_open(tmp_path: Path, make_pdf: MakePdf) -> None:
    engine = FakeEngine()
    convert(make_pdf(tmp_path / "a.pdf"), engine=engine)
    assert engine.closed == 0


def test_a_missing_input_is_said_before_anything_starts(tmp_path: Path) -> None:
    engine = FakeEngine()
    with pytest.raises(SourceNotFoundError, match=r"missing\.pdf"):
        convert(tmp_path / "missing.pdf", engine=engine)
    assert engine.starts == 0


def test_sidecar_and_markdown_tell_the_same(tmp_path: Path, make_pdf: MakePdf) -> None:
    convert(make_pdf(tmp_path / "a.pdf", 2), tmp_path / "out", engine=FakeEngine())
    sidecar = json.loads((tmp_path / "out" / "a.json").read_text())
    markdown = (tmp_path / "out" / "a.md").read_text()
    for page in sidecar["pages"]:
        assert page["markdown"] in markdown
        for figure in page["figures"]:
            assert (tmp_path / "out" / figure["path"]).is_file()
            assert figure["path"] in markdown


async def test_a_cut_image_is_read_as_far_as_it_goes_and_flagged(tmp_path: Path) -> None:
    import io

    from PIL import Image

    buffer = io.BytesIO()
    Image.effect_noise((800, 800), 90).convert("RGB").save(buffer, "JPEG")
    (tmp_path / "cut.jpg").write_bytes(buffer.getvalue()[: len(buffer.getvalue()) * 2 // 3])
    (result,) = await convert_async(tmp_path / "cut.jpg", tmp_path / "out", engine=FakeEngine())
    assert result.status is ConversionStatus.SUCCESS
    assert PageFlag.DAMAGED_SOURCE in result.pages[0].flags
    sidecar = json.loads((tmp_path / "out" / "cut.json").read_text())
    assert sidecar["pages"][0]["warnings"]


async def test_a_fault_in_one_document_neither_hides_it_nor_ends_the_others(
    tmp_path: Path, make_pdf: MakePdf, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pagemill.conversion.page_store import DirectoryPageStore

    for name in ("a", "b", "c"):
        make_pdf(tmp_path / "in" / f"{name}.pdf", text=name)
    real = DirectoryPageStore.claim
    faults = iter([OSError(24, "Too many open files")])

    def claim(self: DirectoryPageStore, *arguments: object) -> object:
        if (fault := next(faults, None)) is not None:
            raise fault
        return real(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(DirectoryPageStore, "claim", claim)
    options = ConversionOptions(open_documents=1)
    results = await convert_async(tmp_path / "in", tmp_path / "out", engine=FakeEngine(), options=options)
    assert sorted(result.status.value for result in results) == ["failure", "success", "success"]


async def test_a_state_folder_that_cannot_be_used_is_a_clear_error(tmp_path: Path, make_pdf: MakePdf) -> None:
    (tmp_path / "out" / ".pagemill").mkdir(parents=True)
    (tmp_path / "out" / ".pagemill" / "locks").touch()
    (result,) = await convert_async(make_pdf(tmp_path / "a.pdf"), tmp_path / "out", engine=FakeEngine())
    assert isinstance(result.error, OutputError)
