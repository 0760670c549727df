"""What is known of models by their names."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ModelPreset:
    """How a model wants to be asked; the sampling of all their cards is the default of `SamplingParams`.

    Attributes:
        name: Name of the preset.
        long_side: Pixels on the long side that it was trained for.
        context: Tokens of prompt and answer together.
    """

    name: str
    long_side: int = 1540
    context: int = 16_384


_FAMILIES: tuple[tuple[re.Pattern[str], ModelPreset], ...] = (
    (re.compile(r"lightonocr-2-1b-(ocr-)?bbox(-soup)?"), ModelPreset("LightOnOCR-2-1B-bbox")),
    (re.compile(r"lightonocr-2-1b"), ModelPreset("LightOnOCR-2-1B")),
    (re.compile(r"lightonocr-3"), ModelPreset("LightOnOCR-3")),
    (re.compile(r"lightonocr-(1b|0\.9b)"), ModelPreset("LightOnOCR-1B-1025")),
)
_DEFAULT = ModelPreset("LightOnOCR")


def preset_for(model: str) -> ModelPreset:
    """The preset for a model's name: a hub id, a folder, or the name under which it is served.

    Names of quantised or converted copies (`...-GGUF`, `...-Q8_0.gguf`) are found as well; a name that tells nothing
    gets the values that all LightOnOCR models share.
    """
    name = model.lower().replace("_", "-")
    return next((preset for pattern, preset in _FAMILIES if pattern.search(name)), _DEFAULT)
