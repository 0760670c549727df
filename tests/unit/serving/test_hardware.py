from __future__ import annotations

from pathlib import Path

import pytest

from pagemill.domain.errors import ConfigurationError
from pagemill.serving.hardware import find_gpus, parse_gpus, visible

TWO = """\
0, GPU-1a2b, NVIDIA H200, 143771, 4
1, GPU-3c4d, NVIDIA A10G, 23028, [N/A]
"""


def fake_nvidia_smi(folder: Path, script: str) -> dict[str, str]:
    program = folder / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin"}


def test_gpus_are_read() -> None:
    first, second = parse_gpus(TWO)
    assert (first.index, first.name, first.memory_mib) == (0, "NVIDIA H200", 143771)
    assert second.used_mib == 0


@pytest.mark.parametrize(
    ("wanted", "indices"),
    [(None, [0, 1]), ("1", [1]), ("1,0", [1, 0]), ("GPU-3c", [1]), ("", []), ("-1", []), ("0,7,1", [0])],
)
def test_cuda_visible_devices_is_kept_to(wanted: str | None, indices: list[int]) -> None:
    assert [gpu.index for gpu in visible(parse_gpus(TWO), wanted)] == indices


def test_without_a_driver_there_are_none(tmp_path: Path) -> None:
    assert find_gpus({"PATH": str(tmp_path)}) == []
    assert find_gpus(fake_nvidia_smi(tmp_path, "echo 'No devices were found'; exit 6")) == []


def test_the_program_is_asked_and_its_failure_told(tmp_path: Path) -> None:
    environment = fake_nvidia_smi(tmp_path, "echo '0, GPU-1, NVIDIA H200, 143771, 4'")
    assert [gpu.name for gpu in find_gpus(environment)] == ["NVIDIA H200"]
    environment = fake_nvidia_smi(tmp_path, "echo 'Failed to initialize NVML: version mismatch'; exit 18")
    with pytest.raises(ConfigurationError, match=r"version mismatch.*must be restarted"):
        find_gpus(environment)
