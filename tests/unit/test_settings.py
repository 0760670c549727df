from __future__ import annotations

from pathlib import Path

import pytest

from pagemill.domain.errors import ConfigurationError
from pagemill.settings import load_settings


@pytest.fixture(autouse=True)
def _in_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_defaults_need_no_file() -> None:
    settings = load_settings()
    assert settings.engine.name == "auto"
    assert settings.render.long_side == 1540


def test_command_line_goes_before_environment_before_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "s.toml"
    file.write_text('[engine]\nname = "file"\n[render]\nlong_side = 1000\nmax_pages = 7\n[log]\nlevel = "error"\n')
    monkeypatch.setenv("PAGEMILL_ENGINE__NAME", "environment")
    monkeypatch.setenv("PAGEMILL_RENDER__LONG_SIDE", "1200")
    settings = load_settings(file, {"engine": {"name": "command line"}})
    assert settings.engine.name == "command line"
    assert settings.render.long_side == 1200
    assert settings.render.max_pages == 7
    assert settings.log.level == "error"


def test_the_file_in_the_working_folder_is_found(tmp_path: Path) -> None:
    (tmp_path / "pagemill.toml").write_text("[conversion]\npage_markers = false\nformats = ['md', 'txt']\n")
    settings = load_settings()
    assert settings.conversion.page_markers is False
    assert [item.value for item in settings.conversion.formats] == ["md", "txt"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[render]\nlong_sied = 3", "render.*long_sied.*is not a setting"),
        ("[rendr]\nx = 3", "rendr.*is not a setting"),
        ("[engine]\nnmae = 'x'", "engine.*nmae.*is not a setting"),
        ("[render]\nlong_side = 'wide'", "render.*long_side"),
        ("[render]\nlong_side = 1", "long_side is 1"),
        ("[log]\nlevel = 'loud'", "log.level"),
        ("not toml", "cannot be read"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "s.toml"
    file.write_text(text)
    with pytest.raises(ConfigurationError, match=message):
        load_settings(file)


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="does not exist"):
        load_settings(tmp_path / "none.toml")
