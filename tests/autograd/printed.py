"""Runs the graphs that Assay prints under stock PyTorch, which knows nothing of Assay."""

from __future__ import annotations

import inspect
import re
from typing import Any

import torch
from torch import Tensor, nn

from autograd.compare import SEED

_DTYPES = {
    "f64": torch.float64,
    "f32": torch.float32,
    "bf16": torch.bfloat16,
    "f16": torch.float16,
    "i64": torch.int64,
    "i32": torch.int32,
    "u8": torch.uint8,
    "b8": torch.bool,
}


def load(text: str) -> nn.Module:
    """The module that the class in ``text`` describes; its own tensors are the same every time."""
    names: dict[str, Any] = {"__name__": "printed", "torch": torch, "device": torch.device}
    names |= {"inf": float("inf"), "nan": float("nan")}
    exec(compile(text, "<printed graph>", "exec", dont_inherit=True), names)
    (found,) = [value for value in names.values() if getattr(value, "__module__", "") == "printed"]
    torch.manual_seed(SEED)
    module: nn.Module = found()
    return module


def placeholders(text: str) -> dict[str, str]:
    """Names and annotations of a printed graph's inputs."""
    parameters = inspect.signature(type(load(text)).forward).parameters
    return {name: item.annotation for name, item in parameters.items() if name != "self"}


def described(annotation: str) -> tuple[torch.dtype, list[int], list[int]]:
    """Dtype, sizes and strides of an annotation such as "f32[3, 4][4, 1]cpu"."""
    match = re.match(r"(\w+)\[([\d, ]*)\]\[([\d, ]*)\]", annotation)
    assert match, annotation
    sizes, strides = (
        [int(number) for number in group.split(",") if number.strip()]
        for group in (match[2], match[3])
    )
    return _DTYPES[match[1]], sizes, strides


def bytes_of(annotation: str) -> int:
    dtype, sizes, _ = described(annotation)
    return int(torch.Size(sizes).numel()) * dtype.itemsize


def random_input(annotation: str) -> Tensor:
    """A tensor as described; integers are small, so that they may be indices."""
    dtype, sizes, strides = described(annotation)
    tensor = torch.empty_strided(sizes, strides, dtype=dtype)
    if dtype.is_floating_point:
        return tensor.normal_()
    return tensor.random_(0, 2)
