"""What converted GraphModules and graphs can do."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.experimental.proxy_tensor import make_fx

import assay
from fx.recorded import record


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
        self.scale = torch.nn.Parameter(torch.randn(4))
        self.register_buffer("table", torch.arange(4.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x) * self.scale + self.table


def test_parameters_buffers_and_modules_are_kept() -> None:
    net = Net()
    traced = torch.fx.symbolic_trace(net)
    graph = assay.fx.from_graph_module(traced, [torch.randn(2, 4)])
    back = assay.fx.to_graph_module(graph)
    assert back.scale is net.scale
    assert back.table is net.table
    assert back.layers_0 is net.layers[0]
    x = torch.randn(2, 4)
    assert torch.equal(back(x), net(x))
    assert 'x: "f32[2, 4][4, 1]cpu"' in graph.code


def test_a_graph_with_tensors_runs_without_python() -> None:
    scale, table = torch.randn(4), torch.arange(1000.0).reshape(250, 4)
    traced = make_fx(lambda x: x * scale + table[3])(torch.randn(2, 4))
    graph = assay.fx.from_graph_module(traced)
    x = torch.randn(2, 4)
    assert torch.equal(graph(x), x * scale + table[3])


def test_small_constants_are_in_the_text() -> None:
    constant = torch.tensor([[1, 2], [3, 4]])
    traced = make_fx(lambda x: x + constant)(torch.randn(2, 2))
    text = assay.fx.from_graph_module(traced).code
    assert "torch.tensor([[1, 2], [3, 4]], dtype=torch.int64)" in text
    x = torch.randn(2, 2)
    assert torch.equal(assay.fx.to_graph_module(text)(x), x + constant)


def test_modules_in_a_text_are_constructed() -> None:
    traced = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, padding=1)))
    text = assay.fx.from_graph_module(traced).code
    made = assay.fx.to_graph_module(text)
    conv = next(made.children())
    assert isinstance(conv, torch.nn.Conv2d)
    assert (conv.in_channels, conv.padding) == (3, (1, 1))


def mlp(depth: int) -> torch.fx.GraphModule:
    def call(x: torch.Tensor) -> tuple[torch.Tensor]:
        for _ in range(depth):
            x = torch.relu(x + 1)
        return (x,)

    return record(call, (torch.randn(3, 4),))[0].module


def test_metadata() -> None:
    module = assay.fx.to_graph_module(assay.fx.from_graph_module(mlp(1)))
    nodes = list(module.graph.nodes)
    example = nodes[1].meta["example_value"]
    assert isinstance(example, FakeTensor)
    assert (example.shape, example.stride(), example.dtype) == ((3, 4), (4, 1), torch.float32)
    assert str(example.device) == "cpu"
    assert nodes[1].meta["tensor_meta"].shape == (3, 4)
    assert "example_value" in nodes[2].meta
    assert nodes[2].meta.get("val") is None
    assert "x = torch.relu(x + 1)" in nodes[1].stack_trace
    with pytest.raises(KeyError):
        nodes[1].meta["nothing"]


def test_metadata_of_operators_is_val() -> None:
    traced = make_fx(lambda x: x.relu(), tracing_mode="fake")(torch.randn(3, 4))
    module = assay.fx.to_graph_module(assay.fx.from_graph_module(traced))
    relu = list(module.graph.nodes)[1]
    assert relu.target is torch.ops.aten.relu.default
    assert relu.meta["val"].shape == (3, 4)


@pytest.mark.parametrize(
    "look",
    [dict, copy.copy, copy.deepcopy, lambda meta: meta | {}],
    ids=["dict", "copy", "deepcopy", "lambda"],
)
def test_whoever_copies_metadata_gets_all_of_it(look: Any) -> None:
    module = assay.fx.to_graph_module(assay.fx.from_graph_module(mlp(1)))
    meta = list(module.graph.nodes)[1].meta
    assert "example_value" in dict(look(meta))


def test_values_that_a_user_changed_win() -> None:
    module = assay.fx.to_graph_module(assay.fx.from_graph_module(mlp(1)))
    node = list(module.graph.nodes)[1]
    node.meta["example_value"] = torch.randn(7)
    assert '"f32[7][1]cpu"' in assay.fx.from_graph_module(module).code


def test_the_module_can_be_edited_and_printed() -> None:
    module = assay.fx.to_graph_module(assay.fx.from_graph_module(mlp(2)))
    for node in module.graph.find_nodes(op="call_function", target=torch.relu):
        with module.graph.inserting_after(node):
            new = module.graph.call_function(torch.neg, (node.args[0],))
        node.replace_all_uses_with(new)
        module.graph.erase_node(node)
    module.graph.lint()
    module.recompile()
    assert torch.equal(module(torch.ones(2))[0], torch.ones(2))
    assert "torch.neg" in module.code
    assert "class GraphModule" in module.print_readable(print_output=False)
    names = [node.name for node in module.graph.nodes]
    assert len(set(names)) == len(names)
    assert torch.equal(copy.deepcopy(module)(torch.ones(2))[0], torch.ones(2))


@pytest.fixture
def library() -> Iterator[torch.library.Library]:
    with torch.library._scoped_library("assay_fx_test", "DEF") as made:
        made.define("twice(Tensor x) -> Tensor")
        made.impl("twice", lambda x: 2 * x, "CompositeExplicitAutograd")
        yield made


def test_custom_operators(library: torch.library.Library) -> None:
    traced = make_fx(lambda x: torch.ops.assay_fx_test.twice(x))(torch.randn(3))
    graph = assay.fx.from_graph_module(traced)
    assert "torch.ops.assay_fx_test.twice.default(" in graph.code
    module = assay.fx.to_graph_module(graph.code)
    assert list(module.graph.nodes)[1].target is torch.ops.assay_fx_test.twice.default
    assert torch.equal(module(torch.ones(3)), 2 * torch.ones(3))


def test_symbolic_arguments_are_computed_from_the_inputs() -> None:
    text = """
class Repro(torch.nn.Module):
    def forward(self, x: "f32[s0, 4]"):
        # Symbol: s0 = 3, VR[2, int_oo]
        y = x.view([2*s0, 2])
        z = torch.zeros([s0 + 1])
        return (y, z)
"""
    module = assay.fx.to_graph_module(text)
    y, z = module(torch.ones(5, 4))
    assert (y.shape, z.shape) == ((10, 2), (6,))
    with pytest.raises(assay.UserError, match="no input of the graph tells the value of"):
        assay.fx.to_graph_module(text.replace('x: "f32[s0, 4]"', "x"))


def test_a_missing_subgraph_is_named() -> None:
    text = """
class Repro(torch.nn.Module):
    def __init__(self):
        self.body = <lambda>()
    def forward(self, x):
        body = self.body
        y = torch.ops.higher_order.invoke_subgraph(body, 'body', x)
        return (y,)
"""
    with pytest.raises(assay.UserError, match="the body of the subgraph 'body' is missing"):
        assay.fx.to_graph_module(text)


def test_only_graph_modules_are_converted() -> None:
    with pytest.raises(assay.UserError, match=r"expected a torch.fx.GraphModule, found 'Linear'"):
        assay.fx.from_graph_module(torch.nn.Linear(2, 2))  # type: ignore[arg-type]
    with pytest.raises(assay.UserError, match="2 example inputs"):
        assay.fx.from_graph_module(mlp(1), [1, 2])


def test_a_thousand_nodes_take_milliseconds() -> None:
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    x.meta["example_value"] = torch.empty(3, 4)
    for _ in range(500):
        x = graph.call_function(torch.relu, (graph.call_function(torch.add, (x, 1)),))
        x.meta.update(example_value=torch.empty(3, 4), stack_trace='  File "a.py", line 1, in f\n')
    graph.output((x,))
    module = torch.fx.GraphModule({}, graph)

    def best_of(work: Any) -> float:
        times = []
        for _ in range(5):
            start = time.perf_counter()
            work()
            times.append(time.perf_counter() - start)
        return min(times)

    converted = assay.fx.from_graph_module(module)
    assert best_of(lambda: assay.fx.from_graph_module(module)) < 0.05
    assert best_of(lambda: assay.fx.to_graph_module(converted)) < 0.05
