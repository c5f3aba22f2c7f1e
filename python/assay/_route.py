"""Routes ``torch.compile`` and its relatives to Assay, for ``python -m assay script.py``.

What is routed: the functions of :mod:`torch`, :mod:`torch.compiler`, :mod:`torch._dynamo` and
``torch.nn.Module`` that compile, explain or control compiling. ``torch._dynamo`` is imported only
if the script imports it.
"""

from __future__ import annotations

import functools
import logging
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import torch

import assay
from assay import _higher_order
from assay._after_import import after_import
from assay._compile import CompiledModule, assume_constant_result
from assay._route_config import RoutedConfig
from assay._route_dynamo import join_exceptions, on_guard_failure, watch_recordings
from assay._route_module import OptimizedModule

__all__ = ["route"]


def route() -> None:
    """From now on ``torch.compile`` in this process is Assay's."""
    torch.compile = compile
    torch.nn.Module.compile = _compile_in_place
    torch._logging.set_logs = set_logs
    _replace(torch.compiler, _COMPILER)
    _route_control_flow()
    after_import("torch._dynamo", _route_dynamo)
    after_import("torch._dynamo.utils", _route_dynamo_utils)
    after_import("torch._dynamo.exc", join_exceptions)


def _route_control_flow() -> None:
    # In eager, PyTorch's own compile themselves with torch.compile: they want stock's.
    for name in ("cond", "while_loop", "map", "scan"):
        ours = getattr(_higher_order, name)
        stock = sys.modules[f"torch._higher_order_ops.{name}"]
        for module in (stock, torch._higher_order_ops, torch):
            if hasattr(module, name):
                setattr(module, name, ours)
    regions = sys.modules["torch._higher_order_ops.invoke_subgraph"]
    regions.mark_compile_region = _same_options  # type: ignore[attr-defined]


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    name: str | None = None,
    disable: bool = False,
    recompile_limit: int | None = None,
    isolate_recompiles: bool = False,
    shapes_spec: Any = None,
) -> Any:
    """``torch.compile``, by Assay. Segments of a function are its own in any case, and sizes are
    compiled as they come."""
    if model is not None and _is_called_by_torch():
        return model
    if backend is None:
        backend = _default_backend
    if dynamic is None and not _assumes_static():
        dynamic = True
    if isinstance(backend, str) and backend not in assay.list_backends():
        backend = _registered_with_dynamo(backend)
    if backend in (None, "inductor"):
        options = None  # they are Inductor's
    if isinstance(model, OptimizedModule):
        model = model._orig_mod
    compiled: Any = assay.compile(
        model,
        backend=backend,
        fullgraph=fullgraph,
        dynamic=dynamic,
        mode=mode,
        options=options,
        disable=disable,
        recompile_limit=recompile_limit,
    )
    if isinstance(compiled, CompiledModule):
        return OptimizedModule(compiled)
    if type(compiled).__name__ == "CapturedFunction":
        compiled._torchdynamo_orig_callable = compiled.__wrapped__
        compiled._torchdynamo_wrapper_id = id(compiled)
    return compiled


compile._assay_compiles = True  # type: ignore[attr-defined]


def _is_called_by_torch() -> bool:
    # Where flex_attention is called in eager, torch compiles a step of it by stock's compiler, and
    # wants all of it to be one graph. It computes the same without.
    caller = sys._getframe(2).f_globals.get("__name__", "")
    return caller.startswith(("torch.nn.attention.", "torch._higher_order_ops."))


def _assumes_static() -> bool:
    dynamo = sys.modules.get("torch._dynamo")
    return dynamo is None or dynamo.config.assume_static_by_default


def register_backend(compiler_fn: Any = None, name: str | None = None, tags: Any = ()) -> Any:
    """A script's backends become Assay's; stock's own, which it registers late, stay stock's."""
    if compiler_fn is None:
        return functools.partial(register_backend, name=name, tags=tags)
    if getattr(compiler_fn, "__module__", "").startswith("torch."):
        from torch._dynamo.backends import registry

        return registry.register_backend(compiler_fn, name, tags)
    return assay.register_backend(compiler_fn, name, tags)


def _registered_with_dynamo(name: str) -> Any:
    # torch._dynamo.backends.registry.register_backend: a function of (graph module, inputs).
    from torch._dynamo.backends import registry

    return registry.lookup_backend(name) if name in registry.list_backends(()) else name


_default_backend: Any = None


def set_default_backend(backend: Any) -> None:
    """``torch.compiler.set_default_backend``."""
    global _default_backend
    _default_backend = backend


def get_default_backend() -> Any:
    """``torch.compiler.get_default_backend``: by default Assay's own kernels, as "inductor"."""
    return "inductor" if _default_backend is None else _default_backend


def set_stance(
    stance: str = "default", *, skip_guard_eval_unsafe: bool = False, force_backend: Any = None
) -> assay.set_stance:
    """``torch.compiler.set_stance``. Guards are always checked here."""
    if force_backend is not None:
        raise ValueError("python -m assay does not support set_stance(force_backend=...)")
    return assay.set_stance(stance)


def _compile_in_place(self: torch.nn.Module, *args: Any, **kwargs: Any) -> None:
    # As a partial, so that what is captured begins outside of torch's own files.
    call = functools.partial(self._call_impl)
    self._compiled_call_impl = compile(call, *args, **kwargs)


def optimize(
    backend: Any = None,
    *,
    nopython: bool = False,
    disable: bool = False,
    guard_fail_fn: Any = None,
    **settings: Any,
) -> Callable[[Any], Any]:
    """``torch._dynamo.optimize(backend)(fn)``; further settings are accepted and ignored."""

    def decorate(fn: Any) -> Any:
        if guard_fail_fn is not None:
            on_guard_failure(fn, guard_fail_fn)
        return compile(fn, backend=backend, fullgraph=nopython, disable=disable)

    return decorate


def run(fn: Any = None) -> Any:
    """``torch._dynamo.run``: a compiled function runs, and nothing more is compiled."""
    return run if fn is None else assay.set_stance("eager_on_recompile")(fn)


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


def _same(fn: Any = None) -> Any:
    """Accepted; the function is followed like any other."""
    return _same if fn is None else fn


def nonstrict_trace(traceable_fn: Any) -> Any:
    """``torch._dynamo.nonstrict_trace``: one call of the graph, as allow_in_graph."""
    return assay.allow_in_graph(traceable_fn)


def mark_static(t: torch.Tensor, index: int | Sequence[int] | None = None) -> None:
    """``torch._dynamo.mark_static``: these sizes of ``t`` are not left open."""
    if not isinstance(t, torch.Tensor):
        return
    assay._C.capture_note_marked_tensors()
    indices = range(t.dim()) if index is None else (index,) if isinstance(index, int) else index
    marked: set[int] = getattr(t, "_dynamo_static_indices", set())
    t._dynamo_static_indices = marked | {i + t.dim() if i < 0 else i for i in indices}


def mark_unbacked(t: torch.Tensor, index: int | Sequence[int], **options: Any) -> None:
    """``torch._dynamo.decorators.mark_unbacked``: as mark_dynamic; the options are ignored."""
    assay.mark_dynamic(t, index)


def _same_options(fn: Any = None, **options: Any) -> Any:
    """Accepted; the function is followed like any other."""
    return _same if fn is None else fn


def substitute_in_graph(original_fn: Any, **options: Any) -> Callable[[Any], Any]:
    """Accepted; the original is followed, or breaks the graph if it cannot be."""
    return _same


def patch_dynamo_config(arg1: Any = None, arg2: Any = None, **kwargs: Any) -> Any:
    """``torch._dynamo.config.patch``, around a part of a program."""
    import torch._dynamo

    return torch._dynamo.config.patch(arg1, arg2, **kwargs)


def _reset_code(code: Any) -> None:
    assay.reset()


_COMPILER: dict[str, Any] = {
    "allow_in_graph": assay.allow_in_graph,
    "assume_constant_result": assume_constant_result,
    "compile": compile,
    "cudagraph_mark_step_begin": _ignore,
    "disable": assay.disable,
    "get_default_backend": get_default_backend,
    "is_compiling": assay.is_compiling,
    "is_dynamo_compiling": assay.is_compiling,
    "list_backends": list_backends,
    "nested_compile_region": _same_options,
    "reset": assay.reset,
    "set_default_backend": set_default_backend,
    "set_stance": set_stance,
    "substitute_in_graph": substitute_in_graph,
}

_DYNAMO: dict[str, Any] = {
    "allow_in_graph": assay.allow_in_graph,
    "assume_constant_result": assume_constant_result,
    "disable": assay.disable,
    "disable_nested_graph_breaks": _same,
    "disallow_in_graph": assay.disable,
    "dont_skip_tracing": _same,
    "explain": assay.explain,
    "graph_break": assay.graph_break,
    "is_compiling": assay.is_compiling,
    "list_backends": list_backends,
    "mark_dynamic": assay.mark_dynamic,
    "mark_static": mark_static,
    "mark_unbacked": mark_unbacked,
    "mark_static_address": _ignore,
    "maybe_mark_dynamic": assay.mark_dynamic,
    "nonstrict_trace": nonstrict_trace,
    "optimize": optimize,
    "optimize_assert": functools.partial(optimize, nopython=True),
    "patch_dynamo_config": patch_dynamo_config,
    "register_backend": register_backend,
    "replay": assay.replay,
    "reset": assay.reset,
    "reset_code": _reset_code,
    "run": run,
    "skip_frame": assay.graph_break,
    "step_unsupported": assay.graph_break,
    "substitute_in_graph": substitute_in_graph,
}


def _replace(module: ModuleType, functions: dict[str, Any]) -> None:
    for name, function in functions.items():
        setattr(module, name, function)


def _route_dynamo(module: ModuleType) -> None:
    # At exit PyTorch lists the frames that it traced itself: none.
    logging.getLogger("torch._dynamo").setLevel(logging.WARNING)
    _replace(module, _DYNAMO)
    frames: Any = sys.modules["torch._dynamo.eval_frame"]
    frames.OptimizedModule = OptimizedModule
    module.OptimizedModule = OptimizedModule  # type: ignore[attr-defined]
    decorators: Any = sys.modules["torch._dynamo.decorators"]
    _replace(decorators, {name: _DYNAMO[name] for name in _DYNAMO if hasattr(decorators, name)})
    module.config = RoutedConfig(module.config)  # type: ignore[attr-defined]


def _route_dynamo_utils(module: ModuleType) -> None:
    _replace(module, {"CompileProfiler": assay.CompileProfiler, "compile_times": compile_times})
    watch_recordings()
