"""Whether results lie in memory as eager's do: their strides, and what they share it with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from assay.stock.accuracy import Difference, Run


def compare(
    expected: Run, result: Run, *, strides: bool, aliasing: bool, all_strides: bool
) -> Difference | None:
    """The first difference between runs that gave the same numbers."""
    eager, compiled = list(_tensors(expected.output, "output")), list(_tensors(result.output, ""))
    if len(eager) != len(compiled):
        return None
    pairs = [
        (where, left, right) for (where, left), (_, right) in zip(eager, compiled, strict=True)
    ]
    found = _strides(pairs) if strides else None
    if found is None and aliasing:
        found = _aliasing(pairs, expected.input, result.input)
    if found is None and all_strides:
        found = _all_strides(pairs)
    return found


Pairs = list[tuple[str, torch.Tensor, torch.Tensor]]


def _tensors(value: Any, where: str) -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(value, torch.Tensor):
        yield where, value
    elif isinstance(value, list | tuple):
        for i, item in enumerate(value):
            yield from _tensors(item, f"{where}[{i}]")
    elif isinstance(value, dict):
        for key in sorted(value):
            yield from _tensors(value[key], f"{where}[{key!r}]")


def _strides(pairs: Pairs) -> Difference | None:
    """Eager's are a promise where elements fill their memory without overlap."""
    for where, eager, compiled in pairs:
        if eager.layout != torch.strided or eager.numel() == 0 or eager.shape != compiled.shape:
            continue
        if not torch.ops.aten.is_non_overlapping_and_dense(eager):
            continue
        of_both = zip(eager.shape, eager.stride(), compiled.stride(), strict=True)
        if any(size > 1 and left != right for size, left, right in of_both):
            return {"kind": "strides", "where": where, "message": _both(eager, compiled)}
    return None


def _all_strides(pairs: Pairs) -> Difference | None:
    """Those of no importance, too: of dimensions with one element, of expanded results."""
    for where, eager, compiled in pairs:
        if eager.layout != torch.strided or eager.shape != compiled.shape:
            continue
        if eager.stride() != compiled.stride():
            return {"kind": "all_strides", "where": where, "message": _both(eager, compiled)}
    return None


def _both(eager: torch.Tensor, compiled: torch.Tensor) -> str:
    return f"eager's strides are {eager.stride()}, the result's {compiled.stride()}"


def _aliasing(
    pairs: Pairs, eager_inputs: dict[str, Any], inputs: dict[str, Any]
) -> Difference | None:
    """Which results share a storage with which inputs, and with which other results."""
    others = [
        (f"input[{name!r}]", eager_inputs[name], inputs[name])
        for name in eager_inputs
        if name in inputs
    ]
    for i, (where, eager, compiled) in enumerate(pairs):
        for other, by_eager, by_compiled in others + pairs[:i]:
            shares = _share_memory(eager, by_eager)
            if shares != _share_memory(compiled, by_compiled):
                programs = ("eager", "the compiled program")
                does, does_not = programs if shares else reversed(programs)
                message = f"it shares memory with {other} in {does}, but not in {does_not}"
                return {"kind": "aliasing", "where": where, "message": message}
    return None


def _share_memory(left: torch.Tensor, right: torch.Tensor) -> bool:
    storages = []
    for tensor in (left, right):
        if tensor.layout != torch.strided or tensor.is_quantized:
            return False
        storages.append(tensor.untyped_storage())
    return storages[0].nbytes() > 0 and storages[0].data_ptr() == storages[1].data_ptr()
