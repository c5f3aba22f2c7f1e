"""``assay.set_stance``: what compiled functions do from now on, or for a while."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from assay import _C

__all__ = ["set_stance"]

_current = "default"


def _set(stance: str) -> str:
    global _current
    _C.capture_set_stance(stance)
    before, _current = _current, stance
    return before


class set_stance:
    """Call it, use it in a ``with`` statement, or decorate a function with it.

    >>> with assay.set_stance("force_eager"):
    ...     compiled(x)  # as if it were not compiled

    ``default`` compiles what is called. ``force_eager`` runs everything eagerly.
    ``eager_on_recompile`` replays what fits and compiles nothing new; ``fail_on_recompile`` raises
    there. ``eager_then_compile`` and ``aot_eager_then_compile`` are the default here: the first
    call of a function is always eager's.
    """

    def __init__(self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False) -> None:
        if skip_guard_eval_unsafe:
            raise ValueError("Assay always checks guards: skip_guard_eval_unsafe is not supported")
        self._stance = stance
        self._before = _set(stance)

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        _set(self._before)  # it is for the calls of the function

        @functools.wraps(fn)
        def with_stance(*args: Any, **kwargs: Any) -> Any:
            with set_stance(self._stance):
                return fn(*args, **kwargs)

        return with_stance

    def __enter__(self) -> None:
        _set(self._stance)

    def __exit__(self, *exception: Any) -> None:
        _set(self._before)
