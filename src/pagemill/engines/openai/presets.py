"""What is known of models by their names."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pagemill.domain import SamplingParams


@dataclass(frozen=True, slots=True)
class ModelPreset:
    """How a model wants to be asked.

    Attributes:
        name: Name of the preset.
        long_side: Pixels on the long side that it was trained for.
        sampling: Sampling of its model card.
        context: Tokens of prompt and answer together.
        picture_boxes: Whether it writes boxes of pictures behind their links.
    """

    name: str
    long_side: int = 1540
    sampling: SamplingParams = SamplingParams()
    context: int = 16_384
    picture_boxes: bool = False


_FAMILIES: tuple[tuple[re.Pattern[str], ModelPreset], ...] = (
    (re.compile(r"lightonocr-2-1b-(ocr-)?bbox(-soup)?"), ModelPreset("LightOnOCR-2-1B-bbox", picture_boxes=True)),
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
