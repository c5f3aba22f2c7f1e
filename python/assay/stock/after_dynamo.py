"""A trial of a graph from before autograd."""

from __future__ import annotations

import contextlib
import copy
import functools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch._dynamo
from torch._dynamo.backends.registry import lookup_backend
from torch._dynamo.debug_utils import cast_to_fp64, clone_inputs_retaining_gradness
from torch._dynamo.testing import reduce_to_scalar_loss, requires_bwd_pass

from assay.stock import accuracy
from assay.stock.program import Trial
from assay.stock.report import Invalid, invalid_if_it_fails
from assay.stock.stage import Stage


class AfterDynamo(Trial):
    """A graph from before autograd: any backend of Dynamo's, forward and backward."""

    def prepare(self) -> None:
        self.compiler = self.find_compiler()
        self.has_backward = self.request.get("backward", True)
        if self.checks_accuracy:
            self.module.eval()  # as stock does: no dropout

    def find_compiler(self) -> Callable[..., Any]:
        return lookup_backend(self.request.get("backend") or "inductor")

    @contextlib.contextmanager
    def mode(self) -> Iterator[None]:
        device = "cpu"
        with torch.amp.autocast(device, enabled=bool(self.request.get("autocast"))):
            yield

    def test(self) -> accuracy.Difference | None:
        expected = reference = None
        if self.checks_accuracy or self.request.get("eager", True):
            self.report.stage(Stage.EAGER)
            try:
                with invalid_if_it_fails(), self.mode():
                    expected = self.run_eagerly()
            except Invalid as error:
                return self.compare_exceptions(
                    self.exception_to_compare(error), self.compile_and_run
                )
            with invalid_if_it_fails(), self.mode():
                if self.checks_accuracy:
                    reference = self.float64()
                    if self.request.get("repeat_eager"):
                        self.check_repeatable(expected, self.comparison(reference))
        result = self.compile_and_run()
        if not self.checks_accuracy:
            return None
        assert expected is not None
        return self.compare(expected, result, reference)

    def compile_and_run(self) -> accuracy.Run:
        self.report.stage(Stage.COMPILE)
        with self.mode():
            compiled = self.compile()
            if self.checks_accuracy:
                compiled.eval()
            return self.run(compiled, self.report.stage)

    def compile(self) -> torch.nn.Module:
        torch._dynamo.reset()
        # A graph with symbols was compiled for sizes that vary; so is the candidate.
        dynamic = True if "reader.symint(" in self.request["file"] else None
        optimize = torch._dynamo.optimize(self.staged_compiler(), dynamic=dynamic)
        return optimize(copy.deepcopy(self.module))

    def staged_compiler(self) -> Callable[..., Any]:
        """The backend, saying when it starts and ends: Dynamo calls it within the first run."""

        @functools.wraps(self.compiler)
        def compiler(*arguments: Any, **options: Any) -> Any:
            self.report.stage(Stage.COMPILE)
            compiled = self.compiler(*arguments, **options)
            self.report.stage(Stage.RUN)
            return compiled

        return compiler

    def run(
        self,
        module: torch.nn.Module,
        stage: Callable[[Stage], None] = lambda stage: None,
        inputs: list[Any] | None = None,
    ) -> accuracy.Run:
        """One call, and a second one if that is compared."""
        module = copy.deepcopy(module)
        is_reference = inputs is not None
        run = self.call(module, stage, inputs)
        if "second_call" in self.extras and not is_reference:
            try:
                run.second = self.call(module, stage)
            except Exception as error:
                run.second_error = error
        return run

    def call(
        self,
        module: torch.nn.Module,
        stage: Callable[[Stage], None],
        inputs: list[Any] | None = None,
    ) -> accuracy.Run:
        """Forward and, if something requires grad, backward; outputs, gradients and inputs."""
        module.zero_grad(True)
        inputs = self.inputs() if inputs is None else inputs
        named = accuracy.Inputs(self.text.parameters, inputs)
        self.seed()
        output = module(*inputs)
        run = accuracy.Run(output, input=named.tensors)
        if self.has_backward:
            if requires_bwd_pass(output):
                stage(Stage.BACKWARD)
                reduce_to_scalar_loss(output).backward()
            self.note_state(run, module)
        run.changed = named.changed()
        return run

    def note_state(self, run: accuracy.Run, module: torch.nn.Module) -> None:
        """The gradients of parameters and inputs, and what became of parameters and buffers."""
        # The gradients of all inputs are read, also of those that keep none.
        warnings.filterwarnings(
            "ignore", message="The .grad attribute of a Tensor that is not a leaf"
        )
        run.parameter = {_plain_name(name): value for name, value in module.named_parameters()}
        run.buffer = {_plain_name(name): value for name, value in module.named_buffers()}
        for name, parameter in run.parameter.items():
            # As stock does: one without a gradient has one of zeros.
            gradient = parameter.grad
            run.gradient[name] = torch.zeros_like(parameter) if gradient is None else gradient
        run.gradient.update({name: value.grad for name, value in run.input.items()})

    def float64(self) -> accuracy.Run | None:
        """Eager's results in float64, or None where that cannot be had (as stock does)."""
        if not torch._dynamo.config.same_two_models_use_fp64:
            return None
        is_grad_enabled = torch.is_grad_enabled()
        try:
            graph = self.as_graph()
            torch.set_grad_enabled(is_grad_enabled)
            inputs = clone_inputs_retaining_gradness(self.inputs())
            model, inputs = cast_to_fp64(copy.deepcopy(graph), inputs)
            return self.run(model, inputs=inputs)
        except Exception as error:
            print(f"no float64 reference: {error}")
            return None
        finally:
            torch.set_grad_enabled(is_grad_enabled)

    def as_graph(self) -> torch.fx.GraphModule:
        """The module as a graph, whose constants can be cast."""
        return torch.fx.symbolic_trace(self.module)

    def run_eagerly(self) -> accuracy.Run:
        return self.run(self.module)


def _plain_name(name: str) -> str:
    """Of a parameter, whether or not the module is compiled or wrapped."""
    for prefix in ("_orig_mod.", "module."):
        name = name.removeprefix(prefix)
    return name
