"""``assay.compile`` and its relatives: capture ordinary Python functions and modules."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import sysconfig
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from assay import _C
from assay._observer import Observer
from assay.errors import UserError


class Unsupported(UserError):
    """``fullgraph=True``, and something in the function cannot be part of the graph."""


_C.capture_set_unsupported(Unsupported)


_TORCH = f"{Path(torch.__file__).parent}{os.sep}"


def _skipped_files() -> list[str]:
    # Functions of these never become graphs of their own. What user code calls is followed into
    # them all the same. The standard library's folder holds site-packages, where users' libraries
    # live: it is listed entry by entry.
    standard = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib")}
    entries = [
        str(entry)
        for folder in sorted({*standard, str(Path(functools.__file__).parent)})
        for entry in sorted(Path(folder).iterdir())
        if entry.name != "site-packages"
    ]
    # In the place of torch's own.
    ours = [str(Path(__file__).parent / name) for name in ("_higher_order.py", "_compiling.py")]
    return [_TORCH, *ours, *entries]


_C.capture_skip_files(_skipped_files())


def default_backend() -> str:
    """The backend of a plain ``assay.compile(fn)``."""
    return _C.DEFAULT_BACKEND


def _call(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    return function(*args, **kwargs)


class CompiledModule(torch.nn.Module):
    """A module whose calls are compiled. It shares all state with the module it was made from.

    It is also an instance of that module's class, made for each one by :func:`compile`.
    """

    _orig_mod: torch.nn.Module
    _compiled_call: Any

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return type(self)._compiled_call(*args, **kwargs)

    def __reduce_ex__(self, protocol: Any) -> Any:
        settings = type(self)._compiled_call._assay_settings
        return functools.partial(compile, **settings), (self._orig_mod,)

    def __deepcopy__(self, memo: dict[int, Any]) -> torch.nn.Module:
        import copy

        settings = type(self)._compiled_call._assay_settings
        return compile(copy.deepcopy(self._orig_mod, memo), **settings)


def _compile_module(
    module: torch.nn.Module, capture: Callable[[Callable[..., Any]], Any], settings: dict[str, Any]
) -> torch.nn.Module:
    kind = type(module)
    compiled_call = capture(functools.partial(_call, module))
    compiled_call._assay_settings = settings
    members = {
        "_orig_mod": module,
        "_compiled_call": staticmethod(compiled_call),
        "__module__": kind.__module__,
        "__doc__": kind.__doc__,
    }
    metaclass: Any = type(kind)
    wrapper = metaclass("Compiled" + kind.__name__, (CompiledModule, kind), members)
    made: torch.nn.Module = wrapper.__new__(wrapper)
    made.__dict__ = module.__dict__  # parameters, hooks, flags: one state under two names
    return made


def compile(
    model: Callable[..., Any] | torch.nn.Module | None = None,
    *,
    backend: Any = None,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
    recompile_limit: int | None = None,
) -> Any:
    """Compile a function or a module; the signature is that of ``torch.compile``.

    The first call runs the function as Python does, and records the tensor operations between
    graph breaks. Later calls for which the guards hold run the compiled graphs instead.

    >>> @assay.compile
    ... def f(x):
    ...     return torch.relu(x) + 1

    ``dynamic=True`` captures for any size of the arguments' tensors, ``False`` for each size
    anew. By default the second size of a tensor is captured for all. ``mode`` is accepted.
    ``recompile_limit`` takes the place of ``assay.config.cache_size_limit`` for this function.
    """
    settings = {
        "backend": backend,
        "fullgraph": fullgraph,
        "dynamic": dynamic,
        "mode": mode,
        "options": options,
        "disable": disable,
        "recompile_limit": recompile_limit,
    }
    if model is None:
        return functools.partial(compile, **settings)
    if not callable(model):
        raise TypeError(f"assay.compile expects a function or a module, not {model!r}")
    if disable:
        return model
    observer = backend if isinstance(backend, Observer) else None
    chosen = backend if observer is None else observer.backend
    if chosen is None:
        chosen = default_backend()
    limit = recompile_limit
    if observer is not None and limit is None:
        limit = observer.cache_limit

    def capture(function: Callable[..., Any]) -> Any:
        captured = _C.capture_function(function, chosen, options or {}, fullgraph, limit, dynamic)
        if observer is not None:
            observer.watch(captured)
        return captured

    if isinstance(model, CompiledModule):
        model = model._orig_mod
    if isinstance(model, torch.nn.Module):
        return _compile_module(model, capture, settings)
    if isinstance(model, _C.CapturedFunction):
        model = model._function
    if inspect.isclass(model):
        raise TypeError(
            f"assay.compile cannot compile the class {model.__name__}; compile an instance, or "
            "the function that makes one"
        )
    is_python = inspect.isfunction(model) or inspect.ismethod(model)
    # Torch's own functions are followed where they are called.
    code = getattr(model, "__code__", None)
    is_root = is_python and not (code and code.co_filename.startswith(_TORCH))
    target = model if is_root else functools.partial(_call, model)
    compiled = capture(target)
    for name in functools.WRAPPER_ASSIGNMENTS:
        with contextlib.suppress(AttributeError):
            setattr(compiled, name, getattr(model, name))
    compiled.__wrapped__ = model
    compiled._assay_settings = settings
    return compiled


compile._assay_compiles = True  # type: ignore[attr-defined]


def disable(
    fn: Any = None, recursive: bool = True, *, reason: str | None = None, wrapping: bool = True
) -> Any:
    """Run a function eagerly wherever it is called, and with ``recursive`` all that it calls.

    ``reason`` is shown where the call breaks a graph. With ``wrapping=False`` the result does not
    take the function's name and documentation.
    """
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason, wrapping=wrapping)
    if inspect.isclass(fn):  # what its instances do when they are called
        method = "_call_impl" if issubclass(fn, torch.nn.Module) else "__call__"
        setattr(fn, method, disable(getattr(fn, method), recursive, reason=reason))
        return fn
    if isinstance(fn, torch.nn.Module):
        fn.forward = disable(fn.forward, recursive, reason=reason)
        return fn

    def run_eagerly(*args: Any, **kwargs: Any) -> Any:
        if recursive:
            return _C.capture_run_eagerly(fn, *args, **kwargs)
        return fn(*args, **kwargs)

    if wrapping:
        run_eagerly = functools.wraps(fn)(run_eagerly)
    run_eagerly._assay_disable = reason or True  # type: ignore[attr-defined]
    return run_eagerly


def graph_break(msg: str = "") -> None:
    """End the graph that is being captured here."""


graph_break._assay_disable = True  # type: ignore[attr-defined]


def reset() -> None:
    """Drop everything that was compiled."""
    _C.capture_reset()


def allow_in_graph(fn: Any) -> Any:
    """Say that a function only computes tensors from its arguments, whatever is in it.

    Where the graph runs as it was captured, a call of it is one call of the graph: nobody looks
    inside. What it reads is not guarded. Backends that work ahead of time need the operators in it:
    for these the function is followed like any other, and breaks the graph where it must.
    """
    if isinstance(fn, list | tuple):
        return [allow_in_graph(function) for function in fn]
    if not callable(fn):
        raise TypeError(f"assay.allow_in_graph expects a function, not {fn!r}")
    if inspect.isfunction(fn):
        fn._assay_in_graph = True  # type: ignore[attr-defined]
    return fn


def assume_constant_result(fn: Any) -> Any:
    """Say that a function returns the same for the same arguments: it is called while capturing.

    The arguments are guarded; what the function reads is not.
    """
    fn._assay_constant_result = True
    return fn


def mark_dynamic(
    t: torch.Tensor,
    index: int | Sequence[int],
    *,
    hint_override: int | None = None,
    min: int | None = None,
    max: int | None = None,
    specialize_on: Sequence[Any] | None = None,
) -> None:
    """Say that a dimension (or several) of ``t`` will have other sizes in later calls.

    What is captured with ``t`` among its inputs fits other sizes from the first call on. Without
    that, the second size that a tensor has is captured once more, for all of them. ``min``, ``max``
    and the hints are accepted, and not needed.
    """
    _C.capture_note_marked_tensors()
    indices = {index} if isinstance(index, int) else set(index)
    marked = {i + t.dim() if i < 0 else i for i in indices}
    t._dynamo_dynamic_indices = getattr(t, "_dynamo_dynamic_indices", set()) | marked
