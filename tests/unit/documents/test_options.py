from __future__ import annotations

import dataclasses

import pytest

from pagemill.documents import RenderOptions
from pagemill.domain.errors import ConfigurationError


@pytest.mark.parametrize(
    "wrong",
    [
        {"long_side": 0},
        {"media_type": "image/gif"},
        {"jpeg_quality": 100},
        {"page_timeout_s": 0},
        {"max_pages": 0},
        {"memory_limit_bytes": 2**20},
    ],
)
def test_impossible_values_are_refused_by_name(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError, match=str(next(iter(wrong.values())))):
        RenderOptions(**wrong)


def test_no_memory_limit_is_a_choice() -> None:
    assert RenderOptions(memory_limit_bytes=0).memory_limit_bytes == 0


def test_only_what_changes_pixels_changes_the_fingerprint() -> None:
    base = RenderOptions()
    for changed in ({"long_side": 1000}, {"max_pdf_scale": 2.0}, {"media_type": "image/jpeg"}):
        assert dataclasses.replace(base, **changed).fingerprint() != base.fingerprint()
    for changed in ({"page_timeout_s": 5.0}, {"max_pages": 9}, {"jpeg_quality": 50}, {"recycle_after_pages": 7}):
        assert dataclasses.replace(base, **changed).fingerprint() == base.fingerprint()


def test_every_field_is_documented() -> None:
    for field in dataclasses.fields(RenderOptions):
        assert f"        {field.name}:" in RenderOptions.__doc__


@pytest.mark.parametrize(
    ("box", "long_side"),
    [
        ((595, 842), 1540),
        ((842, 595), 1540),
        ((1920, 1080), 1540),
        ((200, 500), 1540),
        ((80, 600), 4620),
        ((10, 1000), 6160),
    ],
)
def test_long_narrow_pages_get_more_pixels(box: tuple[float, float], long_side: int) -> None:
    assert RenderOptions().long_side_for(*box) == long_side
