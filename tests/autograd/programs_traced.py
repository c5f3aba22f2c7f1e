"""Functions of tensors whose traces are looked at: each is made of operators Assay decomposes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from autograd.compare import SEED, indices, leaf, plain
from autograd.program import Program, Programs, program

TRACED: Programs = {}


@program(TRACED, lambda: (leaf(3, 4, 6), leaf(6), leaf(6)))
def layer_norm(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.layer_norm(x, (6,), w, b)


@program(TRACED, lambda: (leaf(2, 6, 4), leaf(6), leaf(6)))
def group_norm(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.group_norm(x, 3, w, b)


@program(TRACED, lambda: (leaf(4, 3, 5, 5), leaf(3), leaf(3)))
def batch_norm(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.batch_norm(x, None, None, w, b, training=True)


@program(TRACED, lambda: (leaf(4, 3, 5, 5), plain(3), plain(3).abs(), leaf(3), leaf(3)))
def batch_norm_evaluated(x: Tensor, mean: Tensor, var: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.batch_norm(x, mean, var, w, b)


@program(TRACED, lambda: (leaf(3, 4),))
def gelu(x: Tensor) -> Tensor:
    return F.gelu(x) * F.gelu(x, approximate="tanh")


@program(TRACED, lambda: (leaf(3, 8),))
def activations(x: Tensor) -> Tensor:
    y = F.silu(x) + F.elu(x) + F.hardswish(x) + F.hardsigmoid(x) + F.leaky_relu(x) + F.softplus(x)
    return y + F.mish(x) + F.logsigmoid(x) + F.hardtanh(x) + F.relu(x).tanh() + x.sigmoid()


@program(TRACED, lambda: (leaf(3, 4), leaf(3, 4)))
def softmax(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return x.softmax(-1), y.log_softmax(0)


@program(TRACED, lambda: (leaf(5, 4), indices(4, 5), leaf(2, 4, 3, 3), indices(4, 2, 3, 3)))
def cross_entropy(x: Tensor, classes: Tensor, image: Tensor, pixels: Tensor) -> Tensor:
    return F.cross_entropy(x, classes) + F.cross_entropy(image, pixels, reduction="sum")


@program(TRACED, lambda: (leaf(5, 4), plain(5, 4)))
def losses(x: Tensor, y: Tensor) -> Tensor:
    y01 = y.sigmoid()
    regressions = F.mse_loss(x, y) + F.smooth_l1_loss(x, y) + F.huber_loss(x, y)
    return regressions + F.binary_cross_entropy_with_logits(x, y01) + F.soft_margin_loss(x, y)


@program(TRACED, lambda: (indices(7, 3, 2), leaf(7, 5)))
def embedding(tokens: Tensor, table: Tensor) -> Tensor:
    return F.embedding(tokens, table, padding_idx=1).tanh()


@program(TRACED, lambda: (leaf(4, 5),))
def statistics(x: Tensor) -> Tensor:
    mean, var = torch.var_mean(x, 0)
    return x.std(1).sum() + (mean * var).sum() + x.norm() + x.logsumexp(1).mean() + x.max()


@program(TRACED, lambda: (leaf(2, 3, 4, 4),))
def resized(x: Tensor) -> Tensor:
    return F.interpolate(F.pad(x, (1, 1, 2, 2), mode="reflect"), scale_factor=2.0)


@program(TRACED, lambda: (leaf(4, 6), indices(3, 2)))
def rearranged(x: Tensor, columns: Tensor) -> Tensor:
    a, b = x.split(3, dim=1)
    c = torch.stack([a, b.roll(1, 0)]).masked_fill(torch.ones(4, 3).tril() > 0, 0.5)
    return c.index_select(2, columns).triu() + x.diagonal()[:2]


def _of_parameters(build: Callable[[], nn.Module], *args: Callable[[], Tensor]) -> Program:
    """A module as a function of its parameters and arguments."""

    def make() -> list[Any]:
        torch.manual_seed(SEED)
        parameters = [value.detach().requires_grad_() for value in build().parameters()]
        return [*parameters, *(arg() for arg in args)]

    def functional() -> Callable[..., Any]:
        module = build()
        names = [name for name, _ in module.named_parameters()]

        def call(*tensors: Tensor) -> Any:
            parameters = dict(zip(names, tensors, strict=False))
            return torch.func.functional_call(module, parameters, tensors[len(names) :])

        return call

    return Program(functional, make)


class ConvNet(nn.Sequential):
    def __init__(self) -> None:
        norm = nn.BatchNorm2d(4, track_running_stats=False)
        body = [nn.Conv2d(3, 4, 3), norm, nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
        super().__init__(*body, nn.Linear(36, 5), nn.LogSoftmax(1))


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(11, 8)
        self.block = nn.TransformerEncoderLayer(8, 2, 16, 0.0, F.gelu, batch_first=True)
        self.head = nn.Linear(8, 11)

    def forward(self, tokens: Tensor) -> Tensor:
        logits = self.head(self.block(self.tokens(tokens)))
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


TRACED["conv_net"] = _of_parameters(ConvNet, lambda: leaf(2, 3, 8, 8))
TRACED["transformer"] = _of_parameters(Transformer, lambda: indices(11, 2, 6))
