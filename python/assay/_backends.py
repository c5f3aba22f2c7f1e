"""Backends written in Python: any callable ``backend(gm, example_inputs)``.

>>> @assay.register_backend
... def my_backend(gm, example_inputs):
...     gm.graph.print_tabular()
...     return gm.forward
>>> assay.aot.compile(model, backend="my_backend")      # or backend=my_backend
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

from assay import _C

__all__ = ["backend_name", "register_backend", "registered"]

_registered: dict[str, Callable[..., Any]] = {}

_Backend = TypeVar("_Backend", bound=Callable[..., Any])


@overload
def register_backend(
    compiler_fn: _Backend, name: str | None = ..., tags: Sequence[str] = ...
) -> _Backend: ...
@overload
def register_backend(
    compiler_fn: None = ..., name: str | None = ..., tags: Sequence[str] = ...
) -> Callable[[_Backend], _Backend]: ...


def register_backend(
    compiler_fn: Any = None, name: str | None = None, tags: Sequence[str] = ()
) -> Any:
    """Register a function as a backend, by its own name or the one given; also a decorator.

    The function gets a ``torch.fx.GraphModule`` and a list of example inputs, and returns a
    callable that takes such inputs and returns a tuple of results.
    """
    if compiler_fn is None:
        return functools.partial(register_backend, name=name, tags=tags)
    chosen = name or backend_name(compiler_fn)
    _C.register_backend(compiler_fn, chosen, list(tags))
    _registered[chosen] = compiler_fn
    return compiler_fn


def registered(name: str) -> Callable[..., Any] | None:
    """The function that was registered under a name; None for backends that are not Python's."""
    return _registered.get(name)


def backend_name(backend: Any) -> str:
    """What messages call a backend: its name, for a partial its function's, else its class's."""
    while isinstance(backend, functools.partial):
        backend = backend.func
    for attribute in ("compiler_name", "__name__"):
        name = getattr(backend, attribute, None)
        if isinstance(name, str):
            return name
    return type(backend).__name__
