"""Ahead-of-time autograd: forward and backward graphs of programs, and programs compiled from them.

>>> traced = assay.aot.trace(model, (x,))
>>> print(traced.forward)                   # the forward graph as a Python program
>>> print(traced.backward)                  # what runs when backward() is called
>>> traced.saved_bytes                      # what forward keeps for backward

>>> step = assay.aot.compile(model, backend="aot_eager")
>>> step(x).sum().backward()                # same results, same gradients as model(x)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree

from assay import _C

__all__ = ["Compiled", "Trace", "compile", "partition", "trace"]


@dataclass(frozen=True)
class Trace:
    """The graphs of one program, each as a Python program that stock PyTorch runs."""

    captured: str
    """The calls the program makes, as it makes them."""
    joint: str
    """Forward and backward in one graph."""
    forward: str
    """The forward half; returns the results, then what backward needs."""
    backward: str
    """The backward half; empty if nothing requires a gradient."""
    saved_bytes: int
    """How much forward keeps for backward."""


def trace(
    program: Callable[..., Any] | str,
    inputs: Iterable[Any],
    *,
    partitioner: str = "min_cut",
    decompose: bool = False,
) -> Trace:
    """Trace a function, a module or a graph's text with real inputs, which are not changed.

    ``partitioner`` is ``"min_cut"`` or ``"default"``; with ``decompose`` operators are made of
    simpler ones where :func:`assay.list_backends` says so. Raises :class:`assay.TraceError` for
    what a graph cannot hold.
    """
    if isinstance(program, str):
        found = _C.trace_text(program, list(inputs), partitioner, decompose)
    else:
        found = _C.trace_function(_watched(program), list(inputs), partitioner, decompose)
    return Trace(found.captured, found.joint, found.forward, found.backward, found.saved_bytes)


class Compiled:
    """A compiled function. Get one from :func:`compile`."""

    def __init__(self, make: Callable[[Any], _C.CompiledFunction]) -> None:
        self._make = make
        self._by_structure: dict[Any, _C.CompiledFunction] = {}
        self._flat: _C.CompiledFunction | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call with tensors and numbers, and with lists, tuples and dicts of them."""
        if not kwargs and not any(isinstance(arg, _CONTAINERS) for arg in args):
            if self._flat is None:
                self._flat = self._make(None)
            return self._flat(*args)
        leaves, structure = _pytree.tree_flatten((args, kwargs))
        if structure not in self._by_structure:
            self._by_structure[structure] = self._make(structure)
        return self._by_structure[structure](*leaves)

    @property
    def graphs(self) -> list[str]:
        """What was captured, once for each compilation so far; empty for what runs eagerly."""
        handles = [self._flat] if self._flat is not None else []
        handles += self._by_structure.values()
        return [graph for handle in handles for graph in handle.graphs]


def compile(
    program: Callable[..., Any] | str,
    *,
    backend: str = "aot_eager",
    fallback: bool = False,
    cache_size_limit: int = 8,
) -> Compiled:
    """Compile a function, module or graph's text, at its first call and when its guards fail.

    The calls of operators are captured; numbers and flow of control are those of the first call
    with such inputs. With ``fallback``, calls that cannot be traced run eagerly, with a warning.
    """
    _C.check_backend(backend)

    def make(structure: Any) -> _C.CompiledFunction:
        if isinstance(program, str):
            return _C.CompiledFunction(program, backend, fallback, cache_size_limit)
        plain, watched = _function(program, structure), _watched(program, structure)
        name = getattr(program, "__name__", type(program).__name__)
        return _C.CompiledFunction(plain, watched, backend, name, fallback, cache_size_limit)

    return Compiled(make)


def partition(joint: str, forward_outputs: int, *, partitioner: str = "min_cut") -> dict[str, Any]:
    """Split a joint graph's text: ``forward``, ``backward``, ``saved``, ``saved_bytes``."""
    return _C.partition_text(joint, forward_outputs, partitioner)


_CONTAINERS = (list, tuple, dict)


def _function(program: Callable[..., Any], structure: Any = None) -> Callable[..., Any]:
    """The program as a function of a flat list of arguments."""

    def call(*leaves: Any) -> Any:
        if structure is None:
            return program(*leaves)
        args, kwargs = _pytree.tree_unflatten(list(leaves), structure)
        return program(*args, **kwargs)

    return call


def _watched(program: Callable[..., Any], structure: Any = None) -> Callable[..., Any]:
    """The same, refusing what no operator tells of."""
    call = _function(program, structure)

    def watched(*leaves: Any) -> Any:
        with _RefuseHiddenEffects():
            return call(*leaves)

    return watched


class _RefuseHiddenEffects(TorchFunctionMode):
    """Raises where a program does to a tensor what a graph of operators cannot hold."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        why = _HIDDEN_EFFECTS.get(func)
        if why is not None:
            name = getattr(func, "__name__", str(func))
            raise _C.TraceError(
                f"the program {why} ({name}), which a graph cannot hold\n"
                "  hint: do this part outside of the compiled function"
            )
        return func(*args, **(kwargs or {}))


_READS = "reads the values of a tensor"
_HOOKS = "puts a hook on a tensor"
_HIDDEN_EFFECTS: dict[Any, str] = {
    torch.Tensor.tolist: _READS,
    torch.Tensor.numpy: _READS,
    torch.Tensor.__array__: _READS,
    torch.Tensor.__dlpack__: _READS,
    torch.Tensor.data_ptr: _READS,
    torch.Tensor.register_hook: _HOOKS,
    torch.Tensor.register_post_accumulate_grad_hook: _HOOKS,
    torch.Tensor.retain_grad: "asks for the gradient of an intermediate",
    torch.Tensor.requires_grad_: "calls requires_grad_()",
    torch.Tensor.requires_grad.__set__: "sets requires_grad",
    torch.Tensor.data.__set__: "replaces the data of a tensor",
    torch.Tensor.grad.__set__: "sets the gradient of a tensor",
    torch.Tensor.backward: "calls backward()",
}
