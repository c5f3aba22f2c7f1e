"""Which compiler the programs run under: ASSAY_CAPTURE_ENGINE=assay (the default), eager or stock.

`eager` returns the program itself, which shows that the harness and the programs are deterministic;
`stock` is torch.compile, which shows what stock gets wrong.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import torch

ENGINE = os.environ.get("ASSAY_CAPTURE_ENGINE", "assay")
BACKENDS = {
    "assay": ("eager", "aot_eager"),
    "eager": ("eager",),
    "stock": ("eager",),
}[ENGINE]

# Only the engine under test is imported: the others work without a build of Assay.
API: Any = importlib.import_module("assay") if ENGINE == "assay" else None


class Subject:
    """The program itself in the eager run, distinct from it as a compiled program is."""

    def __init__(self, program: Any) -> None:
        self._program = program

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._program(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._program, name)


def compile_with(backend: str) -> Callable[[Any], Any]:
    """The compiler of the engine under test."""
    if ENGINE == "assay":
        return lambda program: API.compile(program, backend=backend)
    if ENGINE == "stock":
        return lambda program: torch.compile(program, backend=backend)
    return Subject


def explain(program: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any | None:
    """What the engine says about one call; None if it has nothing to say."""
    if ENGINE == "assay":
        return API.explain(program)(*args, **kwargs)
    if ENGINE == "stock":
        return torch._dynamo.explain(program)(*args, **kwargs)
    return None


def disable(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, excepted from compilation."""
    if ENGINE == "assay":
        return cast("Callable[..., Any]", API.disable(function))
    if ENGINE == "stock":
        return cast("Callable[..., Any]", torch._dynamo.disable(function))
    return function


def graph_break() -> None:
    """Ends the graph where it is called."""
    if ENGINE == "assay":
        API.graph_break()
    elif ENGINE == "stock":
        torch._dynamo.graph_break()


def reset() -> None:
    """Forgets all that was compiled."""
    if ENGINE == "assay":
        API.reset()
    elif ENGINE == "stock":
        torch._dynamo.reset()


def paranoid() -> AbstractContextManager[Any]:
    """Within it, every replay is checked against eager."""
    return API.config.patch(paranoid=True) if ENGINE == "assay" else nullcontext()
