"""Routes ``torch.compile`` and its relatives to Assay, for ``python -m assay script.py``.

What is routed: the functions of :mod:`torch`, :mod:`torch.compiler`, :mod:`torch._dynamo` and
``torch.nn.Module`` that compile, explain or control compiling. ``torch._dynamo`` is imported only
if the script imports it.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch

import assay
from assay._after_import import after_import
from assay._route_config import RoutedConfig

__all__ = ["route"]


def route() -> None:
    """From now on ``torch.compile`` in this process is Assay's."""
    torch.compile = compile
    torch.nn.Module.compile = _compile_in_place
    torch._logging.set_logs = set_logs
    _replace(torch.compiler, _COMPILER)
    after_import("torch._dynamo", _route_dynamo)
    after_import("torch._dynamo.utils", _route_dynamo_utils)
    after_import("torch._dynamo.exc", _route_exceptions)


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """``torch.compile``, by Assay."""
    if backend in (None, "inductor"):
        options = None  # they are Inductor's
    return assay.compile(
        model,
        backend=backend,
        fullgraph=fullgraph,
        dynamic=dynamic,
        mode=mode,
        options=options,
        disable=disable,
    )


def _compile_in_place(self: torch.nn.Module, *args: Any, **kwargs: Any) -> None:
    # As a partial, so that what is captured begins outside of torch's own files.
    call = functools.partial(self._call_impl)
    self._compiled_call_impl = compile(call, *args, **kwargs)


def optimize(
    backend: Any = None, *, nopython: bool = False, disable: bool = False, **settings: Any
) -> Callable[[Any], Any]:
    """``torch._dynamo.optimize(backend)(fn)``; further settings are accepted and ignored."""
    return functools.partial(compile, backend=backend, fullgraph=nopython, disable=disable)


def run(fn: Any = None) -> Any:
    """``torch._dynamo.run``: a compiled function runs as it is."""
    return (lambda function: function) if fn is None else fn


def list_backends(exclude_tags: Any = ()) -> list[str]:
    """Assay's backends."""
    return assay.list_backends()


def compile_times(repr: str = "str", aggregate: bool = False) -> str:
    """How long each phase took so far, as text."""
    return assay.compile_times()


def set_logs(**settings: Any) -> None:
    """``torch._logging.set_logs(dynamo=logging.INFO, graph_code=True)``."""
    names = []
    for name, level in settings.items():
        if name != "modules" and level not in (None, False):
            names.append(_log_name(name, level))
    assay.set_logs(",".join(names))


def _log_name(name: str, level: int | bool) -> str:
    if level is True or logging.DEBUG < level <= logging.INFO:
        return name
    return ("+" if level <= logging.DEBUG else "-") + name


def _ignore(*args: Any, **kwargs: Any) -> None:
    """Accepted; has no effect here."""


def _same(fn: Any) -> Any:
    """Accepted; the function is followed like any other."""
    return fn


_COMPILER: dict[str, Any] = {
    "allow_in_graph": assay.allow_in_graph,
    "assume_constant_result": _same,
    "compile": compile,
    "cudagraph_mark_step_begin": _ignore,
    "disable": assay.disable,
    "is_compiling": assay.is_compiling,
    "is_dynamo_compiling": assay.is_compiling,
    "list_backends": list_backends,
    "reset": assay.reset,
}

_DYNAMO: dict[str, Any] = {
    "allow_in_graph": assay.allow_in_graph,
    "assume_constant_result": _same,
    "disable": assay.disable,
    "disallow_in_graph": assay.disable,
    "explain": assay.explain,
    "graph_break": assay.graph_break,
    "is_compiling": assay.is_compiling,
    "list_backends": list_backends,
    "mark_dynamic": assay.mark_dynamic,
    "mark_static": _ignore,
    "maybe_mark_dynamic": assay.mark_dynamic,
    "optimize": optimize,
    "optimize_assert": functools.partial(optimize, nopython=True),
    "register_backend": assay.register_backend,
    "replay": assay.replay,
    "reset": assay.reset,
    "run": run,
}


def _replace(module: ModuleType, functions: dict[str, Any]) -> None:
    for name, function in functions.items():
        setattr(module, name, function)


def _route_dynamo(module: ModuleType) -> None:
    # At exit PyTorch lists the frames that it traced itself: none.
    logging.getLogger("torch._dynamo").setLevel(logging.WARNING)
    _replace(module, _DYNAMO)
    module.config = RoutedConfig(module.config)  # type: ignore[attr-defined]


def _route_dynamo_utils(module: ModuleType) -> None:
    _replace(module, {"CompileProfiler": assay.CompileProfiler, "compile_times": compile_times})


def _route_exceptions(module: ModuleType) -> None:
    caught = {name: getattr(assay, name) for name in ("BackendCompilerFailed", "Unsupported")}
    _replace(module, caught)
