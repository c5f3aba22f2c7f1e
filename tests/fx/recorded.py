"""GraphModules as stock PyTorch makes them: Dynamo's, and those that AOTAutograd makes of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch._dynamo
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import default_partition


@dataclass(frozen=True)
class Recorded:
    """A graph, and inputs that it was called with."""

    stage: str
    module: torch.fx.GraphModule
    inputs: list[Any]


def record(
    function: Callable[..., Any],
    args: tuple[Any, ...] | dict[str, Any],
    *,
    dynamic: bool = False,
    backward: bool = False,
) -> list[Recorded]:
    """Compile and call with stock's torch.compile, with the graphs of every stage."""
    torch._dynamo.reset()
    made: list[Recorded] = []

    def remember(stage: str, module: torch.fx.GraphModule) -> Callable[..., Any]:
        seen = False

        def call(*inputs: Any) -> Any:
            nonlocal seen
            if not seen:
                seen = True
                made.append(Recorded(stage, module, _copies(inputs)))
            return module(*inputs)

        return call

    def partition(joint: torch.fx.GraphModule, inputs: Any, **options: Any) -> Any:
        # Joint graphs take (primals, tangents).
        made.append(Recorded("joint", _copied(joint), []))
        return default_partition(joint, inputs, **options)

    def backend(module: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        made.append(Recorded("dynamo", _copied(module), _copies(inputs)))
        return aot_autograd(
            fw_compiler=lambda module, _: remember("forward", module),
            bw_compiler=lambda module, _: remember("backward", module),
            partition_fn=partition,
        )(module, inputs)

    compiled = torch.compile(function, backend=backend, dynamic=dynamic)
    result = compiled(**args) if isinstance(args, dict) else compiled(*args)
    if backward:
        _loss(result).backward()
    torch._dynamo.reset()
    return [_with_joint_inputs(each, made) for each in made]


def _with_joint_inputs(joint: Recorded, all_of_it: list[Recorded]) -> Recorded:
    """A joint graph is never called; its inputs are those of its halves."""
    forward = next((each for each in all_of_it if each.stage == "forward"), None)
    backward = next((each for each in all_of_it if each.stage == "backward"), None)
    if joint.stage != "joint" or forward is None or backward is None:
        return joint
    names = [node.name for node in backward.module.graph.find_nodes(op="placeholder")]
    tangents = [
        value
        for name, value in zip(names, backward.inputs, strict=True)
        if name.startswith("tangents_")
    ]
    return Recorded("joint", joint.module, forward.inputs + tangents)


def _copied(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """The module as it is now: AOTAutograd works on the one it is given."""
    graph = torch.fx.Graph()
    graph.output(graph.graph_copy(module.graph, {}))
    return torch.fx.GraphModule(module, graph, type(module).__name__)


def _copies(inputs: Any) -> list[Any]:
    def copy(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return int(value) if isinstance(value, torch.SymInt) else value
        made = value.detach().clone()
        if isinstance(value, torch.nn.Parameter):
            return torch.nn.Parameter(made, value.requires_grad)
        return made.requires_grad_(value.requires_grad)

    return [copy(value) for value in inputs]


def _loss(result: Any) -> torch.Tensor:
    tensors = [
        leaf
        for leaf in torch.utils._pytree.tree_leaves(result)
        if isinstance(leaf, torch.Tensor) and leaf.requires_grad
    ]
    return torch.stack([tensor.float().sum() for tensor in tensors]).sum()
