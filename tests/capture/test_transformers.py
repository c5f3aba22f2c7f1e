"""Transformers that the baseline does not have, small and random: one graph, eager's results."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch

import assay
from capture.test_models import assert_same, leaves, records

pytestmark = pytest.mark.slow

TEXT = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "vocab_size": 50,
    "max_position_embeddings": 64,
}
TOKENS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
VISION = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "image_size": 16,
    "patch_size": 8,
}
SEQUENCES = {
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 32,
    "vocab_size": 50,
    "max_position_embeddings": 64,
}
SWIN = {
    "image_size": 16,
    "patch_size": 2,
    "embed_dim": 8,
    "depths": [1, 1],
    "num_heads": [2, 2],
    "window_size": 2,
}
SPEECH = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "conv_dim": (8, 8),
    "conv_stride": (5, 4),
    "conv_kernel": (10, 4),
    "num_conv_pos_embeddings": 4,
    "num_conv_pos_embedding_groups": 2,
    "mask_time_prob": 0.0,
}
ONE_KEY_HEAD = {"num_key_value_heads": 1}


def words() -> dict[str, torch.Tensor]:
    ids = torch.randint(3, 50, (2, 7))
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def pairs() -> dict[str, torch.Tensor]:
    given = words()
    return {**given, "decoder_input_ids": given["input_ids"]}


def images() -> dict[str, torch.Tensor]:
    return {"pixel_values": torch.randn(2, 3, 16, 16)}


def sounds() -> dict[str, torch.Tensor]:
    return {"input_values": torch.randn(2, 800)}


# Name of the classes in transformers, what its configuration says, and what makes inputs.
BOTH: dict[str, tuple[dict[str, Any], Callable[[], dict[str, torch.Tensor]]]] = {
    "DistilBert": ({**TEXT, "dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32}, words),
    "Roberta": (TEXT, words),
    "Albert": ({**TEXT, "embedding_size": 8}, words),
    "Electra": ({**TEXT, "embedding_size": 8}, words),
    "DebertaV2": ({**TEXT, "relative_attention": True, "position_buckets": 8}, words),
    "GPTNeoX": (TEXT, words),
    "Qwen2": ({**TEXT, **ONE_KEY_HEAD}, words),
    "Gemma": ({**TEXT, **ONE_KEY_HEAD, "head_dim": 8}, words),
    "Mistral": ({**TEXT, **ONE_KEY_HEAD}, words),
    "ModernBert": ({**TEXT, **TOKENS, "cls_token_id": 1, "sep_token_id": 2}, words),
    "DeiT": (VISION, images),
    "Swin": (SWIN, images),
}
# In training these choose at random which layers they run, as a branch on a tensor's value.
EVAL_ONLY: dict[str, tuple[dict[str, Any], Callable[[], dict[str, torch.Tensor]]]] = {
    "OPT": ({**TEXT, "ffn_dim": 32, "word_embed_proj_dim": 16}, words),
    "Bart": (SEQUENCES, pairs),
    "Pegasus": (SEQUENCES, pairs),
    "Wav2Vec2": (SPEECH, sounds),
}


def build(name: str) -> tuple[Any, dict[str, torch.Tensor]]:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config, inputs = {**BOTH, **EVAL_ONLY}[name]
    model = getattr(transformers, name + "Model")(getattr(transformers, name + "Config")(**config))
    return model, inputs()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", [*BOTH, *EVAL_ONLY])
def test_inference(name: str, backend: str) -> None:
    model, inputs = build(name)
    model.eval()
    compiled = assay.compile(model, backend=backend)
    with torch.no_grad():
        expected = model(**inputs)
        for _ in range(3):
            assert_same(compiled(**inputs), expected)
    assert [record["break"] for record in records(compiled)] == [None]
    assert assay._C.capture_replays(type(compiled)._compiled_call) == 2


def gradients(program: Any, model: Any, inputs: dict[str, torch.Tensor], seed: int) -> list[Any]:
    torch.manual_seed(seed)  # dropout
    model.zero_grad()
    results = leaves(program(**inputs))
    sum(leaf.float().pow(2).mean() for leaf in results if leaf.requires_grad).backward()
    grads = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    return [[leaf.detach() for leaf in results], grads]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", BOTH)
def test_training(name: str, backend: str) -> None:
    model, inputs = build(name)
    model.train()
    other = copy.deepcopy(model)
    compiled = assay.compile(other, backend=backend)
    for step in range(3):
        expected = gradients(model, model, inputs, step)
        actual = gradients(compiled, other, inputs, step)
        # A library that asks whether it is being compiled may add in another order.
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)
    assert [record["break"] for record in records(compiled)] == [None]
