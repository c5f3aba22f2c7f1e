"""Pooling windows that reach far beyond the input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from kernels.against_eager import Program

POOLS: dict[str, Callable[[Tensor], Any]] = {
    "much larger than the input": lambda x: F.avg_pool2d(x, 64, ceil_mode=True),
    "larger by its padding": lambda x: F.avg_pool2d(x, 9, 2, 4, ceil_mode=True),
    "padding does not count": lambda x: F.avg_pool2d(
        x, 9, 2, 4, ceil_mode=True, count_include_pad=False
    ),
    "a given divisor": lambda x: F.avg_pool2d(x, 40, ceil_mode=True, divisor_override=7),
    "maxima": lambda x: F.max_pool2d(x, 9, 2, 4, ceil_mode=True, return_indices=True),
    "maxima of every third": lambda x: F.max_pool2d(
        x, 3, 2, 1, dilation=3, ceil_mode=True, return_indices=True
    ),
}


@pytest.mark.parametrize("name", POOLS)
def test_pool(name: str) -> None:
    text = Program(POOLS[name], lambda: [torch.randn(2, 3, 7, 6, requires_grad=True)]).difference()
    assert not text, text
