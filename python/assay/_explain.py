"""``assay.explain``: which graphs a call becomes, and why and where they end.

>>> print(assay.explain(toy_example)(a, b))
Graph Count: 3
Graph Break Count: 2
...
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from assay import _C
from assay._backends import registered
from assay._compile import CompiledModule, compile, default_backend
from assay._observer import GraphCompileReason, Observer, Record

__all__ = ["ExplainOutput", "ExplainWithBackend", "explain"]


@dataclass
class ExplainOutput:
    """What :func:`explain` found; the fields are those of PyTorch's class of this name."""

    graphs: list[torch.fx.GraphModule]
    graph_count: int
    graph_break_count: int
    break_reasons: list[GraphCompileReason]
    op_count: int
    ops_per_graph: list[list[Any]] | None = None
    out_guards: list[str] | None = None
    compile_times: str | None = None
    eager_reasons: list[str] | None = None
    """Graphs that run with backend ``eager`` instead of the one asked for, and why."""

    def __str__(self) -> str:
        lines = [
            f"Graph Count: {self.graph_count}",
            f"Graph Break Count: {self.graph_break_count}",
            f"Op Count: {self.op_count}",
            "Break Reasons:",
        ]
        for number, reason in enumerate(self.break_reasons, 1):
            lines += [f"  Break Reason {number}:", f"    Reason: {reason.reason}"]
            lines += ["    User Stack:", *_stack_lines(reason, "      ")]
        if self.eager_reasons:
            lines += ["Run by backend eager:", *(f"  {reason}" for reason in self.eager_reasons)]
        if self.ops_per_graph is not None:
            lines.append("Ops per Graph:")
            for number, ops in enumerate(self.ops_per_graph, 1):
                lines += [f"  Ops {number}:", *(f"    {op}" for op in ops)]
        if self.out_guards is not None:
            lines.append("Out Guards:")
            for number, guard in enumerate(self.out_guards, 1):
                lines += [f"  Guard {number}:", f"    {guard}"]
        if self.compile_times is not None:
            lines.append(f"Compile Times: {self.compile_times}")
        return "\n".join(lines) + "\n"


def _stack_lines(reason: GraphCompileReason, indent: str) -> list[str]:
    lines = []
    for frame in reason.user_stack:
        lines.append(f'{indent}File "{frame.filename}", line {frame.lineno}, in {frame.name}')
        if frame.line:
            lines.append(f"{indent}  {frame.line}")
    return lines


def _output(records: list[Record]) -> ExplainOutput:
    with_graph = [record for record in records if record.graph is not None]
    breaks = [record.reason for record in records if record.reason.graph_break]
    ops = [record.ops for record in with_graph]
    return ExplainOutput(
        graphs=[record.graph for record in with_graph if record.graph is not None],
        graph_count=len(with_graph),
        graph_break_count=len(breaks),
        break_reasons=breaks,
        op_count=sum(map(len, ops)),
        ops_per_graph=ops,
        out_guards=[guard for record in with_graph for guard in record.guards],
        compile_times=_C.compile_times(),
        eager_reasons=[
            f"Graph {number}: {record.function} ({record.file}:{record.line}): "
            f"{record.eager_reason}"
            for number, record in enumerate(with_graph, 1)
            if record.eager_reason
        ],
    )


def _backend_of(f: Any) -> str:
    """The backend that a compiled function has, if it is not Python's; ``eager`` for others."""
    compiled = type(f)._compiled_call if isinstance(f, CompiledModule) else f
    backend = getattr(compiled, "_assay_settings", {"backend": "eager"})["backend"]
    if backend is None:
        return default_backend()
    return backend if isinstance(backend, str) and registered(backend) is None else "eager"


def explain(f: Callable[..., Any], *extra_args: Any, **extra_kwargs: Any) -> Any:
    """Run a function once and say what was captured: ``assay.explain(fn)(*args, **kwargs)``.

    The function is captured afresh, whatever was compiled of it before. It really runs, with its
    effects; its result is dropped. A function that :func:`assay.compile` returned is compiled with
    its own backend, unless that is a Python function; any other with ``eager``.

    With arguments for the function, ``explain(fn, *args)``, the result is the older tuple
    ``(explanation, out_guards, graphs, ops_per_graph, break_reasons, explanation_verbose)``.
    """

    def records_of(*args: Any, **kwargs: Any) -> list[Record]:
        observer = Observer(_backend_of(f))
        compile(f, backend=observer)(*args, **kwargs)
        return observer.records()

    def inner(*args: Any, **kwargs: Any) -> ExplainOutput:
        return _output(records_of(*args, **kwargs))

    if not extra_args and not extra_kwargs:
        return inner
    records = records_of(*extra_args, **extra_kwargs)
    output = _output(records)
    explanation = (
        f"Dynamo produced {output.graph_count} graphs, with {output.graph_break_count} graph "
        f"breaks and {output.op_count} ops."
    )
    reasons = [
        "\n".join([f"{number}. {reason.reason}", *_stack_lines(reason, "  ")])
        for number, reason in enumerate(output.break_reasons, 1)
    ]
    verbose = "\n".join([explanation, "Break reasons:", "\n\n".join(reasons)])
    guards = [record.guards for record in records if record.graph is not None]
    return (
        explanation,
        guards,
        output.graphs,
        output.ops_per_graph,
        output.break_reasons,
        verbose if reasons else explanation,
    )


class ExplainWithBackend(Observer):
    """A backend that compiles with another one and explains what it was given.

    >>> eb = assay.ExplainWithBackend("aot_eager")
    >>> assay.compile(fn, backend=eb)(x)
    >>> print(eb.output())
    """

    def output(self) -> ExplainOutput:
        """About everything compiled with this so far."""
        return _output(self.records())
