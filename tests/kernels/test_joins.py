"""Tensors that are joined of equal parts are computed where they are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from kernels.against_eager import Program
from kernels.schedules import steps_of


def turned(x: Tensor) -> Tensor:
    left, right = x.chunk(2, -1)
    return torch.cat((-right, left), -1)


def rope(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    return x * cos + turned(x) * sin


def rope_of_heads(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    heads = x.view(2, 6, 3, 64).transpose(1, 2)
    return heads * cos + turned(heads) * sin


def floats(*sizes: tuple[int, ...], dtype: torch.dtype = torch.float32) -> Callable[[], list[Any]]:
    def make() -> list[Any]:
        return [torch.randn(size).to(dtype).requires_grad_() for size in sizes]

    return make


PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[[], list[Any]]]] = {
    "rope": (rope, floats((2, 6, 64), (6, 64), (6, 64))),
    "rope of heads": (rope_of_heads, floats((2, 6, 192), (6, 64), (6, 64))),
    "half": (rope, floats((2, 6, 64), (6, 64), (6, 64), dtype=torch.bfloat16)),
    "along rows": (lambda x, y: torch.cat((x.sin(), y * 2), 0) + 1, floats((3, 5), (3, 5))),
    "in the middle": (
        lambda x, y: torch.cat((x.sin(), y * 2, x + y), 1).relu(),
        floats((3, 4, 5), (3, 4, 5)),
    ),
    "stacked": (lambda x, y: torch.stack((x, y, x * y), 0) * x, floats((4, 7), (4, 7))),
    "stacked last": (lambda x, y: torch.stack((x, y), -1).sin(), floats((4, 7), (4, 7))),
    "transposed reader": (
        lambda x, y: torch.cat((x.sin(), y), 0).t() * 3,
        floats((4, 20), (4, 20)),
    ),
    "two readers": (
        lambda x, y: (torch.cat((x.sin(), y), 1).cos(), torch.cat((x.sin(), y), 1) + 1),
        floats((4, 16), (4, 16)),
    ),
    "read twice at different places": (
        lambda x, y: (lambda z: z + z.flip(1))(torch.cat((x.sin(), y), 1)),
        floats((4, 16), (4, 16)),
    ),
    "unequal parts": (lambda x, y: torch.cat((x, y), 1).sin(), floats((4, 16), (4, 32))),
    "also an output": (
        lambda x, y: (lambda z: (z, z.sin()))(torch.cat((x, y), 1)),
        floats((4, 16), (4, 16)),
    ),
    "summed": (lambda x, y: torch.cat((x.sin(), y), 1).exp().sum(1), floats((4, 16), (4, 16))),
    "position in the result": (
        lambda x, y: torch.cat((x, y), 1).triu(2) * torch.arange(32),
        floats((8, 16), (8, 16)),
    ),
    "rolled": (lambda x: x.roll(16, 1) * x, floats((4, 32))),
    "joined twice": (
        lambda x, y: torch.cat((torch.cat((x, y), 1).sin(), torch.cat((y, x), 1)), 0) * 2,
        floats((4, 16), (4, 16)),
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    call, make = PROGRAMS[name]
    text = Program(call, make).difference()
    assert not text, text


def test_rotary_embedding_is_one_kernel(capfd: pytest.CaptureFixture[str]) -> None:
    inputs = [torch.randn(2, 6, 192), torch.randn(6, 64), torch.randn(6, 64)]
    assert len(steps_of(capfd, rope_of_heads, inputs)) == 1


def test_a_normalized_one_too(capfd: pytest.CaptureFixture[str]) -> None:
    def run(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        return rope_of_heads(x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6), cos, sin)

    inputs = [torch.randn(2, 6, 192), torch.randn(6, 64), torch.randn(6, 64)]
    assert len(steps_of(capfd, run, inputs)) == 1
