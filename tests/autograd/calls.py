"""What tests of calls share: a network, and a program before and after compiling it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor, nn

import assay
from autograd.compare import SEED


def network() -> nn.Sequential:
    torch.manual_seed(SEED)
    return nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 2))


def both(program: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    """The program itself, then compiled; the generator is seeded before each."""
    for version in (program, assay.aot.compile(program, backend="aot_eager")):
        torch.manual_seed(SEED)
        yield version


def assert_same(found: Sequence[Tensor | None], expected: Sequence[Tensor | None]) -> None:
    assert len(found) == len(expected)
    for left, right in zip(found, expected, strict=True):
        if left is None or right is None:
            assert left is right
        else:
            torch.testing.assert_close(left, right, rtol=0, atol=0)


# Modes that may be on around a call.
MODES: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "autocast to float16": lambda: torch.autocast("cpu", dtype=torch.float16),
    "autocast without cache": lambda: torch.autocast("cpu", torch.bfloat16, cache_enabled=False),
}
