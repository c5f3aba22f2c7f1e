"""Holds calls made by Assay without Python against eager PyTorch: equal to the last bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from assay import _C

SEED = 7


def map_tensors(function: Callable[[torch.Tensor], Any], value: Any) -> Any:
    """`value` with every tensor in nested lists, tuples and dicts replaced."""
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, list | tuple):
        return type(value)(map_tensors(function, item) for item in value)
    if isinstance(value, dict):
        return {key: map_tensors(function, item) for key, item in value.items()}
    return value


def copy_arguments(value: Any) -> Any:
    """Copies every tensor once, so that arguments which are the same tensor stay the same."""
    copies: dict[int, torch.Tensor] = {}

    def copy(tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) not in copies:
            copied = tensor.detach().clone()
            copies[id(tensor)] = copied.requires_grad_(tensor.requires_grad)
        return copies[id(tensor)]

    return map_tensors(copy, value)


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    tensor = tensor.detach().resolve_conj().resolve_neg()
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def _tensor_difference(found: torch.Tensor, expected: torch.Tensor, values: bool) -> str:
    for name in ("dtype", "shape", "layout", "device", "requires_grad"):
        if getattr(found, name) != getattr(expected, name):
            return f"{name} is {getattr(found, name)}, expected {getattr(expected, name)}"
    if found.layout != torch.strided:
        found, expected = found.to_dense(), expected.to_dense()
    if found.stride() != expected.stride():
        return f"strides are {found.stride()}, expected {expected.stride()}"
    if not values:
        return ""
    found, expected = _bits(found), _bits(expected)
    same = (found == expected) | (found.isnan() & expected.isnan())
    return "" if bool(same.all()) else f"{int((~same).sum())} of {same.numel()} values differ"


def difference(found: Any, expected: Any, values: bool = True) -> str:
    """What differs, or an empty text. Lists and tuples are told apart only by their items."""
    if isinstance(expected, torch.Tensor):
        if not isinstance(found, torch.Tensor):
            return f"found {type(found).__name__}, expected a tensor"
        return _tensor_difference(found, expected, values)
    if isinstance(expected, list | tuple):
        if not isinstance(found, list | tuple) or len(found) != len(expected):
            return f"found {found!r}, expected {len(expected)} items"
        for i, (left, right) in enumerate(zip(found, expected, strict=True)):
            if text := difference(left, right, values):
                return f"item {i}: {text}"
        return ""
    if isinstance(expected, dict):
        return difference(list(found.values()), list(expected.values()), values)
    if type(found) is not type(expected):
        return f"found {found!r}, expected {expected!r}"
    return "" if found == expected or expected != expected else f"{found!r} is not {expected!r}"


class Outcome:
    """What a call returned or raised, and what it did to its arguments and the generator."""

    def __init__(self, function: Callable[..., Any], args: Any, kwargs: Any) -> None:
        self.args, self.kwargs = copy_arguments((tuple(args), kwargs))
        self.result: Any = None
        self.error: Exception | None = None
        torch.manual_seed(SEED)
        try:
            self.result = function(*self.args, **self.kwargs)
        except Exception as error:
            self.error = error
        self.generator = torch.get_rng_state()

    def differs_from(self, eager: Outcome, values: bool = True) -> str:
        if text := difference(self.result, eager.result, values):
            return text
        if text := difference((self.args, self.kwargs), (eager.args, eager.kwargs), values):
            return f"arguments after the call: {text}"
        return "" if torch.equal(self.generator, eager.generator) else "random numbers drawn"


def call(name: str, *args: Any, **kwargs: Any) -> Any:
    """Calls a function, or with a leading dot a method, without Python."""
    return _C.call(name, args, kwargs)


def check(name: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Asserts that Assay does for `name` what the eager `function` does."""
    eager = Outcome(function, args, kwargs)
    found = Outcome(lambda *a, **k: _C.call(name, a, k), args, kwargs)
    if eager.error is not None:
        assert found.error is not None, f"{name} returned {found.result!r}, eager: {eager.error}"
        return
    if found.error is not None:
        raise found.error
    assert (text := found.differs_from(eager)) == "", f"{name}: {text}"
