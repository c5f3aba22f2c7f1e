"""Ahead-of-time autograd: trace a program into forward and backward graphs, or compile it.

>>> traced = assay.aot.trace(model, (x,))
>>> print(traced.forward)                   # the forward graph as a Python program
>>> print(traced.backward)                  # what runs when backward() is called
>>> traced.saved_bytes                      # how many bytes forward saves for backward

>>> step = assay.aot.compile(model, backend="aot_eager")
>>> step(x).sum().backward()                # the same results and gradients as model(x)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree

from assay import _C
from assay.errors import TraceError

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
    """Trace a function, a module or a graph's text with real inputs, which are not mutated.

    ``partitioner`` is ``"min_cut"`` or ``"default"``; ``decompose`` decomposes the operators that
    ``assay decompositions`` lists. Raises :class:`assay.TraceError` for what a graph cannot
    represent.
    """
    if isinstance(program, str):
        found = _C.trace_text(program, list(inputs), partitioner, decompose)
    else:
        found = _C.trace_function(_checked(program), list(inputs), partitioner, decompose)
    return Trace(found.captured, found.joint, found.forward, found.backward, found.saved_bytes)


class Compiled(_C.FastCall):
    """A compiled function. Get one from :func:`compile`.

    Call it with tensors and numbers, and with lists, tuples and dicts of them.
    """

    def __init__(self, program: Any, make: Callable[[Any], _C.CompiledFunction]) -> None:
        self._make = make
        self._handles: dict[Any, _C.CompiledFunction] = {}
        self._state = _ModuleState(program) if isinstance(program, torch.nn.Module) else None

    def call_slowly(self, *args: Any, **kwargs: Any) -> Any:
        """The slow path, for calls that :class:`assay._C.FastCall` does not handle."""
        structure = None
        if kwargs or any(isinstance(arg, _CONTAINERS) for arg in args):
            args, structure = _pytree.tree_flatten((args, kwargs))
        key = (structure, self._state.key() if self._state is not None else None)
        handle = self._handles.get(key)
        if handle is None:
            handle = self._handles[key] = self._make(structure)
            if key == (None, None):
                self.set_fast(handle)
        return handle(*args)

    @property
    def graphs(self) -> list[str]:
        """The captured graph of each compilation so far; empty for what runs eagerly."""
        return [graph for handle in self._handles.values() for graph in handle.graphs]


def compile(
    program: Callable[..., Any] | str,
    *,
    backend: str | Callable[..., Any] = _C.DEFAULT_BACKEND,
    fallback: bool = False,
    cache_size_limit: int | None = None,
    options: dict[str, bool | int | float | str] | None = None,
) -> Compiled:
    """Compile a function, module or graph's text, at its first call and when its guards fail.

    ``backend`` is a name, or a callable that gets a ``torch.fx.GraphModule`` and example inputs
    and returns a callable (:func:`assay.register_backend`).
    Operator calls are captured; numbers and control flow are those of the first call with such
    inputs. With ``fallback``, calls that cannot be traced run eagerly, with a warning.
    After ``cache_size_limit`` graphs (by default ``assay.config.cache_size_limit``, and
    ``accumulated_cache_size_limit`` for other sizes of tensors) further calls
    run eagerly. ``options`` are the backend's; ``assay backends --json`` lists them.
    """
    _C.check_backend(backend)
    backend_options = dict(options or {})

    def make(structure: Any) -> _C.CompiledFunction:
        if isinstance(program, str):
            return _C.CompiledFunction(
                program, backend, backend_options, fallback, cache_size_limit
            )
        plain, checked = _function(program, structure), _checked(program, structure)
        name = getattr(program, "__name__", type(program).__name__)
        return _C.CompiledFunction(
            plain, checked, backend, backend_options, name, fallback, cache_size_limit
        )

    return Compiled(program, make)


def recorded(
    program: Callable[..., Any],
    backend: str | Callable[..., Any],
    options: dict[str, bool | int | float | str],
    name: str,
) -> _C.CompiledFunction:
    """A function of tensors and numbers alone; calls that cannot be traced run eagerly."""
    plain, checked = _function(program), _checked(program)
    return _C.CompiledFunction(plain, checked, backend, options, name, True, None)


def partition(joint: str, forward_outputs: int, *, partitioner: str = "min_cut") -> dict[str, Any]:
    """Split a joint graph's text: ``forward``, ``backward``, ``saved``, ``saved_bytes``."""
    return _C.partition_text(joint, forward_outputs, partitioner)


_CONTAINERS = (list, tuple, dict)


class _ModuleState:
    """The state of a module that its graphs specialize on: train or eval, and its tensors."""

    def __init__(self, module: torch.nn.Module) -> None:
        self._module = module
        self._known: list[tuple[list[bool], list[Any]]] = []  # holds the tensors: ids are reused
        self._enter()

    def key(self) -> int:
        """A number for the state the module is in now."""
        if not self._is_unchanged():
            self._enter()
        return self._current

    def _is_unchanged(self) -> bool:
        return all(module.training == training for module, training in self._training) and all(
            slots.get(name) is tensor for slots, name, tensor in self._slots
        )

    def _enter(self) -> None:
        self._training = [(module, module.training) for module in self._module.modules()]
        self._slots = [
            (slots, name, tensor)
            for module, _ in self._training
            for slots in (module._parameters, module._buffers)
            for name, tensor in slots.items()
        ]
        state = [training for _, training in self._training], [slot[2] for slot in self._slots]
        for number, known in enumerate(self._known):
            if state[0] == known[0] and _same_objects(state[1], known[1]):
                self._current = number
                return
        self._known.append(state)
        self._current = len(self._known) - 1


def _same_objects(left: list[Any], right: list[Any]) -> bool:
    return len(left) == len(right) and all(a is b for a, b in zip(left, right, strict=True))


def _function(program: Callable[..., Any], structure: Any = None) -> Callable[..., Any]:
    """The program as a function of a flat list of arguments."""

    def call(*leaves: Any) -> Any:
        if structure is None:
            return program(*leaves)
        args, kwargs = _pytree.tree_unflatten(list(leaves), structure)
        return program(*args, **kwargs)

    return call


def _checked(program: Callable[..., Any], structure: Any = None) -> Callable[..., Any]:
    """The same, rejecting effects that no operator shows."""
    call = _function(program, structure)

    def checked(*leaves: Any) -> Any:
        with _RejectHiddenEffects():
            return call(*leaves)

    return checked


class _RejectHiddenEffects(TorchFunctionMode):
    """Raises where a program does something to a tensor that a graph cannot represent."""

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
            raise TraceError(
                f"the program {why} ({name}), which a graph cannot represent\n"
                "  hint: do this part outside of the compiled function"
            )
        return func(*args, **(kwargs or {}))


_READS = "reads the values of a tensor"
_HOOKS = "registers a hook on a tensor"
_HIDDEN_EFFECTS: dict[Any, str] = {
    torch.Tensor.tolist: _READS,
    torch.Tensor.numpy: _READS,
    torch.Tensor.__array__: _READS,
    torch.Tensor.__dlpack__: _READS,
    torch.Tensor.data_ptr: _READS,
    torch.Tensor.register_hook: _HOOKS,
    torch.Tensor.register_post_accumulate_grad_hook: _HOOKS,
    torch.Tensor.retain_grad: "retains the gradient of an intermediate",
    torch.Tensor.requires_grad_: "calls requires_grad_()",
    torch.Tensor.requires_grad.__set__: "sets requires_grad",
    torch.Tensor.data.__set__: "replaces the data of a tensor",
    torch.Tensor.grad.__set__: "sets the gradient of a tensor",
    torch.Tensor.backward: "calls backward()",
}
