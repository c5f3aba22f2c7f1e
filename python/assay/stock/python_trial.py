"""A trial of a backend written in Python, which is given the file's graph itself.

Dynamo is not part of it: the backend sees the nodes of the file, with their names.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._guards import TracingContext, tracing
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils import _pytree

from assay import _C
from assay.stock import accuracy, failure, sent_backend
from assay.stock.after_dynamo import AfterDynamo
from assay.stock.stage import Stage


class PythonTrial(AfterDynamo):
    """A graph of any stage; one from after autograd has no gradients."""

    def prepare(self) -> None:
        super().prepare()
        self.graph = _C.parse_repro(self.request["file"], "<trial>").graph()

    def find_compiler(self) -> Callable[..., Any]:
        return sent_backend.loaded()

    @contextlib.contextmanager
    def mode(self) -> Iterator[None]:
        has_gradients = torch.is_grad_enabled() and self.text.stage != "after_aot"
        with super().mode(), torch.set_grad_enabled(has_gradients):
            yield

    def as_graph(self) -> torch.fx.GraphModule:
        """The file's graph with the attributes of the file's module."""
        made: torch.fx.GraphModule = _C.module_from_graph(self.graph, flat_output=True)
        module = copy.deepcopy(self.module)
        made._parameters.update(module._parameters)
        made._buffers.update(module._buffers)
        for name, child in module._modules.items():
            if not isinstance(made._modules.get(name), torch.fx.GraphModule):
                made._modules[name] = child
        made.train(module.training)
        made.meta[failure.NAMES_ARE_THE_FILES] = True
        return made

    def compile(self) -> torch.nn.Module:
        graph = self.as_graph()
        inputs = self.inputs()
        self.seed()
        compiled = self.call_compiler(graph, inputs)
        if not callable(compiled):
            raise TypeError(f"the backend returned a {type(compiled).__name__}")
        self.report.stage(Stage.RUN)
        return _Compiled(graph, compiled)

    def call_compiler(self, graph: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        return self.compiler(graph, inputs)

    def run(
        self,
        module: torch.nn.Module,
        stage: Callable[[Stage], None] = lambda stage: None,
        inputs: list[Any] | None = None,
    ) -> accuracy.Run:
        return super().run(_Flat(module), stage, inputs)


class BackendTrial(PythonTrial):
    """A graph that Dynamo makes and cannot trace again, for a backend of PyTorch's.

    It enters and leaves functorch's levels itself, or passes subgraphs to operators.
    """

    def find_compiler(self) -> Callable[..., Any]:
        return AfterDynamo.find_compiler(self)

    def run_eagerly(self) -> accuracy.Run:
        """The graph itself: operators look for the graphs of their subgraphs.

        invoke_subgraph has no eager version for what needs a gradient; eager calls the body.
        """
        made = self.as_graph()
        for module in made.modules():
            if isinstance(module, torch.fx.GraphModule):
                for node in module.graph.nodes:
                    if node.target is torch.ops.higher_order.invoke_subgraph:
                        node.target = _call_subgraph
                module.recompile()
        return self.run(made)

    def call_compiler(self, graph: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        """As Dynamo calls it: with fake inputs, and sizes that operators may leave open."""
        fake_mode = FakeTensorMode(shape_env=ShapeEnv())
        fakes = [
            fake_mode.from_tensor(value, static_shapes=True)
            if isinstance(value, torch.Tensor)
            else value
            for value in inputs
        ]
        with tracing(TracingContext(fake_mode)):
            return self.compiler(graph, fakes)


def _call_subgraph(subgraph: Callable[..., Any], identifier: str, *operands: Any) -> Any:
    return subgraph(*operands)


class _Compiled(torch.nn.Module):
    """What a backend returned, with the parameters of the graph it was given."""

    def __init__(self, graph: torch.fx.GraphModule, compiled: Callable[..., Any]) -> None:
        super().__init__()
        # By the names that they have in the file's module: gradients are compared by them.
        self._parameters, self._buffers = graph._parameters, graph._buffers
        self._modules = graph._modules
        self.call = (compiled,)  # in a tuple: were it a module, it would become a child

    def forward(self, *inputs: Any) -> Any:
        return self.call[0](*inputs)

    def __deepcopy__(self, memo: dict[int, Any]) -> _Compiled:
        return self  # whatever the backend made need not be copyable


class _Flat(torch.nn.Module):
    """A module whose results are one tuple, as those of graphs for backends are."""

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, *inputs: Any) -> tuple[Any, ...]:
        return tuple(_pytree.tree_leaves(self.module(*inputs)))
