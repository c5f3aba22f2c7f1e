"""GraphModule -> Graph -> text -> Graph -> GraphModule: nothing is lost, results are equal."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils import _pytree

import assay
from fx.recorded import Recorded, record
from stock.models import MODELS, build

QUICK = ["mlp", "conv_bn", "mutation", "higher_order", "indexing", "control", "constants",
         "dynamic_mlp", "gpt2_small_train"]  # fmt: skip
SLOW = ["resnet_train", "bert_train", "llama", "t5_train", "vit_train", "whisper", "lstm", "sdpa"]


@pytest.mark.parametrize(
    "name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)]
)
def test_models(name: str) -> None:
    model = MODELS[name]
    function, inputs = build(name)
    with torch._dynamo.config.patch(**model.dynamo_config), torch.set_grad_enabled(model.grad):
        graphs = record(function, inputs, dynamic=model.dynamic, backward=model.grad)
    assert graphs
    for recorded in graphs:
        check(recorded)


def check(recorded: Recorded) -> None:
    """Both ways, through the objects and through the text."""
    module = recorded.module
    graph = assay.fx.from_graph_module(module)
    direct = assay.fx.to_graph_module(graph)
    same_graph(module, direct)
    assert assay.fx.from_graph_module(direct).code == graph.code
    through_text = assay.fx.to_graph_module(graph.code)
    same_graph(module, through_text, is_from_text=True)
    assert assay.fx.from_graph_module(through_text).code == graph.code
    if recorded.inputs:
        for converted in (direct, through_text):
            same_results(module, converted, recorded.inputs)


RENAMED = {"tensor": "tensor_1"}  # names with a meaning of their own in the text form


def same_graph(
    left: torch.fx.GraphModule, right: torch.fx.GraphModule, is_from_text: bool = False
) -> None:
    """The same nodes: kinds, names, targets, arguments, stacks, and so in subgraphs."""
    nodes = [node for node in left.graph.nodes if node.op == "placeholder"]
    nodes += [node for node in left.graph.nodes if node.op != "placeholder"]
    assert len(nodes) == len(right.graph.nodes)
    for a, b in zip(nodes, right.graph.nodes, strict=True):
        assert (a.op, RENAMED.get(a.name, a.name)) == (b.op, b.name)
        if a.op in ("get_attr", "call_module"):
            assert b.target == a.target.replace(".", "_")
        elif a.op == "call_function":
            assert a.target is b.target
        else:
            assert a.target == b.target
        assert plain((a.args, a.kwargs)) == plain((b.args, b.kwargs)), a.format_node()
        if not (is_from_text and a.op == "placeholder"):  # parameters of forward() have no comment
            assert frames(a.stack_trace) == frames(b.stack_trace)
        if a.op == "get_attr" and isinstance(getattr(left, a.target), torch.fx.GraphModule):
            same_graph(getattr(left, a.target), getattr(right, b.target), is_from_text)


def plain(arguments: Any) -> Any:
    """Arguments as Python compares them."""

    def convert(value: Any) -> Any:
        if isinstance(value, torch.fx.Node):
            return ("node", RENAMED.get(value.name, value.name))
        if isinstance(value, dict):
            return {key: convert(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return (list if isinstance(value, list) else tuple)(convert(item) for item in value)
        if isinstance(value, slice):
            return ("slice", convert(value.start), convert(value.stop), convert(value.step))
        return repr(value) if isinstance(value, float) else value

    return convert(arguments)


def frames(stack: str | None) -> list[str]:
    """The lines of a stack, without what is no frame of the program."""
    lines = [line.strip() for line in (stack or "").splitlines()]
    return [line for line in lines if set(line) - set("^~ ") and not line.startswith(REMARK)]


REMARK = "Gradient addition node due to multiple use of tensor"  # by AOTAutograd


def same_results(left: torch.fx.GraphModule, right: torch.fx.GraphModule, inputs: Any) -> None:
    results = []
    for module in (left, right):
        torch.manual_seed(0)
        copies = [
            value.detach().clone().requires_grad_(value.requires_grad)
            if isinstance(value, torch.Tensor)
            else value
            for value in inputs
        ]
        # The code that stock generates for a joint graph has placeholders of its own.
        results.append((torch.fx.Interpreter(module).run(*copies), copies))
    for a, b in zip(_pytree.tree_leaves(results[0]), _pytree.tree_leaves(results[1]), strict=True):
        if isinstance(a, torch.Tensor):
            torch.testing.assert_close(a, b, rtol=0, atol=0, equal_nan=True)
        else:
            assert a == b
