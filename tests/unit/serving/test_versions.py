from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pagemill.domain.errors import ConfigurationError
from pagemill.serving.versions import Installed, Verdict, judge_pair, python_of, read_installed


@pytest.mark.parametrize(
    ("vllm", "transformers", "verdict"),
    [
        ("0.30.0", "5.16.1", Verdict.GOOD),
        ("0.32.0+cpu", "5.19.0", Verdict.GOOD),
        ("0.24.0", "5.16.1", Verdict.GOOD),
        ("0.24.0", "5.17.0", Verdict.BAD),
        ("0.27.1", "5.16.1", Verdict.BAD),
        ("0.12.0", "4.57.1", Verdict.GOOD),
        ("0.30.0", "5.20.0", Verdict.UNKNOWN),
        ("0.33.0", "5.16.1", Verdict.UNKNOWN),
        ("0.33.1rc2.dev5+g123", "5.20.0.dev0", Verdict.UNKNOWN),
        ("0.1", "5", Verdict.UNKNOWN),
    ],
)
def test_pairs_are_judged_by_what_was_run(vllm: str, transformers: str, verdict: Verdict) -> None:
    assert judge_pair(vllm, transformers).verdict is verdict


def test_the_reason_names_the_pair_and_the_way_out() -> None:
    assert "PixtralRotaryEmbedding" in judge_pair("0.24.0", "5.18.0").reason
    assert "vllm==0.30.0" in judge_pair("0.33.0", "5.16.1").reason


def test_versions_are_read_beside_the_executable_without_importing_vllm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, version in (("vllm", "0.30.0"), ("transformers", "5.16.1")):
        folder = tmp_path / "site" / f"{name}-{version}.dist-info"
        folder.mkdir(parents=True)
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (tmp_path / "site" / f"{name}.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    script = tmp_path / "vllm"
    script.write_text(f"#!{sys.executable}\n")
    installed = read_installed(script)
    assert (installed.vllm, installed.transformers, installed.modelscope) == ("0.30.0", "5.16.1", None)
    assert not installed.is_cpu_build
    assert Installed("0.32.0+cpu", "5.19.0", None, None).is_cpu_build


def test_the_python_beside_goes_before_the_first_line(tmp_path: Path) -> None:
    script = tmp_path / "vllm"
    script.write_text("#!/nowhere/python\n")
    with pytest.raises(ConfigurationError, match="cannot be found"):
        python_of(script)
    (tmp_path / "python").touch()
    assert python_of(script) == tmp_path / "python"


def test_a_broken_environment_is_told(tmp_path: Path) -> None:
    (tmp_path / "vllm").touch()
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'no module encodings' >&2; exit 1\n")
    python.chmod(0o755)
    with pytest.raises(ConfigurationError, match="no module encodings"):
        read_installed(tmp_path / "vllm")
