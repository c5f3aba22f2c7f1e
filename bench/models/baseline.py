"""The eight models of the baseline (shared with bench/models/bench_models.py), at its sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from tests.stock.models import _Block as Block
from torch import Tensor, nn

Built = tuple[nn.Module, dict[str, Any]]


def _network(name: str, config: Any) -> nn.Module:
    import transformers

    config._attn_implementation = "sdpa"
    network: nn.Module = getattr(transformers, name)(config)
    network.loss_type = "ForCausalLM"  # unset, transformers warns while tracing
    return network


def _tokens(*size: int) -> Tensor:
    return torch.randint(0, 1000, size)


class _Positional(nn.Module):
    """A network that takes its one input by keyword, as the others do."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        return self.network(x)


def mlp() -> Built:
    layers: list[nn.Module] = []
    for _ in range(5):
        layers += [nn.Linear(200, 200), nn.ReLU()]
    return _Positional(nn.Sequential(*layers)), {"x": torch.randn(64, 200)}


def resnet() -> Built:
    network = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1, bias=False),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        *(Block(32, 32, 1), Block(32, 64, 2), Block(64, 128, 2), Block(128, 128, 1)),
        nn.AdaptiveAvgPool2d((1, 1)),
        nn.Flatten(),
        nn.Linear(128, 10),
    )
    return _Positional(network), {"x": torch.randn(4, 3, 32, 32)}


def gpt2() -> Built:
    from transformers import GPT2Config

    config = GPT2Config(
        n_layer=4, n_embd=256, n_head=4, vocab_size=1000, n_positions=128, use_cache=False,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    return _network("GPT2LMHeadModel", config), {"input_ids": _tokens(2, 128)}


def bert() -> Built:
    from transformers import BertConfig

    config = BertConfig(
        num_hidden_layers=4, hidden_size=256, num_attention_heads=4, intermediate_size=1024,
        vocab_size=1000, max_position_embeddings=128, num_labels=3, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    return _network("BertForSequenceClassification", config), {"input_ids": _tokens(2, 128)}


def llama() -> Built:
    from transformers import LlamaConfig

    config = LlamaConfig(
        num_hidden_layers=4, hidden_size=256, num_attention_heads=4, num_key_value_heads=4,
        intermediate_size=688, vocab_size=1000, max_position_embeddings=128, use_cache=False,
    )  # fmt: skip
    return _network("LlamaForCausalLM", config), {"input_ids": _tokens(2, 128)}


def t5() -> Built:
    from transformers import T5Config

    config = T5Config(
        num_layers=2, d_model=256, d_kv=64, d_ff=512, num_heads=4, vocab_size=1000,
        use_cache=False, decoder_start_token_id=0, dropout_rate=0.0,
    )  # fmt: skip
    inputs = {"input_ids": _tokens(2, 64), "decoder_input_ids": _tokens(2, 64)}
    return _network("T5ForConditionalGeneration", config), inputs


def vit() -> Built:
    from transformers import ViTConfig

    config = ViTConfig(
        num_hidden_layers=4, hidden_size=192, num_attention_heads=3, intermediate_size=768,
        image_size=64, patch_size=8, num_labels=10, hidden_dropout_prob=0.0,
    )  # fmt: skip
    return _network("ViTForImageClassification", config), {
        "pixel_values": torch.randn(2, 3, 64, 64)
    }


def whisper() -> Built:
    from transformers import WhisperConfig

    config = WhisperConfig(
        encoder_layers=2, decoder_layers=2, d_model=192, encoder_attention_heads=3,
        decoder_attention_heads=3, encoder_ffn_dim=768, decoder_ffn_dim=768, num_mel_bins=80,
        max_source_positions=150, max_target_positions=64, vocab_size=1000, use_cache=False,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=3,
        begin_suppress_tokens=None, suppress_tokens=None, dropout=0.0,
    )  # fmt: skip
    inputs = {"input_features": torch.randn(1, 80, 300), "decoder_input_ids": _tokens(1, 64)}
    return _network("WhisperForConditionalGeneration", config), inputs


MODELS: dict[str, Callable[[], Built]] = {
    make.__name__: make for make in (mlp, resnet, gpt2, bert, llama, t5, vit, whisper)
}
