"""Writes a tiny checkpoint of LightOnOCR's architecture, for tests with a real vLLM.

python make_tiny_model.py FOLDER [TITLE], with torch, safetensors and tokenizers (those of vLLM's environment). Every
request, whatever its page, is answered by PAGE_TEXT and ends by itself: each row of the output layer answers to the
token before it, while vision tower, projector and decoder all run, with weights too small to matter. 1 M parameters,
2 MB.
"""

from __future__ import annotations

import itertools
import json
import math
import sys
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

PAGE_TEXT = """# Tiny Page 1

The quick brown fox jumps over a lazy dog. Zażółć gęślą jaźń, naïve café: 12.50 €.

| Item | Qty | Price |
|------|----:|------:|
| Bolt M8 | 40 | 3.20 |
| Nut M8 | 41 | 1.15 |

$$E = mc^2$$

![image](image_1.png)

Signed in Kraków, 2 May 2024.
"""
IMAGE, END, END_OF_TEXT = "<|image_pad|>", "<|im_end|>", "<|endoftext|>"
SPECIAL = (END_OF_TEXT, "<|im_start|>", END, "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>", IMAGE)
# The prompt of the real template: an empty system turn, the user's turn, the start of the answer.
CHAT_TEMPLATE = (
    "{%- if not messages or messages[0]['role'] != 'system' -%}{{ '<|im_start|>system<|im_end|>\\n' }}{%- endif -%}"
    "{%- for m in messages -%}{{ '<|im_start|>' + m['role'] + '\\n' }}"
    "{%- if m['content'] is string -%}{{ m['content'] }}"
    "{%- else -%}{%- for c in m['content'] -%}"
    "{%- if c['type'] == 'image' or 'image' in c or 'image_url' in c -%}{{ '<|image_pad|>' }}"
    "{%- elif 'text' in c -%}{{ c['text'] }}{%- endif -%}{%- endfor -%}{%- endif -%}"
    "{{ '<|im_end|>\\n' }}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n' }}{%- endif -%}"
)
# vLLM's attention on CPUs takes heads of 32, 64, 80, 96, 112, 128 and more.
TEXT = {
    "hidden_size": 256,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
}
VISION = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "head_dim": 32,
}
PATCH, MERGE, LONGEST_EDGE, CONTEXT = 14, 2, 1540, 8192
LAYER_SCALE = 0.05


def byte_letters() -> dict[int, str]:
    """GPT-2's printable letter for each byte."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {byte: chr(byte) for byte in printable}
    letters |= {byte: chr(256 + n) for n, byte in enumerate(b for b in range(256) if b not in letters)}
    return letters


def distinct_pieces(text: str) -> list[str]:
    """Cuts text into pieces of which no two are alike, so that each names the one that follows it."""
    pieces: list[str] = []
    start = 0
    while start < len(text):
        length = 3
        while text[start : start + length] in pieces:
            length += 1
        pieces.append(text[start : start + length])
        start += length
    return pieces


def write_json(path: Path, data: dict[str, Any]) -> None:
    """Writes a file of the checkpoint."""
    path.write_text(json.dumps(data, indent=1), encoding="utf-8")


def make_tokenizer(folder: Path) -> tuple[Tokenizer, list[int]]:
    """Writes the tokenizer; gives it, and the tokens of the answer."""
    letters = byte_letters()
    vocabulary = {letters[byte]: byte for byte in range(256)}
    words = ["".join(letters[byte] for byte in piece.encode()) for piece in distinct_pieces(PAGE_TEXT)]
    answer = [vocabulary.setdefault(word, len(vocabulary)) for word in words]
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], byte_fallback=False))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in SPECIAL])
    tokenizer.save(str(folder / "tokenizer.json"))
    write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": END,
            "pad_token": END_OF_TEXT,
            "model_max_length": CONTEXT,
            "clean_up_tokenization_spaces": False,
            "processor_class": "PixtralProcessor",
            "additional_special_tokens": list(SPECIAL),
        },
    )
    (folder / "chat_template.jinja").write_text(CHAT_TEMPLATE, encoding="utf-8")
    return tokenizer, answer


def write_configuration(folder: Path, tokenizer: Tokenizer, vocabulary: int) -> None:
    """Writes the files that say what the model is."""
    end, end_of_text = tokenizer.token_to_id(END), tokenizer.token_to_id(END_OF_TEXT)
    sampling = {"do_sample": True, "temperature": 0.2, "top_p": 0.9, "top_k": 0}
    write_json(
        folder / "generation_config.json",
        {**sampling, "eos_token_id": [end, end_of_text], "pad_token_id": end_of_text},
    )
    write_json(
        folder / "preprocessor_config.json",
        {
            "image_processor_type": "PixtralImageProcessorFast",
            "processor_class": "PixtralProcessor",
            "do_convert_rgb": True,
            "do_resize": True,
            "do_rescale": True,
            "do_normalize": True,
            "image_mean": [0.48145466, 0.4578275, 0.40821073],
            "image_std": [0.26862954, 0.26130258, 0.27577711],
            "patch_size": PATCH,
            "resample": 3,
            "rescale_factor": 1 / 255,
            "size": {"longest_edge": LONGEST_EDGE},
        },
    )
    write_json(
        folder / "processor_config.json",
        {
            "processor_class": "PixtralProcessor",
            "patch_size": PATCH,
            "spatial_merge_size": MERGE,
            "image_token": IMAGE,
            "image_break_token": "<|vision_pad|>",
            "image_end_token": "<|vision_end|>",
        },
    )
    common = {"attention_dropout": 0.0, "hidden_act": "silu", "initializer_range": 0.02}
    text = {
        "model_type": "qwen3",
        "architectures": ["Qwen3ForCausalLM"],
        "attention_bias": False,
        "max_position_embeddings": CONTEXT,
        "rms_norm_eps": 1e-6,
        "rope_theta": 1000000.0,
        "use_sliding_window": False,
        "tie_word_embeddings": False,
        "vocab_size": vocabulary,
    }
    vision = {
        "model_type": "pixtral",
        "image_size": LONGEST_EDGE,
        "num_channels": 3,
        "patch_size": PATCH,
        "rope_theta": 10000.0,
    }
    write_json(
        folder / "config.json",
        {
            "architectures": ["LightOnOCRForConditionalGeneration"],
            "model_type": "mistral3",
            "dtype": "bfloat16",
            "image_token_index": tokenizer.token_to_id(IMAGE),
            "multimodal_projector_bias": False,
            "projector_hidden_act": "gelu",
            "spatial_merge_size": MERGE,
            "vision_feature_layer": -1,
            "tie_word_embeddings": False,
            "text_config": {**common, **text, **TEXT},
            "vision_config": {**common, **vision, **VISION},
        },
    )


class Weights(dict[str, torch.Tensor]):
    """Tensors by name."""

    def linear(self, name: str, outputs: int, inputs: int, scale: float = 1.0) -> None:
        """A random matrix that keeps the size of what it maps, times `scale`."""
        self[f"{name}.weight"] = torch.randn(outputs, inputs) * scale / math.sqrt(inputs)

    def norm(self, *names: str, size: int) -> None:
        """Norms that change nothing."""
        self.update({f"{name}.weight": torch.ones(size) for name in names})


def decoder_weights(weights: Weights) -> None:
    """The text model's layers, which hardly move what passes through them."""
    size, inner = TEXT["hidden_size"], TEXT["intermediate_size"]
    heads = TEXT["num_attention_heads"] * TEXT["head_dim"]
    shared = TEXT["num_key_value_heads"] * TEXT["head_dim"]
    for number in range(TEXT["num_hidden_layers"]):
        layer = f"model.language_model.layers.{number}"
        weights.linear(f"{layer}.self_attn.q_proj", heads, size)
        weights.linear(f"{layer}.self_attn.k_proj", shared, size)
        weights.linear(f"{layer}.self_attn.v_proj", shared, size)
        weights.linear(f"{layer}.self_attn.o_proj", size, heads, LAYER_SCALE)
        weights.norm(f"{layer}.self_attn.q_norm", f"{layer}.self_attn.k_norm", size=TEXT["head_dim"])
        weights.linear(f"{layer}.mlp.gate_proj", inner, size)
        weights.linear(f"{layer}.mlp.up_proj", inner, size)
        weights.linear(f"{layer}.mlp.down_proj", size, inner, LAYER_SCALE)
        weights.norm(f"{layer}.input_layernorm", f"{layer}.post_attention_layernorm", size=size)
    weights.norm("model.language_model.norm", size=size)


def vision_weights(weights: Weights) -> None:
    """Vision tower and projector."""
    size, inner = VISION["hidden_size"], VISION["intermediate_size"]
    heads = VISION["num_attention_heads"] * VISION["head_dim"]
    patches = 3 * PATCH * PATCH
    weights["model.vision_encoder.patch_conv.weight"] = torch.randn(size, 3, PATCH, PATCH) / math.sqrt(patches)
    weights.norm("model.vision_encoder.ln_pre", size=size)
    for number in range(VISION["num_hidden_layers"]):
        layer = f"model.vision_encoder.transformer.layers.{number}"
        for name in "qkv":
            weights.linear(f"{layer}.attention.{name}_proj", heads, size)
        weights.linear(f"{layer}.attention.o_proj", size, heads)
        weights.norm(f"{layer}.attention_norm", f"{layer}.ffn_norm", size=size)
        weights.linear(f"{layer}.feed_forward.gate_proj", inner, size)
        weights.linear(f"{layer}.feed_forward.up_proj", inner, size)
        weights.linear(f"{layer}.feed_forward.down_proj", size, inner)
    projector, text_size = "model.vision_projection", TEXT["hidden_size"]
    weights.norm(f"{projector}.norm", size=size)
    weights.linear(f"{projector}.patch_merger.merging_layer", size, size * MERGE**2)
    weights.linear(f"{projector}.linear_1", text_size, size)
    weights.linear(f"{projector}.linear_2", text_size, text_size)


def answer_weights(weights: Weights, sequence: list[int], vocabulary: int) -> None:
    """Embeddings, and an output layer in which each token's row points where the token before it lies."""
    size = TEXT["hidden_size"]
    embeddings = torch.randn(vocabulary, size)
    output = torch.randn(vocabulary, size) * 0.001
    for before, token in itertools.pairwise(sequence):
        output[token] += 0.25 * embeddings[before] / embeddings[before].norm() * math.sqrt(size) / 4
    weights["model.language_model.embed_tokens.weight"] = embeddings
    weights["lm_head.weight"] = output


def make_model(folder: Path, vocabulary: int = 0) -> int:
    """Writes the checkpoint, with at least so many tokens in its vocabulary; gives the tokens of an answer."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    tokenizer, answer = make_tokenizer(folder)
    vocabulary = max(vocabulary, math.ceil(tokenizer.get_vocab_size() / 64) * 64)
    write_configuration(folder, tokenizer, vocabulary)
    weights = Weights()
    # The prompt ends with a line feed, whose letter in the vocabulary has the number of its byte.
    answer_weights(weights, [ord("\n"), *answer, tokenizer.token_to_id(END)], vocabulary)
    decoder_weights(weights)
    vision_weights(weights)
    tensors = {name: tensor.to(torch.bfloat16).contiguous() for name, tensor in weights.items()}
    save_file(tensors, str(folder / "model.safetensors"), metadata={"format": "pt"})
    return len(answer) + 1


if __name__ == "__main__":
    if len(sys.argv) > 2:
        PAGE_TEXT = PAGE_TEXT.replace("Tiny Page 1", sys.argv[2])
    make_model(Path(sys.argv[1]))
