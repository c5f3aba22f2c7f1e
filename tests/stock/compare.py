"""Bitwise comparison of results, for tests that hold Assay's against stock PyTorch's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch


def flatten(value: Any) -> Iterator[Any]:
    """The leaves of nested lists, tuples and dicts."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from flatten(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from flatten(item)
    else:
        yield value


def assert_identical(found: Any, expected: Any, what: str) -> None:
    """Equal values, dtypes, shapes and strides; NaN equals NaN. No tolerance."""
    found, expected = list(flatten(found)), list(flatten(expected))
    assert len(found) == len(expected), f"{what}: {len(found)} values, expected {len(expected)}"
    for i, (a, b) in enumerate(zip(found, expected, strict=True)):
        where = f"{what}: value {i}"
        if not isinstance(b, torch.Tensor):
            assert type(a) is type(b) and a == b, f"{where} is {a!r}, expected {b!r}"
            continue
        assert isinstance(a, torch.Tensor), f"{where} is {type(a)}, expected a tensor"
        assert (a.dtype, a.shape) == (b.dtype, b.shape), f"{where}: {a.dtype} {a.shape}"
        torch.testing.assert_close(
            a.detach(), b.detach(), rtol=0, atol=0, equal_nan=True, msg=lambda m: f"{where}: {m}"
        )
