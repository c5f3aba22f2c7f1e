"""`assay.compare` from Python: what only Python has, and programs against the models of stock."""

from __future__ import annotations

import dataclasses
import types
from collections import OrderedDict, deque
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch._dynamo import testing as stock_testing

import assay
from assay import compare
from stock.make_files import ensure_files

MODELS = ["linear_layernorm_relu", "gpt2_small", "gpt2_small_train", "resnet_train", "mutation"]


@dataclasses.dataclass
class Output:
    """As models return them."""

    loss: torch.Tensor
    logits: torch.Tensor | None = None


ONE, TWO = torch.ones(2), torch.full((2,), 2.0)

# Pairs that are not the same, and what is said of them. Each is the same as itself.
PAIRS: list[tuple[Any, Any, str, str]] = [
    (Output(ONE, TWO), Output(ONE, ONE), "values", "['logits']"),
    (types.SimpleNamespace(a=ONE), types.SimpleNamespace(a=TWO), "values", "['a']"),
    (OrderedDict(a=ONE), OrderedDict(a=TWO), "values", "['a']"),
    (deque([ONE]), deque([TWO]), "values", "[0]"),
    ({1: ONE}, {1: TWO}, "values", "['1']"),
    ({1, 2}, {1, 3}, "structure", ""),
    (np.ones(2), np.zeros(2), "values", "['ndarray']"),
    (np.ones(2), ONE, "structure", ""),
    (np.float32(1), np.float32(2), "structure", ""),
    (np.int64(1), 1, "structure", ""),
]


@pytest.mark.parametrize(("left", "right", "kind", "where"), PAIRS)
def test_what_only_python_has(left: Any, right: Any, kind: str, where: str) -> None:
    found = compare.same(left, right)
    assert (found.kind, found.where) == (kind, where)
    assert compare.same(left, left)
    assert compare.same(right, right)


def test_relaxed_numpy_equality() -> None:
    left, right = {"n": [np.int64(3)]}, {"n": [3]}
    assert not compare.same(left, right)
    assert compare.same(left, right, relax_numpy_equality=True)


def test_a_misspelt_option() -> None:
    with pytest.raises(TypeError, match="tolerance"):
        compare.same(1, 1, tolerance=3)


@pytest.mark.parametrize("name", MODELS)
def test_backends_agree_with_eager(name: str, stock_root: Path) -> None:
    for file in ensure_files(name, stock_root):
        repro = assay.load(stock_root / name / file.file)
        if repro.stage != "after_dynamo":
            continue
        inputs, _ = repro.inputs()
        backend = assay.aot.compile(repro.code, backend="aot_eager")
        found = compare.same_two_models(repro, backend, inputs, require_fp64=True)
        assert found.same, found.comparison


@pytest.mark.parametrize("name", MODELS[:-1])
def test_a_wrong_backward_is_found(name: str, stock_root: Path) -> None:
    """Right results whose gradients are those of something else."""
    for file in ensure_files(name, stock_root):
        repro = assay.load(stock_root / name / file.file)
        if repro.stage != "after_dynamo":
            continue
        inputs, _ = repro.inputs()
        graph = assay.parse(repro.code)

        def wrong(*values: Any, graph: assay.Graph = graph) -> list[Any]:
            results = graph(*values)
            return [out * 2 - out.detach() if out.requires_grad else out for out in results]

        found = compare.same_two_models(repro, wrong, inputs)
        assert not found.same
        assert found.comparison.where.startswith("gradient["), found.comparison
        assert compare.same_two_models(repro, wrong, inputs, only_forward=True).same


def test_the_programs_exception_is_raised() -> None:
    code = assay.parse("class Repro:\n    def forward(self, x):\n        return (x + 1,)\n")

    def broken(x: torch.Tensor) -> None:
        raise KeyError("no kernel")

    with pytest.raises(KeyError, match="no kernel"):
        compare.same_two_models(code, broken, [ONE])


def test_losses_are_stocks() -> None:
    outputs = [torch.randn(3, 4), [torch.randn(2), (torch.randn(3), torch.arange(4))]]
    for output in (*outputs, outputs, {"a": outputs[0], "b": outputs[1]}):
        loss = compare.reduce_to_scalar_loss(output)
        torch.testing.assert_close(loss, stock_testing.reduce_to_scalar_loss(output))
        assert compare.requires_bwd_pass(output) is False
    assert compare.requires_bwd_pass(Output(torch.ones(1, requires_grad=True)))


def test_results_of_a_run() -> None:
    x = torch.zeros(2, requires_grad=True)
    results = compare.run_fwd_maybe_bwd(torch.sin, [x])
    torch.testing.assert_close(results.gradients, [torch.tensor([0.5, 0.5])])
    assert x.grad is None
    assert compare.run_fwd_maybe_bwd(torch.sin, [x], only_forward=True).gradients[0].sum() == 0
    assert compare.collect_results(ONE, [ONE]).gradients == [None]


def test_the_graph_in_float64() -> None:
    text, values = compare.cast_to_fp64(
        "class Repro:\n    def forward(self, x):\n        return (x.half() + 1,)\n", [ONE]
    )
    [result] = assay.parse(text)(*values)
    assert result.dtype == torch.float64


def test_a_kernel_for_one_call() -> None:
    code = (
        "class Repro:\n    def forward(self, x):\n        sin = torch.sin(x)\n"
        "        exp = torch.exp(sin)\n        return (exp,)\n"
    )

    def kernel(node: str, target: str, values: list[Any]) -> Any:
        return eval(target)(*values) * (1.01 if node == "exp" else 1)

    found = compare.first_divergence(code, kernel, [ONE])
    assert found is not None
    assert (found.node, found.call) == ("exp", "torch.exp(sin)")
