"""Backends that only watch: what capture recorded of the functions compiled with them."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch.fx

from assay import _C

__all__ = ["GraphCompileReason", "Observer", "Record"]

_Frame = tuple[str, int, str, str]


@dataclass
class GraphCompileReason:
    """Why a graph ends where it does; ``gm.compile_subgraph_reason`` in a custom backend."""

    reason: str
    user_stack: list[traceback.FrameSummary]
    graph_break: bool = True

    @classmethod
    def of(cls, reason: str | None, frames: Iterable[_Frame]) -> GraphCompileReason:
        """The reason of a break, or that of a function's end, for which PyTorch has a word."""
        stack = [
            traceback.FrameSummary(file, line, function, lookup_line=False, line=text)
            for file, line, function, text in frames
        ]
        return cls(reason or "return_value", stack, reason is not None)


@dataclass
class Record:
    """One recording: of a function, or of the part of one between two breaks."""

    function: str
    file: str
    line: int
    graph: torch.fx.GraphModule | None
    """None if no operator was recorded."""
    reason: GraphCompileReason
    guards: list[str] = field(repr=False)
    recompile: str
    """The guard that failed for what was compiled before; empty for the first recording."""
    eager_reason: str = ""
    """Why the graph runs with backend ``eager``, not with the one asked for; empty if not."""

    @property
    def ops(self) -> list[Any]:
        """The targets of all calls in the graph."""
        if self.graph is None:
            return []
        return [node.target for node in self.graph.graph.nodes if node.op.startswith("call_")]


def _record(row: dict[str, Any]) -> Record:
    graph = row["graph"]
    return Record(
        row["function"],
        row["file"],
        row["line"],
        None if graph is None else _C.module_from_graph(graph, flat_output=True),
        GraphCompileReason.of(row["break"], row["stack"]),
        row["guards"],
        row["recompile"],
        row["eager_reason"],
    )


class Observer:
    """Passed as ``backend=``, compiles with another backend and remembers what was recorded."""

    cache_limit: int | None = None
    """How often one place may be compiled; None: as often as the settings allow."""

    def __init__(self, backend: str | Callable[..., Any]) -> None:
        self.backend = backend
        self._watched: list[Any] = []

    def watch(self, captured: Any) -> None:
        """Called by :func:`assay.compile` with each function that is compiled with this."""
        self._watched.append(captured)

    def records(self) -> list[Record]:
        """Everything recorded so far, in order for each function."""
        return [_record(row) for watched in self._watched for row in _C.capture_records(watched)]
