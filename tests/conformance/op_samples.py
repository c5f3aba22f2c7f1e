"""PyTorch's own samples of arguments for its operators, and the names a graph has for each."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx.node import _get_qualified_name
from torch.testing._internal.common_methods_invocations import op_db

__all__ = ["Spelling", "op_db", "samples", "spellings"]

MODULES = ("torch", "operator", "_operator")


@dataclass(frozen=True)
class Spelling:
    """One way a graph can call an operator: a function's name, or a method's with a dot."""

    name: str
    function: Callable[..., Any]

    @property
    def is_in_place(self) -> bool:
        if self.name.startswith("operator.i"):
            return self.name != "operator.invert"
        return self.name.startswith(".") and self.name.endswith("_") and self.name[-2] != "_"


def _function_name(function: Any) -> str | None:
    """FX's name for a function, if it is one that a graph can hold."""
    try:
        name = _get_qualified_name(function)
    except (AttributeError, RuntimeError):
        return None
    is_wrapper = "<lambda>" in name or name.startswith(("torch.testing", "torch._refs"))
    if is_wrapper or name.split(".")[0] not in MODULES:
        return None
    return name.replace("_operator.", "operator.")


def _documented_function(op: Any) -> Any:
    """`torch.linalg.norm` for the entry of that name: samples may wrap it, to set a seed."""
    try:
        return functools.reduce(getattr, op.name.split("."), torch)
    except AttributeError:
        return None


def spellings(op: Any) -> list[Spelling]:
    """Every function and method that an entry of op_db is about."""
    found: dict[str, Callable[..., Any]] = {}
    functions: list[Any] = [op.op, *(alias.op for alias in op.aliases)]
    for function in [*functions, op.operator_variant, op.inplace_operator_variant]:
        if function is not None and (name := _function_name(function)):
            found.setdefault(name, function)
    if callable(documented := _documented_function(op)) and not op.name.startswith("torch."):
        found.setdefault(f"torch.{op.name}", documented)
    for variant in (op.method_variant, op.inplace_variant):
        method = getattr(torch.Tensor, getattr(variant, "__name__", ""), None)
        if method is not None and method is variant:
            found.setdefault(f".{method.__name__}", method)
    return [Spelling(name, function) for name, function in found.items()]


def samples(op: Any, dtype: torch.dtype, count: int) -> Iterator[Any]:
    torch.manual_seed(1)
    return itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=False), count)
