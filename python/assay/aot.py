"""Ahead-of-time autograd: forward and backward graphs of a program, and programs compiled from them.

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
        found = _C.trace_function(_function(program), list(inputs), partitioner, decompose)
    return Trace(found.captured, found.joint, found.forward, found.backward, found.saved_bytes)


class Compiled:
    """A compiled function. Get one from :func:`compile`."""

    def __init__(self, handle: _C.CompiledFunction) -> None:
        self._handle = handle

    def __call__(self, *inputs: Any) -> Any:
        """Call with tensors, numbers, and lists or tuples of numbers."""
        return self._handle(*inputs)

    @property
    def graphs(self) -> list[str]:
        """What was captured, once for each compilation so far; empty for what runs eagerly."""
        return self._handle.graphs


def compile(
    program: Callable[..., Any],
    *,
    backend: str = "aot_eager",
    fallback: bool = False,
    cache_size_limit: int = 8,
) -> Compiled:
    """Compile a function or module with a backend, at its first call and when its guards fail.

    The calls of operators are captured; numbers and flow of control are those of the first call
    with such inputs. Positional arguments only. With ``fallback``, calls that cannot be traced run
    eagerly, with a warning.
    """
    name = getattr(program, "__name__", type(program).__name__)
    return Compiled(
        _C.CompiledFunction(_function(program), backend, name, fallback, cache_size_limit)
    )


def partition(joint: str, forward_outputs: int, *, partitioner: str = "min_cut") -> dict[str, Any]:
    """Split a joint graph's text: ``forward``, ``backward``, ``saved``, ``saved_bytes``."""
    return _C.partition_text(joint, forward_outputs, partitioner)


def _function(program: Callable[..., Any]) -> Callable[..., Any]:
    def call(*inputs: Any) -> Any:
        return program(*inputs)

    return call
