"""Assay: find, reproduce and reduce failures of compiled PyTorch programs.

>>> import assay
>>> repro = assay.load("repro.py")          # parsed, never executed
>>> outputs = repro.run()                   # with ATen, without Python in between
>>> print(repro.code)                       # the graph as a Python program
"""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike, fspath
from typing import Any

import torch  # noqa: F401  (loads libtorch, which the extension links)

from assay import _C, _dynamo_backend, aot, compare, config, errors, fx
from assay._backends import register_backend
from assay._compile import (
    Unsupported,
    allow_in_graph,
    compile,
    disable,
    graph_break,
    mark_dynamic,
    reset,
)
from assay._compiling import is_compiling
from assay._explain import ExplainOutput, ExplainWithBackend, explain
from assay._graph import Graph
from assay._profiler import CompileProfiler
from assay._replay import replay
from assay._stance import set_stance
from assay._watch import watch
from assay.errors import *  # noqa: F403  (its __all__ is the list of exceptions)

__version__: str = _C.version

_C.configure_from_environment()
_dynamo_backend.register()

__all__ = [
    "CompileProfiler",
    "ExplainOutput",
    "ExplainWithBackend",
    "Graph",
    "Repro",
    "Unsupported",
    "allow_in_graph",
    "aot",
    "compare",
    "compile",
    "compile_times",
    "config",
    "disable",
    "errors",
    "explain",
    "fx",
    "graph_break",
    "is_compiling",
    "list_backends",
    "load",
    "mark_dynamic",
    "parse",
    "register_backend",
    "replay",
    "reset",
    "set_logs",
    "set_stance",
    "watch",
]
__all__ += errors.__all__


class Repro:
    """A repro file: a graph, its inputs and how it is run. Get one from :func:`load`."""

    def __init__(self, handle: _C.Repro) -> None:
        self._handle = handle

    @property
    def code(self) -> str:
        """The graph as a Python program that stock PyTorch runs."""
        return self._handle.code

    @property
    def text(self) -> str:
        """The whole file as Assay writes it: graph, inputs and the call that runs it."""
        return self._handle.text

    @property
    def stage(self) -> str:
        """Where the graph was captured: ``after_dynamo``, ``after_aot`` or ``unknown``."""
        return self._handle.stage

    def __len__(self) -> int:
        return len(self._handle)

    def inputs(self, seed: int = 0, save_dir: str | None = None) -> tuple[list[Any], list[str]]:
        """The inputs, and notes about those that are not the original ones."""
        values, notes = self._handle.inputs(seed, save_dir)
        return values, notes

    def run(self, seed: int = 0, save_dir: str | None = None) -> Any:
        """Run with the inputs the file describes, as ``assay run`` does."""
        return self._handle.run(seed, save_dir)

    def run_with(self, inputs: Iterable[Any]) -> Any:
        """Run with the given inputs."""
        return self._handle.run_with(inputs)


def parse(text: str, name: str = "<text>") -> Graph:
    """Parse a graph's text form; nothing in it is executed."""
    return Graph(text, name)


def load(path: str | PathLike[str]) -> Repro:
    """Read a repro file of Assay or stock PyTorch; nothing in it is executed."""
    return Repro(_C.read_repro(fspath(path)))


def set_logs(names: str) -> None:
    """Choose what is logged, in the grammar of ``TORCH_LOGS``: ``"+dynamo,graph_code"``."""
    _C.set_logs(names)


def compile_times() -> str:
    """A table of how long each phase took so far."""
    return _C.compile_times()


def list_backends() -> list[str]:
    """The names of all backends; ``assay backends`` describes them."""
    return _C.list_backends()
