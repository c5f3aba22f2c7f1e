"""The runner's cost per operator against torch.fx.GraphModule's, on tensors of one element.

Both run the same chain in the same process, in turns; the fastest of many runs counts. The cost of
a call as such (converting inputs, entering the graph) is taken off by running two lengths.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import fx

import assay

LENGTHS = (20, 420)
ROUNDS = 60


def aten_chain(length: int) -> fx.GraphModule:
    """A chain of ATen calls: add, mul by a constant, tanh."""
    graph = fx.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    for i in range(length):
        if i % 3 == 0:
            x = graph.call_function(torch.ops.aten.add.Tensor, (x, y))
        elif i % 3 == 1:
            x = graph.call_function(torch.ops.aten.mul.Tensor, (x, y))
        else:
            x = graph.call_function(torch.ops.aten.neg.default, (x,))
    graph.output((x,))
    return fx.GraphModule(torch.nn.Module(), graph)


def torch_chain(length: int) -> fx.GraphModule:
    """The same at the level Dynamo captures: torch.add, torch.mul, torch.neg."""
    graph = fx.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    for i in range(length):
        if i % 3 == 0:
            x = graph.call_function(torch.add, (x, y))
        elif i % 3 == 1:
            x = graph.call_function(torch.mul, (x, y))
        else:
            x = graph.call_function(torch.neg, (x,))
    graph.output((x,))
    return fx.GraphModule(torch.nn.Module(), graph)


def assay_graph(module: fx.GraphModule) -> assay.Graph:
    """The same graph in Assay, through its text."""
    code = module.code.replace("\n", "\n    ")
    return assay.parse(f"class Repro(torch.nn.Module):\n    {code}")


def fastest(works: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Seconds of the fastest run of each, measured in turns so that noise hits all alike."""
    best = dict.fromkeys(works, float("inf"))
    for _ in range(ROUNDS):
        for name, work in works.items():
            begin = time.perf_counter()
            work()
            best[name] = min(best[name], time.perf_counter() - begin)
    return best


def measure(chain: Callable[[int], fx.GraphModule]) -> dict[str, float]:
    """Nanoseconds per operator, of fx and of Assay, and their ratio."""
    x, y = torch.randn(1), torch.randn(1)
    works: dict[str, Callable[[], Any]] = {}
    for length in LENGTHS:
        module = chain(length)
        graph = assay_graph(module)
        assert torch.equal(module(x, y)[0], graph(x, y)[0])
        works[f"fx {length}"] = lambda module=module: module(x, y)
        works[f"assay {length}"] = lambda graph=graph: graph(x, y)
    with torch.no_grad():
        best = fastest(works)
    short, long = LENGTHS

    def per_operator(name: str) -> float:
        return (best[f"{name} {long}"] - best[f"{name} {short}"]) / (long - short) * 1e9

    fx_cost, assay_cost = per_operator("fx"), per_operator("assay")
    return {"fx_ns": fx_cost, "assay_ns": assay_cost, "ratio": assay_cost / fx_cost}


def run() -> dict[str, dict[str, float]]:
    torch.set_num_threads(1)
    return {"aten": measure(aten_chain), "torch": measure(torch_chain)}
