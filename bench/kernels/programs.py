"""The ten kernels of the benchmark: what memory-bound parts of models are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

Program = tuple[Callable[..., Any], list[Tensor]]


def gelu() -> Program:
    return lambda x: F.gelu(x), [torch.randn(1024, 1024)]


def layer_norm_residual() -> Program:
    def run(x: Tensor, residual: Tensor, weight: Tensor, bias: Tensor) -> Any:
        total = x + residual
        return F.layer_norm(total, (768,), weight, bias), total

    return run, [torch.randn(1024, 768), torch.randn(1024, 768), torch.ones(768), torch.zeros(768)]


def softmax() -> Program:
    return lambda x: torch.softmax(x, -1), [torch.randn(1024, 1024)]


def mean_and_variance() -> Program:
    def run(x: Tensor) -> Any:
        return x.mean(-1), x.var(-1)

    return run, [torch.randn(1024, 1024)]


def chain_of_30() -> Program:
    def run(x: Tensor, y: Tensor) -> Tensor:
        for step in range(10):
            x = torch.tanh(x * y) + 0.125 * step
            x = x - y
        return x

    return run, [torch.randn(512, 1024), torch.randn(512, 1024)]


def cross_entropy() -> Program:
    """Forward and backward."""
    target = torch.randint(0, 1000, (1024,))

    def run(logits: Tensor) -> Any:
        loss = F.cross_entropy(logits, target)
        loss.backward()
        gradient, logits.grad = logits.grad, None
        return gradient

    return run, [torch.randn(1024, 1000, requires_grad=True)]


def broadcast_transpose_add() -> Program:
    def run(x: Tensor, y: Tensor, bias: Tensor) -> Tensor:
        return x.t() + y * 2 + bias

    return run, [torch.randn(1024, 1024), torch.randn(1024, 1024), torch.randn(1024)]


def embedding_layer_norm() -> Program:
    def run(ids: Tensor, words: Tensor, places: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        made = F.embedding(ids, words) + places
        return F.layer_norm(made, (512,), weight, bias)

    ids = torch.randint(0, 5000, (4, 256))
    tables = [torch.randn(5000, 512), torch.randn(256, 512)]
    return run, [ids, *tables, torch.ones(512), torch.zeros(512)]


def rms_norm_rope() -> Program:
    def turned(x: Tensor) -> Tensor:
        left, right = x.chunk(2, -1)
        return torch.cat((-right, left), -1)

    def run(x: Tensor, weight: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        normal = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight
        heads = normal.view(4, 256, 8, 64).transpose(1, 2)
        return heads * cos + turned(heads) * sin

    angles = torch.randn(256, 64)
    return run, [torch.randn(4, 256, 512), torch.ones(512), angles.cos(), angles.sin()]


def adamw_update() -> Program:
    """Twenty tensors: what an optimizer does for each parameter."""
    sizes = [(256, 256), (256,), (512, 256), (512,)] * 5
    count = len(sizes)

    def run(*tensors: Tensor) -> Any:
        made = []
        for i in range(count):
            value, gradient, first, second = tensors[4 * i : 4 * i + 4]
            first = first * 0.9 + gradient * 0.1
            second = second * 0.999 + gradient * gradient * 0.001
            step = first / (second.sqrt() / 0.0316 + 1e-8)
            made += [value * (1 - 1e-5) - 1e-3 * step, first, second]
        return made

    inputs = []
    for size in sizes:
        inputs += [torch.randn(size), torch.randn(size), torch.randn(size), torch.rand(size)]
    return run, inputs


PROGRAMS: dict[str, Callable[[], Program]] = {
    program.__name__: program
    for program in (
        gelu,
        layer_norm_residual,
        softmax,
        mean_and_variance,
        chain_of_30,
        cross_entropy,
        broadcast_transpose_add,
        embedding_layer_norm,
        rms_norm_rope,
        adamw_update,
    )
}
