"""What torch's control flow operators compute, in plain Python.

In eager, ``torch.cond`` and its relatives compile themselves with stock's compiler. A captured
program calls these functions instead, as one call of its graph: each run decides anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

__all__ = [
    "cond",
    "map",
    "map_operator",
    "register_hook",
    "scan",
    "scan_operator",
    "while_loop",
    "while_loop_operator",
]


def cond(
    pred: Any,
    true_fn: Callable[..., Any],
    false_fn: Callable[..., Any],
    operands: Sequence[Any] = (),
) -> Any:
    """``torch.cond``."""
    if isinstance(pred, torch.Tensor) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
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


def while_loop_operator(
    cond_fn: Callable[..., Any],
    body_fn: Callable[..., Any],
    carried_inputs: Sequence[Any],
    additional_inputs: Sequence[Any],
) -> Any:
    """``torch.ops.higher_order.while_loop``."""
    return while_loop(
        lambda *carried: cond_fn(*carried, *additional_inputs),
        lambda *carried: body_fn(*carried, *additional_inputs),
        carried_inputs,
    )


def map_operator(f: Callable[..., Any], xs: Sequence[Any], args: Sequence[Any]) -> Any:
    """``torch.ops.higher_order.map_impl``."""
    results = [f(*items, *args) for items in zip(*xs, strict=True)]
    return tuple(torch.stack(items) for items in zip(*results, strict=True))


def scan_operator(
    combine_fn: Callable[..., Any],
    init: Sequence[Any],
    xs: Sequence[Any],
    additional_inputs: Sequence[Any],
) -> Any:
    """``torch.ops.higher_order.scan``."""
    carry, results = list(init), []
    for items in zip(*xs, strict=True):
        both = combine_fn(*carry, *items, *additional_inputs)
        carry = list(both[: len(init)])
        results.append(both[len(init) :])
    return (
        *(leaf.clone() for leaf in carry),
        *(torch.stack(items) for items in zip(*results, strict=True)),
    )


def register_hook(tensor: torch.Tensor, hook: Callable[[torch.Tensor], Any]) -> None:
    """``tensor.register_hook(hook)``, in every run of a graph; who records takes the handle."""
    register_hook.handle = tensor.register_hook(hook)  # type: ignore[attr-defined]


def _stack(results: list[Any], dim: int) -> Any:
    flat = [tree_flatten(result) for result in results]
    stacked = [
        torch.stack(items, dim) for items in zip(*(leaves for leaves, _ in flat), strict=True)
    ]
    return tree_unflatten(stacked, flat[0][1])
