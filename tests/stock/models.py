"""The models whose graphs stock PyTorch writes to files for our tests.

Every function marked with ``@model`` builds one: it returns the thing to compile (a module or a
function) and its example inputs, a tuple for positional arguments or a dict for keyword arguments.
Weights and inputs are random but the same in every run, as `build` seeds the generator first:

    fn, inputs = build("mlp")
    outputs = call(fn, inputs)

`MODELS` lists them all, with what `make_files` needs to know about each (see `Model`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Inputs = tuple[Any, ...] | dict[str, Any]
Built = tuple[Callable[..., Any], Inputs]


@dataclass(frozen=True)
class Model:
    """One entry of `MODELS`.

    ``dynamic`` is handed to ``torch.compile``; ``grad`` says whether the model runs with gradients
    on, so that AOTAutograd writes a forward and a backward graph and not one inference graph;
    ``large`` marks a baseline of full size, left out unless it is asked for by name;
    ``dynamo_config`` holds what ``torch._dynamo.config`` must say while the model compiles.
    """

    name: str
    make: Callable[[], Built]
    dynamic: bool = False
    grad: bool = True
    large: bool = False
    dynamo_config: Mapping[str, Any] = field(default_factory=dict)


MODELS: dict[str, Model] = {}


def model(**properties: Any) -> Callable[[Callable[[], Built]], Callable[[], Built]]:
    """Enter the decorated function in `MODELS` under its own name, with a `Model`'s properties."""

    def register(make: Callable[[], Built]) -> Callable[[], Built]:
        MODELS[make.__name__] = Model(make.__name__, make, **properties)
        return make

    return register


def build(name: str) -> Built:
    """The model ``name`` and its inputs, the same in every run."""
    torch.manual_seed(1)
    return MODELS[name].make()


def call(fn: Callable[..., Any], inputs: Inputs) -> Any:
    """Run ``fn`` on ``inputs``, positional or by keyword."""
    return fn(**inputs) if isinstance(inputs, Mapping) else fn(*inputs)


# --- Small networks -------------------------------------------------------------------------------


@model()
def mlp() -> Built:
    """Five times Linear(200, 200) and ReLU: the guide's model."""
    layers: list[nn.Module] = []
    for _ in range(5):
        layers += [nn.Linear(200, 200), nn.ReLU()]
    return nn.Sequential(*layers), (torch.randn(200, 200),)


class _TorchRelu(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x)


def _with_torch_relu(network: nn.Module) -> nn.Module:
    """Stock's faulty backends know `torch.relu` only, not `nn.ReLU`."""
    for module in list(network.modules()):
        for name, child in module.named_children():
            if isinstance(child, nn.ReLU):
                setattr(module, name, _TorchRelu())
    return network


@model(grad=False, large=True)
def mlp_relu() -> Built:
    """The guide's model, without gradients and with `torch.relu`."""
    network, inputs = mlp()
    return _with_torch_relu(network), inputs


@model()
def linear_layernorm_relu() -> Built:
    """The guide's TORCH_COMPILE_DEBUG example."""
    net = nn.Sequential(nn.Linear(10, 10), nn.LayerNorm(10), nn.ReLU())
    return net, (torch.randn(10, 10),)


@model()
def chain() -> Built:
    """A hundred pointwise operators, one after the other."""
    steps: Sequence[Callable[[Tensor], Tensor]] = (
        torch.sin,
        lambda x: x * 0.5,
        torch.tanh,
        lambda x: x + 1,
        torch.sigmoid,
        lambda x: x - 0.25,
        torch.relu,
        lambda x: x / 2,
        torch.cos,
        torch.abs,
    )

    def run(x: Tensor) -> Tensor:
        for i in range(100):
            x = steps[i % len(steps)](x)
        return x

    return run, (torch.randn(16, 16, requires_grad=True),)


class _Block(nn.Module):
    def __init__(self, inner: int, outer: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inner, outer, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outer)
        self.conv2 = nn.Conv2d(outer, outer, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outer)
        self.shortcut = nn.Sequential()
        if stride != 1 or inner != outer:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inner, outer, 1, stride=stride, bias=False), nn.BatchNorm2d(outer)
            )

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return F.relu(y + self.shortcut(x))


def _resnet() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 7, stride=2, padding=3, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, stride=2, padding=1),
        _Block(8, 8, 1),
        _Block(8, 16, 2),
        nn.AdaptiveAvgPool2d((1, 1)),
        nn.Flatten(),
        nn.Linear(16, 10),
    )


@model(grad=False)
def resnet() -> Built:
    """A small ResNet, ready for inference."""
    return _resnet().eval(), (torch.randn(2, 3, 32, 32),)


@model()
def resnet_train() -> Built:
    """The same with batch statistics and a backward."""
    return _resnet().train(), (torch.randn(2, 3, 32, 32),)


@model()
def conv_bn() -> Built:
    """Every kind of convolution and normalisation, and pooling."""

    class ConvBn(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv1d = nn.Conv1d(4, 6, 3, padding="same")
            self.bn1d = nn.BatchNorm1d(6)
            self.up = nn.ConvTranspose2d(6, 4, 2, stride=2)
            self.group = nn.GroupNorm(2, 4)
            self.instance = nn.InstanceNorm2d(4, affine=True)
            self.prelu = nn.PReLU()

        def forward(self, x: Tensor) -> Tensor:
            y = F.leaky_relu(self.bn1d(self.conv1d(x)), 0.1)
            y = self.up(y.unflatten(2, (4, 4)))
            y = F.silu(self.group(y)) + F.hardswish(self.instance(y))
            y = F.max_pool2d(y, 2) + F.avg_pool2d(y, 2)
            y = F.interpolate(self.prelu(y), scale_factor=2.0, mode="bilinear", align_corners=False)
            y = F.pad(y, (1, 1, 0, 2), mode="reflect")
            return F.adaptive_avg_pool2d(F.pad(y, (1, 1), value=0.5), 1).flatten(1)

    return ConvBn().train(), (torch.randn(2, 4, 16),)


@model(grad=False, dynamo_config={"allow_rnn": True})
def lstm() -> Built:
    """Recurrent layers, which Dynamo traces only when its config allows it."""

    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(6, 8, num_layers=2, batch_first=True)
            self.gru = nn.GRU(8, 5)

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            y, (hidden, _) = self.lstm(x)
            z, _ = self.gru(y)
            return z, hidden

    return Recurrent(), (torch.randn(3, 7, 6),)


@model()
def sdpa() -> Built:
    """Attention in its three forms: with a mask, causal, and nn.MultiheadAttention."""

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv = nn.Linear(16, 48)
            self.attention = nn.MultiheadAttention(16, 2, batch_first=True)

        def forward(self, x: Tensor, mask: Tensor) -> Tensor:
            q, k, v = self.qkv(x).view(2, 5, 3, 2, 8).permute(2, 0, 3, 1, 4).unbind(0)
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
            y = y + F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.3)
            y = y.transpose(1, 2).reshape(2, 5, 16)
            return self.attention(y, y, y, need_weights=False)[0]

    mask = torch.zeros(5, 5).masked_fill(torch.ones(5, 5).triu(1).bool(), float("-inf"))
    return Attention(), (torch.randn(2, 5, 16), mask)


# --- Transformers ---------------------------------------------------------------------------------


def _transformer(architecture: str, config: Any, train: bool) -> nn.Module:
    import transformers

    network = getattr(transformers, architecture)(config)
    return network.train() if train else network.eval()


def _gpt2(
    train: bool, layers: int = 2, width: int = 32, heads: int = 2, activation: str = "gelu_new"
) -> nn.Module:
    from transformers import GPT2Config

    config = GPT2Config(
        n_layer=layers,
        n_embd=width,
        n_head=heads,
        vocab_size=101,
        n_positions=64,
        activation_function=activation,
        use_cache=False,
        bos_token_id=0,
        eos_token_id=0,
    )
    network = _transformer("GPT2LMHeadModel", config, train)
    network.loss_type = "ForCausalLM"  # unset, transformers warns while tracing: a graph break
    return network


def _tokens(*size: int, below: int = 100) -> Tensor:
    return torch.randint(0, below, size)


@model()
def gpt2_small() -> Built:
    """GPT2, two layers of width 32, dropout off."""
    return _gpt2(train=False), {"input_ids": _tokens(2, 8)}


@model()
def gpt2_small_train() -> Built:
    """GPT2 with dropout and the loss."""
    ids = _tokens(2, 8)
    return _gpt2(train=True), {"input_ids": ids, "labels": ids}


@model(grad=False, large=True)
def gpt2() -> Built:
    """The baseline of four layers and width 256."""
    return _gpt2(train=False, layers=4, width=256, heads=4), {"input_ids": _tokens(2, 64)}


def _bert(train: bool, layers: int = 2, width: int = 32, heads: int = 2, **other: Any) -> nn.Module:
    from transformers import BertConfig

    config = BertConfig(
        num_hidden_layers=layers,
        hidden_size=width,
        num_attention_heads=heads,
        intermediate_size=2 * width,
        vocab_size=101,
        max_position_embeddings=max(32, width),
        num_labels=3,
        **other,
    )
    return _transformer("BertForSequenceClassification", config, train)


@model(grad=False)
def bert() -> Built:
    """BERT with a padding mask."""
    mask = torch.ones(2, 8, dtype=torch.int64)
    mask[1, 5:] = 0
    return _bert(train=False), {"input_ids": _tokens(2, 8), "attention_mask": mask}


@model()
def bert_train() -> Built:
    """BERT with dropout and a classification loss."""
    return _bert(train=True), {"input_ids": _tokens(2, 8), "labels": torch.tensor([0, 2])}


@model(grad=False, large=True)
def bert_base() -> Built:
    """The baseline of four layers and width 256."""
    return _bert(train=False, layers=4, width=256, heads=4), {"input_ids": _tokens(2, 64)}


@model(grad=False, large=True)
def bert_relu() -> Built:
    """The baseline with relu for an activation, for faults that inductor has in it."""
    network = _bert(train=False, layers=4, width=256, heads=4, hidden_act="relu")
    return _with_torch_relu(network), {"input_ids": _tokens(2, 64)}


@model(grad=False, large=True)
def gpt2_relu() -> Built:
    """The baseline with relu for an activation, for faults that inductor has in it."""
    network = _gpt2(train=False, layers=4, width=256, heads=4, activation="relu")
    return _with_torch_relu(network), {"input_ids": _tokens(2, 64)}


@model(grad=False)
def llama() -> Built:
    """Llama, two layers, grouped key and value heads."""
    from transformers import LlamaConfig

    config = LlamaConfig(
        num_hidden_layers=2,
        hidden_size=32,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=64,
        vocab_size=101,
        max_position_embeddings=64,
        use_cache=False,
    )
    return _transformer("LlamaForCausalLM", config, train=False), {"input_ids": _tokens(2, 8)}


def _t5(train: bool) -> nn.Module:
    from transformers import T5Config

    config = T5Config(
        num_layers=1,
        d_model=32,
        d_kv=8,
        d_ff=64,
        num_heads=4,
        vocab_size=101,
        use_cache=False,
        decoder_start_token_id=0,
    )
    return _transformer("T5ForConditionalGeneration", config, train)


@model(grad=False)
def t5() -> Built:
    """T5, encoder and decoder, with its relative position buckets."""
    return _t5(train=False), {"input_ids": _tokens(2, 8), "decoder_input_ids": _tokens(2, 6)}


@model()
def t5_train() -> Built:
    """T5 with dropout and the loss."""
    return _t5(train=True), {"input_ids": _tokens(2, 8), "labels": _tokens(2, 6)}


def _vit(train: bool) -> nn.Module:
    from transformers import ViTConfig

    config = ViTConfig(
        num_hidden_layers=2,
        hidden_size=32,
        num_attention_heads=2,
        intermediate_size=64,
        image_size=16,
        patch_size=4,
        hidden_dropout_prob=0.1,
        num_labels=3,
    )
    return _transformer("ViTForImageClassification", config, train)


@model(grad=False)
def vit() -> Built:
    """ViT on images of 16 x 16."""
    return _vit(train=False), {"pixel_values": torch.randn(2, 3, 16, 16)}


@model()
def vit_train() -> Built:
    """ViT with dropout and a loss."""
    images = torch.randn(2, 3, 16, 16)
    return _vit(train=True), {"pixel_values": images, "labels": torch.tensor([0, 2])}


@model(grad=False)
def whisper() -> Built:
    """Whisper, encoder and decoder."""
    from transformers import WhisperConfig

    config = WhisperConfig(
        encoder_layers=1,
        decoder_layers=1,
        d_model=32,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        num_mel_bins=8,
        max_source_positions=20,
        max_target_positions=16,
        vocab_size=101,
        use_cache=False,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=3,
        begin_suppress_tokens=None,
        suppress_tokens=None,
    )
    network = _transformer("WhisperForConditionalGeneration", config, train=False)
    return network, {
        "input_features": torch.randn(2, 8, 40),
        "decoder_input_ids": _tokens(2, 6),
    }


# --- One feature of graphs each -------------------------------------------------------------------


@model(dynamic=True)
def dynamic_mlp() -> Built:
    """Sizes that are symbols, and arithmetic on them."""

    class DynamicMlp(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(12, 16)
            self.second = nn.Linear(16, 4)

        def forward(self, x: Tensor) -> Tensor:
            batch, length, _ = x.shape
            y = F.gelu(self.first(x)).view(batch * length, 16)
            y = self.second(y).view(batch, length, 4)
            y = y[:, : length // 2] * (length - 1) + torch.arange(length // 2).view(1, -1, 1)
            padding = torch.zeros(batch, length % 4 + 1, 4)
            return torch.cat([y, padding], dim=1) / x.size(1) ** 0.5

    return DynamicMlp(), (torch.randn(5, 7, 12),)


@model(grad=False)
def mutation() -> Built:
    """In-place operators, assignments to items, augmented assignment, views of what is written."""

    def mutate(x: Tensor, y: Tensor, counter: Tensor) -> tuple[Tensor, Tensor]:
        counter += 1
        x.mul_(2).add_(y, alpha=0.5)
        y = y.clone()
        y[0] = 1.0
        y[1:, 2] = x[1:, 0]
        y[:, -1] += 3
        view = y.view(-1)[3:9]
        view.zero_()
        y.t()[1].clamp_(min=0.0)
        y -= 1
        y *= x
        torch.relu_(y)
        out = torch.empty_like(y)
        torch.add(x, y, out=out)
        return out.index_add_(0, torch.tensor([0, 2]), torch.ones(2, 5)), view

    return mutate, (torch.randn(4, 5), torch.randn(4, 5), torch.zeros((), dtype=torch.int64))


@model(grad=False)
def higher_order() -> Built:
    """torch.cond: the branches are graphs of their own."""

    def choose(x: Tensor, y: Tensor) -> Tensor:
        def if_true(x: Tensor, y: Tensor) -> Tensor:
            return torch.sin(x) + y

        def if_false(x: Tensor, y: Tensor) -> Tensor:
            return torch.cos(x) * y

        return torch.cond(x.sum() > 0, if_true, if_false, (x, y)) + 1

    return choose, (torch.randn(4, 3), torch.randn(4, 3))


@model()
def indexing() -> Built:
    """Every form of an index, read and written."""

    def index(x: Tensor, rows: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
        picked = x[rows, :, None]
        stepped = x[..., 1::2]
        last = x[-1, ..., None, 0]
        masked = torch.where(mask, x, float("-inf")).amax(-1)
        z = x.clone()
        z[mask] = 0.0
        z[rows, 1] = 2.0
        z[:, :, 1:3] = x[:, :, 0:2]
        z[..., -1] = z[0, 0, :4]
        z = z.index_put((rows,), torch.ones(()), accumulate=True)
        gathered = x.gather(2, rows.view(1, 1, -1).expand(3, 4, -1))
        scattered = torch.zeros(3, 4, 6).scatter_(2, gathered.long().clamp(0, 5), 1.0)
        taken = (
            x.index_select(1, rows),
            x.select(0, 1),
            x.narrow(2, 1, 3),
            x.take_along_dim(x.argsort(-1), -1),
        )
        return picked, stepped, last, masked, z, scattered, *taken

    x = torch.randn(3, 4, 6, requires_grad=True)
    return index, (x, torch.tensor([0, 2, 1]), torch.randn(3, 4, 6) > 0.5)


@model()
def control() -> Built:
    """Regions: autocast, no_grad, enable_grad, detach."""

    class Regions(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(8, 8)

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                y = self.linear(x)
                with torch.autocast("cpu", enabled=False):
                    y = y.float() @ x.t()
            with torch.no_grad():
                scale = y.abs().amax() + 1e-6
                with torch.enable_grad():
                    y = y * 2
            return y / scale, x.detach().softmax(-1)

    return Regions(), (torch.randn(6, 8, requires_grad=True),)


@model()
def constants() -> Built:
    """Tensors that are no inputs: made from Python numbers, buffers, and numbers of every kind."""

    class Constants(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("table", torch.arange(12.0).view(3, 4))
            self.weight = nn.Parameter(torch.randn(4))

        def forward(self, x: Tensor) -> Tensor:
            scale = torch.tensor([0.5, 1.0, 2.0, 4.0])
            shift = torch.tensor(3)
            long = torch.tensor([[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]])
            y = x * scale + shift + self.table * self.weight
            y = y.masked_fill(y > 1e10, float("inf")).clamp(max=1e30)
            y = y + torch.full((3, 4), 2.5) + torch.tensor(True) + torch.tensor(1.5).double()
            return torch.nan_to_num(y + long + torch.eye(3, 4) + torch.ones(4).new_zeros(3, 4))

    return Constants(), (torch.randn(3, 4),)
