"""The GPUs of this machine."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

from pagemill.domain.errors import ConfigurationError

_QUERY = ("--query-gpu=index,uuid,name,memory.total,memory.used", "--format=csv,noheader,nounits")
_TIMEOUT_S = 30.0

ALTERNATIVES = (
    "Without a GPU: read pages with the embedded engine (pagemill convert --engine embedded), use a server on another "
    "machine (--endpoint URL), run the GGUF model (staghado/LightOnOCR-2-1B-Q8_0-GGUF) with llama.cpp's llama-server "
    "and give its URL as --endpoint, or install a CPU build of vLLM and give --device cpu (minutes a page)."
)


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU.

    Attributes:
        index: Number by which the driver names it.
        uuid: Its lasting name.
        name: Its model.
        memory_mib: Memory in MiB.
        used_mib: Memory in use in MiB, by anyone.
    """

    index: int
    uuid: str
    name: str
    memory_mib: int
    used_mib: int


def find_gpus(environment: Mapping[str, str]) -> list[Gpu]:
    """The GPUs that vLLM may use: what nvidia-smi lists, less what CUDA_VISIBLE_DEVICES hides; none without a driver.

    Raises:
        ConfigurationError: There is a driver, but it does not answer.
    """
    program = shutil.which("nvidia-smi", path=environment.get("PATH"))
    if program is None:
        return []
    try:
        done = subprocess.run(  # noqa: S603 - found on PATH, fixed arguments
            [program, *_QUERY], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise ConfigurationError(
            f"nvidia-smi does not answer ({error}).", "The driver may be hung: look at dmesg, or restart the machine."
        ) from error
    if done.returncode != 0:
        words = (done.stdout + done.stderr).strip()
        if "no devices" in words.lower():
            return []
        raise ConfigurationError(
            f"nvidia-smi fails: {words[-300:] or f'exit status {done.returncode}'}.",
            "Mend the NVIDIA driver first (after a driver update the machine must be restarted).",
        )
    return visible(parse_gpus(done.stdout), environment.get("CUDA_VISIBLE_DEVICES"))


def parse_gpus(text: str) -> list[Gpu]:
    """Reads the lines of nvidia-smi; numbers that it does not know (`[N/A]`) become 0."""
    gpus = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) == 5 and cells[0].isdigit():
            memory, used = (int(cell) if cell.isdigit() else 0 for cell in cells[3:])
            gpus.append(Gpu(int(cells[0]), cells[1], cells[2], memory, used))
    return gpus


def visible(gpus: list[Gpu], wanted: str | None) -> list[Gpu]:
    """The GPUs that CUDA_VISIBLE_DEVICES leaves, in its order; CUDA stops at the first name it does not know."""
    if wanted is None:
        return gpus
    left = []
    for name in (part.strip() for part in wanted.split(",")):
        gpu = next(
            (g for g in gpus if str(g.index) == name or (name.startswith("GPU-") and g.uuid.startswith(name))), None
        )
        if gpu is None:
            break
        left.append(gpu)
    return left
