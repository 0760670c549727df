"""A checkpoint of LightOnOCR-2-1B's full size that answers every page with about 820 tokens of made-up text.

    python bench/full_size_model.py FOLDER [--tokens 820]

Speed does not depend on what the weights are: tower, projector and decoder have the real model's sizes and all run, and
the answer ends by itself, so that a whole service can be measured without the real weights. Needs torch, safetensors
and tokenizers. 2.3 GB. Sizes: config.json of lightonai/LightOnOCR-2-1B.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
from pathlib import Path
from types import ModuleType

TEXT = {
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
}
VISION = {
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "head_dim": 64,
}
VOCABULARY = 151_936
CONTEXT = 16_384
_WORDS = ("delivery", "invoice", "ledger", "quarter", "margin", "harbour", "copper", "signal", "window", "bridge")


def page_text(tokens: int) -> str:
    """Prose of about so many tokens of four letters, of which no line is like another.

    It must not end with a line feed: that is what the prompt ends with.
    """
    lines: list[str] = ["# Measured page", ""]
    for number in itertools.count(1):
        first, second = _WORDS[number % len(_WORDS)], _WORDS[(number * 5 + 3) % len(_WORDS)]
        lines.append(
            f"{number}. The {first} of lot {number * 7919 % 9973} met the {second} at {number * 104729 % 8641}."
        )
        if sum(map(len, lines)) >= 4 * tokens:
            return "\n".join(lines)
    raise AssertionError


def tiny_model() -> ModuleType:
    """The script that makes the tests' tiny model, whose trick this one shares."""
    path = Path(__file__).parents[1] / "tests" / "vllm" / "make_tiny_model.py"
    spec = importlib.util.spec_from_file_location("make_tiny_model", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tokens", type=int, default=820)
    arguments = parser.parse_args()
    tiny = tiny_model()
    tiny.TEXT, tiny.VISION, tiny.CONTEXT = TEXT, VISION, CONTEXT
    tiny.PAGE_TEXT = page_text(arguments.tokens)
    count = tiny.make_model(arguments.folder, vocabulary=VOCABULARY)
    print(f"{arguments.folder}: answers {count} tokens")


if __name__ == "__main__":
    main()
