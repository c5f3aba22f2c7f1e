"""The plug-in for stock PyTorch: ``torch.compile(model, backend="assay")``.

Stock Dynamo captures; its graphs go through Assay's autograd and kernels. An installed package is
found by its entry point (``torch_dynamo_backends`` in pyproject.toml); in a source tree,
``import assay`` registers the backend.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from types import ModuleType
from typing import Any

import torch

from assay import _C, aot
from assay._after_import import after_import
from assay.errors import OperatorError, UserError
from assay.fx import from_graph_module

__all__ = ["assay", "register"]

# What compiles the graphs, of those that `assay backends` lists.
BACKEND = "native"


def assay(
    gm: torch.fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: dict[str, bool | int | float | str] | None = None,
) -> Callable[..., Any]:
    """Compile a graph of Dynamo's for inputs like these, and for others when they come.

    Sizes are specialized: a graph with dynamic sizes is compiled for the first two sets of sizes
    that it is called with, then for each that comes a second time, up to
    ``assay.config.accumulated_cache_size_limit`` of them. All others run eagerly.
    ``options`` are those of the backend, as ``assay backends --json`` lists them; ``mode`` is
    accepted and has no effect. A graph that cannot be traced runs eagerly, with a warning.
    """
    name = type(gm).__name__
    inputs = [_concrete(value) for value in example_inputs]

    def prepared(handle: _C.CompiledFunction) -> _C.CompiledFunction:
        handle.raise_as(gm)
        if not any(value is _UNKNOWN for value in inputs):
            # Now: what fails here, Dynamo reports as our failure. But if the program raises for
            # these inputs, the call will do so, as eager does.
            with suppress(OperatorError):
                handle.prepare(*inputs)
        return handle

    try:
        graph = from_graph_module(gm, example_inputs)._graph
        handle = prepared(_C.CompiledFunction(graph, BACKEND, options or {}, name, True, None))
    except UserError:
        # It makes calls that only Python can make. Then the operators that they call are recorded.
        handle = prepared(aot.recorded(_closing_transforms(gm), BACKEND, options or {}, name))
    return _Compiled(handle)


def _closing_transforms(gm: torch.fx.GraphModule) -> Callable[..., Any]:
    """The module; if a call of it raises, no transform of torch.func that it opened stays open."""
    functorch = torch._C._functorch

    def call(*inputs: Any) -> Any:
        depth = functorch.get_dynamic_layer_stack_depth()
        try:
            return gm(*inputs)
        except BaseException:
            functorch.pop_dynamic_layer_stack_and_undo_to_depth(depth)
            raise

    return call


class _Compiled(_C.FastCall):
    def __init__(self, handle: _C.CompiledFunction) -> None:
        self._handle = handle
        self.set_fast(handle)

    def call_slowly(self, *inputs: Any) -> Any:
        """For inputs that :class:`assay._C.FastCall` does not handle."""
        return self._handle(*inputs)

    def __deepcopy__(self, memo: dict[int, Any]) -> _Compiled:
        # Stock's debug wrapper runs a copy. Calls leave nothing here that the next one could see.
        return self


_UNKNOWN = object()


def _concrete(value: Any) -> Any:
    """The value that stands for a symbolic one; using it as a number would add a guard."""
    if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
        return value.node.hint if value.node.has_hint() else _UNKNOWN
    return value


def register() -> None:
    """Make the backend known to stock PyTorch, as soon as its list of backends exists."""
    after_import("torch._dynamo.backends.registry", _add)


def _add(registry: ModuleType) -> None:
    if assay.__name__ not in registry._BACKENDS:  # else the entry point is there, and loads this
        registry.register_backend(assay)
