"""A trial of a graph from after autograd."""

from __future__ import annotations

import contextlib
import copy
import operator
from collections.abc import Callable
from typing import Any

import torch
from torch._dynamo.backends.registry import lookup_backend
from torch._dynamo.debug_utils import cast_to_fp64

from assay.stock import accuracy
from assay.stock.program import Trial
from assay.stock.report import Invalid, invalid_if_it_fails
from assay.stock.stage import Stage


class AfterAot(Trial):
    """A graph of ATen operators: inductor's own compiler, without gradients."""

    promises_memory = False  # AOTAutograd, around it, sees to that

    def mode(self) -> contextlib.AbstractContextManager[Any]:
        return torch.no_grad()

    def test(self) -> accuracy.Difference | None:
        with self.mode():
            self.report.stage(Stage.EAGER)
            expected = reference = None
            if self.checks_accuracy or self.request.get("eager", True):
                try:
                    with invalid_if_it_fails():
                        expected = self.run_eagerly()
                except Invalid as error:
                    return self.compare_exceptions(
                        self.exception_to_compare(error), lambda: self.compile_and_run(self.trace())
                    )
            with invalid_if_it_fails():
                graph = self.trace()
                if self.checks_accuracy and expected is not None:
                    reference = self.float64(graph)
                    if self.request.get("repeat_eager"):
                        self.check_repeatable(expected, self.comparison(reference))
            result = self.compile_and_run(graph)
            if not self.checks_accuracy:
                return None
            assert expected is not None
            return self.compare(expected, result, reference)

    def compile_and_run(self, graph: torch.fx.GraphModule) -> accuracy.Run:
        self.report.stage(Stage.COMPILE)
        compiled = self.compile(graph)
        self.report.stage(Stage.RUN)
        # A boxed function empties the list that it is given.
        is_boxed = getattr(compiled, "_boxed_call", False)
        return self.calls(lambda inputs: compiled(list(inputs)) if is_boxed else compiled(*inputs))

    def calls(self, function: Callable[[list[Any]], Any]) -> accuracy.Run:
        """One call, and a second one if that is compared."""
        run = self.call(function)
        if "second_call" in self.extras:
            try:
                run.second = self.call(function)
            except Exception as error:
                run.second_error = error
        return run

    def call(self, function: Callable[[list[Any]], Any]) -> accuracy.Run:
        inputs = self.inputs()
        named = accuracy.Inputs(self.text.parameters, inputs)
        self.seed()
        return self.run_of(function(inputs), named)

    @staticmethod
    def run_of(output: Any, named: accuracy.Inputs) -> accuracy.Run:
        return accuracy.Run(output, input=named.tensors, changed=named.changed())

    def run_eagerly(self) -> accuracy.Run:
        run = self.calls(lambda inputs: self.module(*inputs))
        if not isinstance(run.output, tuple | list):
            raise Invalid(f"the graph returns a {type(run.output).__name__}, not a tuple")
        if any(isinstance(item, tuple | list) for item in run.output):
            raise Invalid("the graph returns a tuple of tuples")
        return run

    def trace(self) -> torch.fx.GraphModule:
        """The graph with metadata, as inductor takes it."""
        from torch.fx.experimental.proxy_tensor import make_fx

        if any(True for _ in self.module.parameters()):
            raise Invalid("a graph from after aot has no parameters")
        inputs = self.inputs()
        self.seed()
        graph = make_fx(self.module, tracing_mode=self.text.tracing_mode)(*inputs)
        self.note_lines(graph)
        return graph

    def note_lines(self, graph: torch.fx.GraphModule) -> None:
        """Traced nodes have no lines. Unless tracing took calls apart, they are the file's."""
        traced = [
            node
            for node in graph.graph.nodes
            if node.op == "call_function" and node.target is not operator.getitem
        ]
        if [f"torch.ops.{node.target}" for node in traced] != list(self.text.calls.values()):
            return
        for node, name in zip(traced, self.text.calls, strict=True):
            if stack := self.text.stack_of(name):
                node.stack_trace = stack

    def compile(self, graph: torch.fx.GraphModule) -> Callable[..., Any]:
        from torch._dynamo.repro.after_aot import _get_compile_args

        backend = self.request.get("backend") or "inductor"
        graph = copy.deepcopy(graph)
        inputs = _get_compile_args(graph, self.inputs())
        if backend != "inductor":
            return lookup_backend(backend)(graph, inputs)
        from torch._inductor.compile_fx import compile_fx_inner

        return compile_fx_inner(graph, inputs)

    def float64(self, graph: torch.fx.GraphModule) -> accuracy.Run | None:
        """Eager's results in float64.

        Without them only what is close is the same. That is too strict for the candidates of a
        failure in floating point: a reduction could end at a difference that rounding made.
        """
        try:
            model, inputs = cast_to_fp64(copy.deepcopy(graph), self.inputs())
            named = accuracy.Inputs(self.text.parameters, inputs)
            self.seed()
            return self.run_of(model(*inputs), named)
        except Exception as error:
            if self.ignores_non_fp:
                raise Invalid(f"no float64 reference: {error}") from error
            print(f"no float64 reference: {error}")
            return None
