"""Optimizers of torch: their step() is one graph, as in PyTorch's compiler."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

import assay

OPTIMIZERS = {
    "SGD": {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1},
    "Adam": {"amsgrad": True},
    "AdamW": {"foreach": True},
    "Adamax": {},
    "NAdam": {},
    "Adagrad": {},
    "Adadelta": {},
    "RMSprop": {"centered": True, "momentum": 0.9},
    "Rprop": {},
}


def models() -> list[torch.nn.Module]:
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    return [model, copy.deepcopy(model)]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_step_is_one_graph(name: str) -> None:
    graphs: list[Any] = []

    def count(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return graph

    eager, compiled = models()
    ours, theirs = (
        getattr(torch.optim, name)(model.parameters(), **OPTIMIZERS[name])
        for model in (compiled, eager)
    )
    step = assay.compile(ours.step, backend=count, fullgraph=True)
    for _ in range(4):
        x = torch.randn(3, 4)
        for model, optimizer, call in ((compiled, ours, step), (eager, theirs, theirs.step)):
            optimizer.zero_grad()
            model(x).pow(2).sum().backward()
            call()
        for left, right in zip(compiled.parameters(), eager.parameters(), strict=True):
            torch.testing.assert_close(left, right)
    made_when_created = ("Adagrad",)
    expected = 1 if name in made_when_created else 2
    assert len(graphs) == expected, "one makes the state of an optimizer, the other one uses it"


@pytest.mark.parametrize("name", ["RAdam", "ASGD", "Adafactor"])
def test_steps_that_read_values(name: str) -> None:
    eager, compiled = models()
    ours, theirs = (getattr(torch.optim, name)(model.parameters()) for model in (compiled, eager))
    step = assay.compile(ours.step, backend="eager")
    for _ in range(4):
        x = torch.randn(3, 4)
        for model, optimizer, call in ((compiled, ours, step), (eager, theirs, theirs.step)):
            optimizer.zero_grad()
            model(x).pow(2).sum().backward()
            call()
        for left, right in zip(compiled.parameters(), eager.parameters(), strict=True):
            torch.testing.assert_close(left, right)
