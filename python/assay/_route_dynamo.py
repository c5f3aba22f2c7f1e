"""What a routed script finds in ``torch._dynamo``'s counters, callbacks and exceptions.

Assay's exceptions become PyTorch's too, so that ``except torch._dynamo.exc.Unsupported`` catches
both, and what capture records is counted where PyTorch counts it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import assay
from assay import _C

__all__ = ["join_exceptions", "on_guard_failure", "watch_recordings"]


class GuardFail(NamedTuple):
    """What a ``guard_fail_fn`` is given."""

    reason: str
    orig_code: Any


_guard_fail_functions: list[tuple[str, Any, Callable[[GuardFail], None]]] = []


def on_guard_failure(function: Any, guard_fail_fn: Callable[[GuardFail], None]) -> None:
    """``torch._dynamo.optimize(guard_fail_fn=...)``: told why ``function`` is compiled again."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    name = getattr(code, "co_name", "forward")
    _guard_fail_functions.append((name, code, guard_fail_fn))


def _recorded(
    function: str, file: str, line: int, calls: int | None, reason: str | None, recompile: str
) -> None:
    counters = sys.modules["torch._dynamo.utils"].counters
    if calls is not None:
        counters["frames"]["total"] += 1
        counters["frames"]["ok"] += 1
        counters["stats"]["calls_captured"] += calls
        counters["stats"]["unique_graphs"] += 1
    if reason is not None:
        counters["graph_break"][reason] += 1
    callbacks = sys.modules.get("torch._dynamo.callback")
    if callbacks is not None:
        handler = callbacks.callback_handler
        with handler.install_callbacks(callbacks.CallbackTrigger.DYNAMO, f"{file}:{line}"):
            pass


def _may_recompile(function: str, reason: str, hits_limit: int, fullgraph: int) -> None:
    for name, code, told in _guard_fail_functions:
        if name == function:
            told(GuardFail(reason, code))
    config = sys.modules["torch._dynamo"].config
    exceptions = sys.modules["torch._dynamo.exc"]
    if config.error_on_recompile:
        raise exceptions.RecompileError(
            f"Recompiling function {function}\n    triggered by: {reason}"
        )
    if hits_limit and (fullgraph or config.fail_on_recompile_limit_hit):
        raise exceptions.FailOnRecompileLimitHit(
            f"recompile_limit reached: {function}, the last reason is {reason}"
        )


def watch_recordings() -> None:
    """From now on what is recorded is counted in ``torch._dynamo.utils.counters``."""
    _C.capture_set_listener(_recorded)
    _C.capture_set_recompile_check(_may_recompile)


def join_exceptions(module: ModuleType) -> None:
    """Assay's exceptions become PyTorch's of the same name, too."""
    _join(assay.Unsupported, module.Unsupported, _init_unsupported)
    _join(assay.BackendCompilerFailed, module.BackendCompilerFailed, _init_backend_failed)


def _join(ours: Any, stock: Any, init: Any) -> None:
    if not issubclass(ours, stock):
        ours.__bases__ = (*(base for base in ours.__bases__ if not issubclass(stock, base)), stock)
        ours.__init__ = init


def _init_unsupported(self: Any, *args: Any, **named: Any) -> None:
    Exception.__init__(self, *args)
    self.msg = str(args[0]) if args else ""
    self.real_stack = []
    self.category = "graph_break"
    self.gb_type = None


def _init_backend_failed(self: Any, *args: Any, **named: Any) -> None:
    Exception.__init__(self, *args)
