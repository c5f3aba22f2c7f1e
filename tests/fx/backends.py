"""Backends with a fault, for trials that import them: ``fx.backends:raises``."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import torch


def relus(gm: torch.fx.GraphModule) -> list[torch.fx.Node]:
    return gm.graph.find_nodes(op="call_function", target=torch.relu)


def raises(gm: torch.fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
    for node in gm.graph.nodes:
        if node.target is torch.relu:
            raise NotImplementedError(f"no rule for {node.target.__name__}")
    return gm.forward


def raises_at_run_time(gm: torch.fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
    def run(*inputs: Any) -> Any:
        if relus(gm):
            raise ZeroDivisionError("at run time")
        return gm(*inputs)

    return run


def crashes(gm: torch.fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
    def run(*inputs: Any) -> Any:
        if relus(gm):
            ctypes.string_at(0)
        return gm(*inputs)

    return run


def hangs(gm: torch.fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
    while relus(gm):
        pass
    return gm.forward


def is_wrong(gm: torch.fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
    for node in relus(gm):
        node.target = torch.sigmoid
    gm.recompile()
    return gm.forward


class WrongRelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return 3 * grad


def wrong_relu(x: torch.Tensor) -> torch.Tensor:
    return WrongRelu.apply(x)


def is_wrong_backward(gm: torch.fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
    for node in relus(gm):
        node.target = wrong_relu
    gm.recompile()
    return gm.forward


def is_right(gm: torch.fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
    return gm.forward


not_a_backend = 3
