"""What every engine must keep to; each engine of this package is run, and the fake that other tests rely on."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from drawn_pages import drawn, page_image
from fake_openai import Answer, FakeServer
from fakes import FakeEngine
from pagemill.domain import FinishReason, PageImage, PageResult, SamplingParams
from pagemill.domain.errors import EngineError
from pagemill.engines import Engine, EngineCapabilities, EngineHealth, available_engines
from pagemill.engines.embedded import create_engine as create_embedded
from pagemill.engines.openai import create_engine as create_openai

PARAMS = SamplingParams()
SMALL = (420, 160)


@asynccontextmanager
async def embedded() -> AsyncIterator[Engine]:
    yield create_embedded({"pages_in_flight": 2})


@asynccontextmanager
async def openai() -> AsyncIterator[Engine]:
    def script(request: object) -> Answer:
        image = getattr(request, "image", b"")
        return Answer(f"# {hashlib.sha256(image).hexdigest()}\n\nSome text.\n", token_delay_s=0.001)

    async with FakeServer(script=script) as server:  # type: ignore[arg-type]
        yield create_openai({"endpoints": [server.url]})


@asynccontextmanager
async def fake() -> AsyncIterator[Engine]:
    yield FakeEngine(delay_s=0.01)


SUBJECTS: dict[str, Callable[[], AbstractAsyncContextManager[Engine]]] = {
    "embedded": embedded,
    "openai": openai,
    "fake": fake,
}


@pytest.fixture(params=SUBJECTS)
async def new_engine(request: pytest.FixtureRequest) -> AsyncIterator[Engine]:
    """An engine that was not started; closed at the end."""
    async with SUBJECTS[request.param]() as engine:
        try:
            yield engine
        finally:
            await engine.aclose()


@pytest.fixture
async def engine(new_engine: Engine) -> Engine:
    await new_engine.start()
    return new_engine


def page(index: int = 0, text: str = "A short line") -> PageImage:
    return page_image(drawn([text], top=50, left=30, canvas=SMALL), index)


def core(result: PageResult) -> PageResult:
    """What must be the same each time."""
    return dataclasses.replace(result, duration_s=0.0)


def test_every_engine_of_this_package_is_run() -> None:
    own = {name for name, point in available_engines().items() if point.value.startswith("pagemill.")}
    assert own <= set(SUBJECTS)


async def test_it_keeps_to_the_protocol(engine: Engine) -> None:
    assert isinstance(engine, Engine)
    assert engine.name
    assert isinstance(engine.capabilities, EngineCapabilities)
    assert engine.capabilities.version
    assert engine.capabilities.fingerprint
    assert engine.capabilities.max_in_flight >= 1
    assert set(engine.capabilities.media_types) <= {"image/png", "image/jpeg", "image/webp"}


async def test_capabilities_are_stable_once_started(engine: Engine) -> None:
    before = engine.capabilities
    await engine.recognize(page(), PARAMS)
    assert engine.capabilities == before


async def test_starting_and_closing_twice_is_safe(engine: Engine) -> None:
    await engine.start()
    assert (await engine.recognize(page(), PARAMS)).ok
    await engine.aclose()
    await engine.aclose()


async def test_it_starts_again_after_it_was_closed(engine: Engine) -> None:
    first = await engine.recognize(page(), PARAMS)
    await engine.aclose()
    await engine.start()
    assert core(await engine.recognize(page(), PARAMS)) == core(first)


async def test_health_is_told(engine: Engine) -> None:
    health = await engine.health()
    assert isinstance(health, EngineHealth)
    assert health.ready


async def test_a_page_becomes_a_complete_result_of_its_index(engine: Engine) -> None:
    result = await engine.recognize(page(41), PARAMS)
    assert result.index == 41
    assert result.finish_reason is FinishReason.STOP
    assert result.error is None
    assert result.markdown.strip()
    assert result.duration_s > 0
    assert result.confidence is None or 0 <= result.confidence <= 1
    assert all(figure.name in result.markdown for figure in result.figures)


@pytest.mark.parametrize("media_type", ["image/png", "image/jpeg", "image/webp"])
async def test_every_encoding_that_it_names_is_taken(engine: Engine, media_type: str) -> None:
    if media_type not in engine.capabilities.media_types:
        pytest.skip("not named")
    image = page_image(drawn(["A short line"], top=50, left=30, canvas=SMALL), 0, media_type.split("/")[1].upper())
    assert (await engine.recognize(image, PARAMS)).ok


async def test_two_pages_at_once_many_times_are_never_mixed(engine: Engine) -> None:
    one, other = page(1, "Apples and pears"), page(2, "Seven bridges")
    alone = {image.index: core(await engine.recognize(image, PARAMS)) for image in (one, other)}
    assert alone[1].markdown != alone[2].markdown
    limit = asyncio.Semaphore(engine.capabilities.max_in_flight)

    async def read(image: PageImage) -> None:
        async with limit:
            assert core(await engine.recognize(image, PARAMS)) == alone[image.index]

    await asyncio.gather(*(read(image) for _ in range(12) for image in (one, other)))


async def test_a_cancelled_page_leaves_the_engine_in_order(engine: Engine) -> None:
    expected = core(await engine.recognize(page(), PARAMS))
    for _ in range(4):
        task = asyncio.create_task(engine.recognize(page(7, "Never wanted any more"), PARAMS))
        await asyncio.sleep(0.005)
        task.cancel()
        # A fast engine may have been done already.
        with contextlib.suppress(asyncio.CancelledError):
            await task
    assert core(await engine.recognize(page(), PARAMS)) == expected


@pytest.mark.parametrize("data", [b"", b"no image", b"\x89PNG\r\n\x1a\n\x00\x00"])
async def test_broken_bytes_raise_nothing_but_engine_errors_and_do_no_harm(engine: Engine, data: bytes) -> None:
    with contextlib.suppress(EngineError):
        await engine.recognize(dataclasses.replace(page(), data=data), PARAMS)
    assert (await engine.recognize(page(), PARAMS)).ok
