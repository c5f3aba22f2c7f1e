"""Stock PyTorch's joint graphs, and how many bytes its own partitioners save of them.

The yardstick for our partitioners: a test gives them `Joint.text` and compares what they save with
`Joint.min_cut` and `Joint.default`, which stock's partitioners saved of the very same graph.

    joint = stock_joint("bert_train")
    joint.text, joint.forward_outputs, joint.min_cut.bytes

A joint graph comes in two dialects: "inductor", with inductor's decompositions and its passes over
the joint graph, and "aten", as autograd records it with no decomposition at all.

From a shell:
    PYTHONPATH=tests python -m autograd.stock_joint [--out DIR] [--dialect aten] [NAME ...]
With --out each graph is written to DIR/NAME.py, and all figures to DIR/figures.json.
"""

from __future__ import annotations

import argparse
import copy
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import torch._dynamo
import torch._functorch.config as functorch_config
import torch._inductor.config as inductor_config
import torch.utils._pytree as pytree
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.debug_utils import NNModuleToString
from torch._functorch.partitioners import (
    default_partition,
    min_cut_rematerialization_partition,
)
from torch._inductor.compile_fx import compile_fx
from torch._inductor.custom_graph_pass import CustomPartitionerFn
from torch.fx import GraphModule

from stock.models import MODELS, build, call

# The models our partitioners are held against: a plain network, GPT2 and BERT, the latter two
# without dropout and with it.
YARDSTICKS = ("mlp", "gpt2_small", "gpt2_small_train", "bert", "bert_train")
DIALECTS = ("inductor", "aten")


@dataclass(frozen=True)
class Saved:
    """What a partitioner of stock's saves: all bytes, those of no primal, and the nodes' names."""

    bytes: int
    bytes_not_primal: int
    names: list[str]


@dataclass(frozen=True)
class Joint:
    """A joint graph as text that our parser reads, and what stock saves of it.

    ``min_cut`` is asked as inductor asks, where parameters cost nothing to save;
    ``min_cut_counting_parameters`` is the same partitioner when they cost their bytes.
    """

    model: str
    text: str
    forward_outputs: int
    min_cut: Saved
    min_cut_counting_parameters: Saved
    default: Saved


def stock_joint(name: str, dialect: str = "inductor") -> Joint:
    """The joint graph of the model ``name`` of `stock.models`, as stock PyTorch makes it."""
    recorder = _Recorder(name)
    fn, inputs = build(name)
    torch._dynamo.reset()
    compiled = torch.compile(fn, backend=_backend(recorder, dialect), fullgraph=True)
    with (
        functorch_config.patch(enable_autograd_cache=False),
        inductor_config.patch(custom_partitioner_fn=recorder),
    ):
        # The partitioner runs while the forward is compiled; no backward is needed.
        call(compiled, inputs)
    torch._dynamo.reset()
    if recorder.joint is None:
        raise RuntimeError(f"{name} has no joint graph: nothing in it needs a gradient")
    return recorder.joint


def _backend(recorder: _Recorder, dialect: str) -> Callable[..., Any]:
    """A Dynamo backend that makes the joint graph, shows it to the recorder, and runs eagerly."""
    if dialect == "aten":
        return aot_autograd(
            fw_compiler=lambda gm, _: _boxed(gm),
            bw_compiler=lambda gm, _: _boxed(gm),
            partition_fn=recorder,
        )

    def inner_compile(gm: GraphModule, _: Sequence[Any], **__: Any) -> Callable[..., Any]:
        return _boxed(gm)

    return lambda gm, inputs: compile_fx(gm, inputs, inner_compile=inner_compile)


def _boxed(gm: GraphModule) -> Callable[[list[Any]], Any]:
    def run(inputs: list[Any]) -> Any:
        return gm(*inputs)

    run._boxed_call = True  # type: ignore[attr-defined]
    return run


class _Recorder(CustomPartitionerFn):
    """A partitioner that tries stock's on copies of the joint graph and notes what they save."""

    def __init__(self, model: str) -> None:
        self.model = model
        self.joint: Joint | None = None

    def __call__(
        self,
        gm: GraphModule,
        joint_inputs: Sequence[object],
        *,
        num_fwd_outputs: int,
        static_lifetime_input_indices: list[int] | None = None,
        **_: Any,
    ) -> tuple[GraphModule, GraphModule]:
        if self.joint is not None:
            raise RuntimeError(f"{self.model} has two joint graphs: it has a graph break")

        def saved_by(partition: Callable[..., Any], parameters: list[int] | None) -> Saved:
            forward, _ = partition(
                _copy(gm),
                joint_inputs,
                num_fwd_outputs=num_fwd_outputs,
                static_lifetime_input_indices=parameters,
            )
            return _saved(forward, num_fwd_outputs)

        parameters = static_lifetime_input_indices
        self.joint = Joint(
            model=self.model,
            text=_text(gm),
            forward_outputs=num_fwd_outputs,
            min_cut=saved_by(min_cut_rematerialization_partition, parameters),
            min_cut_counting_parameters=saved_by(min_cut_rematerialization_partition, None),
            default=saved_by(default_partition, None),
        )
        halves: tuple[GraphModule, GraphModule] = default_partition(
            gm, joint_inputs, num_fwd_outputs=num_fwd_outputs
        )
        return halves

    def uuid(self) -> None:
        """No key: nothing made with this partitioner may come from a cache."""


def _copy(gm: GraphModule) -> GraphModule:
    """The same graph on the same constants, which cannot be copied while fake tensors are on."""
    return GraphModule(gm, copy.deepcopy(gm.graph))


def _text(gm: GraphModule) -> str:
    """The graph as one class: attributes as in stock's repro files, values annotated.

    A joint graph takes two lists, of primals and of tangents; the copy takes them one by one, as
    every other graph does.
    """
    flat = _copy(gm)
    flat.graph.set_codegen(torch.fx.graph.CodeGen())
    flat.recompile()
    # Stock's repro files lack annotations, and its readable form lacks attributes: take both.
    method = "    def forward("
    attributes = NNModuleToString.convert(flat).partition(method)[0]
    readable = flat.print_readable(print_output=False, include_stride=True, include_device=True)
    return "import torch\n" + attributes + method + readable.partition(method)[2]


def _saved(forward: GraphModule, forward_outputs: int) -> Saved:
    outputs = pytree.tree_leaves(forward.graph.find_nodes(op="output")[0].args)
    total = not_primal = 0
    names = []
    for node in outputs[forward_outputs:]:
        names.append(node.name)
        value = node.meta["val"]
        if isinstance(value, torch.Tensor):
            size = value.numel() * value.dtype.itemsize
            total += size
            not_primal += 0 if node.op == "placeholder" else size
    return Saved(total, not_primal, names)


def main() -> None:
    """The command line: see the top of this file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", default=YARDSTICKS)
    parser.add_argument("--out", type=Path, help="directory for the graphs and figures.json")
    parser.add_argument("--dialect", choices=DIALECTS, default="inductor")
    options = parser.parse_args()
    unknown = set(options.names) - set(MODELS)
    if unknown:
        parser.error(f"unknown models: {', '.join(sorted(unknown))}")
    joints = [stock_joint(name, options.dialect) for name in options.names]
    for joint in joints:
        print(
            f"{joint.model}: {joint.forward_outputs} forward outputs; bytes saved:"
            f" min-cut {joint.min_cut.bytes}"
            f" (counting parameters {joint.min_cut_counting_parameters.bytes}),"
            f" default {joint.default.bytes}"
        )
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        for joint in joints:
            (options.out / f"{joint.model}.py").write_text(joint.text)
        figures = {joint.model: asdict(joint) for joint in joints}
        for figure in figures.values():
            del figure["text"]
        (options.out / "figures.json").write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
