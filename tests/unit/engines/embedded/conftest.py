from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from pagemill.engines.embedded.detection import Detector
from pagemill.engines.embedded.layout import LayoutModel
from pagemill.engines.embedded.pipeline import PagePipeline
from pagemill.engines.embedded.reading import Reader
from pagemill.engines.embedded.recognition import Recogniser
from pagemill.engines.embedded.sessions import Session
from pagemill.engines.embedded.weights import DETECTOR, LAYOUT, RECOGNISER


@pytest.fixture(scope="session")
def reader() -> Iterator[Reader]:
    """Detection and recognition with the real models."""
    with ThreadPoolExecutor(2) as pool:
        yield Reader(Detector(Session(DETECTOR)), Recogniser(Session(RECOGNISER)), 0.6, pool)


@pytest.fixture(scope="session")
def pipeline(reader: Reader) -> PagePipeline:
    """All stages with the real models."""
    return PagePipeline(reader, LayoutModel(Session(LAYOUT)))
