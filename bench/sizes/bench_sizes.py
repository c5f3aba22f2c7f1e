"""A language model generates: every step sees keys and values of another length.

Seconds from the first call on, compilation included, and of a later generation of the same length,
for eager, Assay and stock's inductor in one process. All must choose the same tokens.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

import assay

TOKENS = 60


def make_model() -> torch.nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        num_hidden_layers=4, hidden_size=256, num_attention_heads=4, num_key_value_heads=4,
        intermediate_size=688, vocab_size=1000, max_position_embeddings=512,
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


def generate(model: Callable[..., Any], prompt: torch.Tensor) -> list[int]:
    tokens: list[int] = []
    past, x = None, prompt
    with torch.no_grad():
        for _ in range(TOKENS):
            found = model(input_ids=x, past_key_values=past, use_cache=True)
            past, x = found.past_key_values, found.logits[:, -1:].argmax(-1)
            tokens.append(int(x))
    return tokens


def run() -> dict[str, dict[str, float]]:
    torch.set_num_threads(1)
    model = make_model()
    prompt = torch.randint(0, 1000, (1, 8))
    expected = generate(model, prompt)
    programs = {
        "eager": model,
        "assay": assay.compile(model),
        "stock": torch.compile(model),
    }
    first: dict[str, float] = {}
    later = dict.fromkeys(programs, float("inf"))
    for name, program in programs.items():
        begin = time.perf_counter()
        tokens = generate(program, prompt)
        first[name] = time.perf_counter() - begin
        assert tokens == expected, name
    for program in programs.values():
        generate(program, prompt)  # sizes that come again are compiled
    for _ in range(5):
        for name, program in programs.items():
            begin = time.perf_counter()
            generate(program, prompt)
            later[name] = min(later[name], time.perf_counter() - begin)
    return {"first": first, "later": later}
