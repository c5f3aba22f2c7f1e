"""Watching inductor's own compiler, which AOTAutograd calls with each half of a graph.

The backward half may be compiled much later, when it is first needed; it belongs to the backend
that compiled its forward half.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch._functorch.config

__all__ = ["watching"]

_current = threading.local()
_by_graph: dict[Any, Any] = {}  # who watches the graph with that number


@contextlib.contextmanager
def watching(watched: Any, backend: Any) -> Iterator[None]:
    """What inductor compiles within is watched."""
    from assay.diagnose.captured import backend_name

    if backend_name(backend) != "inductor":
        warnings.warn(
            f"'{watched.__name__}' has no compiler after AOTAutograd that can be watched; "
            "watch it after dynamo",
            stacklevel=3,
        )
    _install()
    before = getattr(_current, "watched", None)
    _current.watched = watched
    try:
        # A graph from this cache would not be seen by inductor's own compiler.
        with torch._functorch.config.patch(enable_autograd_cache=False):
            yield
    finally:
        _current.watched = before


@functools.cache
def _install() -> None:
    from torch._inductor import compile_fx

    original = compile_fx._compile_fx_inner

    @functools.wraps(original)
    def compile_inner(gm: Any, example_inputs: Any, **options: Any) -> Any:
        number = options.get("graph_id")
        watched = getattr(_current, "watched", None) or _by_graph.get(number)
        if watched is None:
            return original(gm, example_inputs, **options)
        _by_graph[number] = watched
        return _compile(watched, functools.partial(original, **options), gm, example_inputs)

    compile_fx._compile_fx_inner = compile_inner


def _compile(watched: Any, compiler: Callable[..., Any], gm: Any, inputs: Any) -> Any:
    from assay._watch import watched_compile

    def compile(gm: torch.fx.GraphModule, inputs: Any) -> Callable[..., Any]:
        inner = compiler(gm, inputs)

        def call(*arguments: Any) -> Any:
            return inner(list(arguments))

        return call

    call = watched_compile(watched, compile, "inductor", gm, inputs, "after_aot")

    def boxed(arguments: list[Any]) -> Any:
        values = tuple(arguments)
        arguments.clear()
        with torch.no_grad():
            return call(*values)

    boxed._boxed_call = True  # type: ignore[attr-defined]
    return boxed
