"""Hooks where Dynamo hands a graph to a backend, and where AOTAutograd hands one to inductor.

They say to the report which graph is being compiled or called, save it with its inputs, remember
the first failure in there (the script may catch it), and can put another backend in the place of
the script's own. What the backend gets and returns is unchanged.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._dynamo.backends.registry import lookup_backend
from torch._dynamo.output_graph import OutputGraph
from torch._inductor import compile_fx
from torch._inductor.output_code import CompiledFxGraph

from assay.diagnose import captured
from assay.stock import failure, kernels


@dataclass
class Place:
    """A graph of Dynamo's, or one half that AOTAutograd made of it."""

    graph: int
    half: str | None = None
    calls: int = 0
    saved: captured.Saved | None = None
    backend: str = ""

    def name(self) -> str:
        return f"{self.graph}_{self.half or 'dynamo'}"


@dataclass
class Watch:
    """What the hooks know of this run."""

    report: Any
    request: dict[str, Any]
    writer: captured.Writer | None
    graphs: int = 0
    current: list[Place] = field(default_factory=list)
    by_aot_id: dict[Any, int] = field(default_factory=dict)
    failed: list[int] = field(default_factory=list)  # identities of exceptions already described

    @contextlib.contextmanager
    def step(self, stage: str, place: Place) -> Iterator[None]:
        """Within it that happens at that graph."""
        where = {"graph": place.graph, "half": place.half, "call": place.calls}
        self.current.append(place)
        self.report.at(stage, **where)
        try:
            yield
        except Exception as error:
            self._note(error, stage, where, place)
            raise
        finally:
            self.current.pop()
            self.report.at("script")

    def _note(self, error: Exception, stage: str, where: dict[str, Any], place: Place) -> None:
        inner = failure.innermost(error)
        if id(inner) in self.failed or _is_control_flow(inner):
            return
        self.failed.append(id(inner))
        if place.saved is not None and stage != "compile":
            place.saved.again()
        described = failure.describe(error)
        if len(self.failed) == 1:
            self.report.add(failure={"stage": stage, **where, **described})

    def save(self, place: Place, gm: Any, inputs: Any, stage: str, settings: Any = None) -> None:
        """Write the graph now: the backend may change it, or end the process."""
        if self.writer is None:
            return
        place.saved = self.writer.save(place.name(), gm, inputs, place.backend, stage, settings)
        self.report.add(**{f"graph_{place.name()}": place.saved.summary()})

    def save_call(self, place: Place, inputs: Any) -> None:
        """The inputs of the first call, or of the one that was asked for."""
        wanted = self.request.get("save_call") or [None, None]
        number = wanted[1] if wanted[0] == place.graph else 1
        if place.saved is not None:
            place.saved.at_call(inputs, is_wanted=place.calls == number)


def _is_control_flow(error: BaseException) -> bool:
    """What Dynamo raises to trace a frame again or to leave it alone is not a failure."""
    from torch._dynamo import exc

    kinds = tuple(
        kind
        for name in ("TensorifyScalarRestartAnalysis", "RestartAnalysis", "SkipFrame")
        if (kind := getattr(exc, name, None)) is not None
    )
    return isinstance(error, kinds)


def install(request: dict[str, Any], report: Any) -> None:
    """From now on this process's graphs are watched."""
    if request.get("stack", "torch") != "torch":
        return
    directory = request.get("graphs")
    writer = captured.Writer(directory) if directory else None
    watch = Watch(report, request, writer)
    kernels.listen()
    _hook_dynamo(watch)
    _hook_inductor(watch)
    _bisect(request)


def _hook_dynamo(watch: Watch) -> None:
    original = OutputGraph.call_user_compiler

    @functools.wraps(original)
    def call_user_compiler(output: OutputGraph, gm: Any, example_inputs: Any) -> Any:
        compiler = output.compiler_fn
        output.compiler_fn = _watched(watch, compiler)
        try:
            return original(output, gm, example_inputs)
        finally:
            output.compiler_fn = compiler

    OutputGraph.call_user_compiler = call_user_compiler


def _watched(watch: Watch, compiler: Any) -> Callable[..., Any]:
    name = watch.request.get("backend")
    chosen = lookup_backend(name) if name not in (None, "none") else compiler

    @functools.wraps(compiler, assigned=("__name__", "__doc__"), updated=())
    def compile(gm: torch.fx.GraphModule, inputs: list[Any], **options: Any) -> Any:
        place = Place(watch.graphs, backend=captured.backend_name(chosen))
        watch.graphs += 1
        settings = captured.backend_settings(chosen)
        watch.save(place, gm, inputs, "after_dynamo", settings)
        if watch.writer is not None and place.saved is not None:
            watch.writer.save_backend(place.backend, chosen)
        with watch.step("compile", place):
            compiled = chosen(gm, inputs, **options)

        def call(*arguments: Any) -> Any:
            place.calls += 1
            watch.save_call(place, arguments)
            with watch.step("run", place):
                return compiled(*arguments)

        return call if callable(compiled) else compiled

    return compile


def _hook_inductor(watch: Watch) -> None:
    original_compile = compile_fx._compile_fx_inner
    original_call = CompiledFxGraph.__call__

    @functools.wraps(original_compile)
    def compile_inner(gm: Any, example_inputs: Any, **options: Any) -> Any:
        half = "backward" if options.get("is_backward") else "forward"
        graph = watch.current[-1].graph if watch.current else None
        if half == "forward" and graph is not None:
            watch.by_aot_id[options.get("graph_id")] = graph
        place = Place(watch.by_aot_id.get(options.get("graph_id"), graph or 0), half)
        place.backend = "inductor"
        watch.save(place, gm, example_inputs, "after_aot")
        with watch.step("compile", place):
            compiled = original_compile(gm, example_inputs, **options)
        if isinstance(compiled, CompiledFxGraph):
            compiled._assay_place = place
        return compiled

    @functools.wraps(original_call)
    def call(self: Any, inputs: Any) -> Any:
        place = getattr(self, "_assay_place", None)
        if place is None:
            return original_call(self, inputs)
        place.calls += 1
        watch.save_call(place, inputs)
        with watch.step("backward" if place.half == "backward" else "run", place):
            return original_call(self, inputs)

    compile_fx._compile_fx_inner = compile_inner
    CompiledFxGraph.__call__ = call


def _bisect(request: dict[str, Any]) -> None:
    """Stock's own switches: only so many applications of a subsystem of inductor."""
    wanted = request.get("bisect")
    if wanted:
        from assay.stock import bisect

        bisect.limit(*wanted)
