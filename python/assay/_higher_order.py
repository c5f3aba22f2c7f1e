"""What torch's control flow operators compute, in plain Python.

In eager, ``torch.cond`` and its relatives compile themselves with stock's compiler. A captured
program calls these functions instead, as one call of its graph: each run decides anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

__all__ = ["cond", "map", "scan", "while_loop"]


def cond(
    pred: Any,
    true_fn: Callable[..., Any],
    false_fn: Callable[..., Any],
    operands: Sequence[Any] = (),
) -> Any:
    """``torch.cond``."""
    return true_fn(*operands) if pred else false_fn(*operands)


def while_loop(
    cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Sequence[Any]
) -> Any:
    """``torch.while_loop``."""
    carried = tuple(carried_inputs)
    first = carried
    while cond_fn(*carried):
        carried = tuple(body_fn(*carried))
    # Results are no aliases of what was given.
    return tuple(
        new.clone() if new is old and isinstance(new, torch.Tensor) else new
        for new, old in zip(carried, first, strict=True)
    )


def map(f: Callable[..., Any], xs: Any, *args: Any) -> Any:
    """``functorch.experimental.control_flow.map``."""
    leaves, spec = tree_flatten(xs)
    results = [f(tree_unflatten(list(items), spec), *args) for items in zip(*leaves, strict=True)]
    return _stack(results, 0)


def scan(
    combine_fn: Callable[..., Any],
    init: Any,
    xs: Any,
    *,
    dim: int = 0,
    reverse: bool = False,
) -> Any:
    """``torch.scan``: the last carry, and what each step gave, stacked."""
    leaves, spec = tree_flatten(xs)
    steps = list(zip(*(leaf.unbind(dim) for leaf in leaves), strict=True))
    carry, results = init, []
    for items in reversed(steps) if reverse else steps:
        carry, result = combine_fn(carry, tree_unflatten(list(items), spec))
        results.append(result)
    if reverse:
        results.reverse()
    carry = tree_map(lambda leaf: leaf.clone() if isinstance(leaf, torch.Tensor) else leaf, carry)
    return carry, _stack(results, 0)


def _stack(results: list[Any], dim: int) -> Any:
    flat = [tree_flatten(result) for result in results]
    stacked = [
        torch.stack(items, dim) for items in zip(*(leaves for leaves, _ in flat), strict=True)
    ]
    return tree_unflatten(stacked, flat[0][1])
