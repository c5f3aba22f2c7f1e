"""Stock's bisecting switches: only so many applications of one part of inductor.

PyTorch asks ``CompilerBisector.disable_subsystem`` before each pass and each lowering; we answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_last: list[str] = []


def limit(subsystem: str, applications: int, backend: str = "inductor") -> None:
    """From now on in this process only the first ``applications`` of that subsystem happen."""
    from torch._inductor.compiler_bisector import CompilerBisector

    count = 0

    def disable_subsystem(
        asked_backend: str, asked: str, debug_info: Callable[[], str] | None = None
    ) -> bool:
        nonlocal count
        if (asked_backend, asked) != (backend, subsystem):
            return False
        count += 1
        if count <= applications:
            _last[:] = [debug_info() if debug_info is not None else ""]
        return count > applications

    switch: Any = CompilerBisector
    switch.disable_subsystem = staticmethod(disable_subsystem)
    switch.bisection_enabled = True  # no graph comes from a cache


def last() -> str:
    """What the last application was that happened."""
    return _last[0] if _last else ""
