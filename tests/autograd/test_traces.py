"""What `assay.aot.trace` gives: two halves that stock PyTorch runs, made of what they should be."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.utils._pytree as pytree
from torch import Tensor

import assay
from autograd.compare import SEED, leaf, plain, tensors_in
from autograd.printed import bytes_of, load, placeholders
from autograd.programs_traced import TRACED

every_program = pytest.mark.parametrize("name", TRACED)
every_partitioner = pytest.mark.parametrize("partitioner", ["default", "min_cut"])


def traced(name: str, **options: Any) -> tuple[assay.aot.Trace, Any, list[Tensor]]:
    """The trace of a program of the list, the program, and its inputs."""
    torch.manual_seed(SEED)
    program = TRACED[name].build()
    inputs = list(TRACED[name].make())
    return assay.aot.trace(program, inputs, **options), program, inputs


def eager(program: Any, inputs: list[Tensor]) -> tuple[list[Tensor], list[Tensor], list[Any]]:
    """Results, tangents for them, and gradients of all inputs, None for those without."""
    results = tensors_in(program(*inputs))
    torch.manual_seed(SEED)
    tangents = [torch.randn_like(result) for result in results]
    leaves = [tensor for tensor in inputs if tensor.requires_grad]
    found = iter(torch.autograd.grad(results, leaves, tangents))
    return results, tangents, [next(found) if t.requires_grad else None for t in inputs]


def flat(value: Any) -> list[Any]:
    return list(pytree.tree_leaves(value, is_leaf=lambda item: item is None))


@every_program
@every_partitioner
@pytest.mark.parametrize("decompose", [False, True])
def test_halves_run_under_stock_as_eager_does(name: str, partitioner: str, decompose: bool) -> None:
    trace, program, inputs = traced(name, partitioner=partitioner, decompose=decompose)
    results, tangents, gradients = eager(program, inputs)
    with torch.no_grad():
        outputs = flat(load(trace.forward)(*inputs))
        saved = outputs[len(results) :]
        found = flat(load(trace.backward)(*saved, *tangents))
    tolerance = 1e-5 if decompose else 0.0
    torch.testing.assert_close(
        [*outputs[: len(results)], *[g for g in found if g is not None]],
        [*(t.detach() for t in results), *[g for g in gradients if g is not None]],
        rtol=tolerance,
        atol=tolerance,
    )
    assert [g is None for g in found] == [g is None for g in gradients]


@every_program
@pytest.mark.parametrize("decompose", [False, True])
def test_joint_graph_runs_under_stock_as_eager_does(name: str, decompose: bool) -> None:
    trace, program, inputs = traced(name, decompose=decompose)
    results, tangents, gradients = eager(program, inputs)
    with torch.no_grad():
        found = flat(load(trace.joint)(*inputs, *tangents))
    expected = [*(t.detach() for t in results), *gradients]
    tolerance = 1e-5 if decompose else 0.0
    for left, right in zip(found, expected, strict=True):
        assert (left is None) == (right is None)
        if left is not None:
            torch.testing.assert_close(left, right, rtol=tolerance, atol=tolerance)


@every_program
def test_captured_graph_runs_under_stock_as_eager_does(name: str) -> None:
    trace, program, inputs = traced(name)
    assert len(placeholders(trace.captured)) == len(inputs)
    found = load(trace.captured)(*inputs)
    torch.testing.assert_close(flat(found), flat(program(*inputs)), rtol=0, atol=0)


@every_program
@every_partitioner
@pytest.mark.parametrize("decompose", [False, True])
def test_saved_bytes_are_those_of_the_saved_tensors(
    name: str, partitioner: str, decompose: bool
) -> None:
    trace, program, inputs = traced(name, partitioner=partitioner, decompose=decompose)
    taken = placeholders(trace.backward)
    saved = [text for name, text in taken.items() if not name.startswith("tangents")]
    assert trace.saved_bytes == sum(bytes_of(text) for text in saved)
    results, _, _ = eager(program, inputs)
    kept = flat(load(trace.forward)(*inputs))[len(results) :]
    assert trace.saved_bytes == sum(t.numel() * t.element_size() for t in kept)


@every_program
@pytest.mark.parametrize("decompose", [False, True])
def test_min_cut_never_saves_more(name: str, decompose: bool) -> None:
    default, _, _ = traced(name, partitioner="default", decompose=decompose)
    min_cut, _, _ = traced(name, partitioner="min_cut", decompose=decompose)
    assert min_cut.saved_bytes <= default.saved_bytes
    assert min_cut.joint == default.joint


def test_min_cut_saves_less_where_something_is_cheap_to_redo() -> None:
    def program(x: Tensor) -> Tensor:
        return x.sin().cos().exp().sin()

    default = assay.aot.trace(program, (leaf(64),), partitioner="default")
    min_cut = assay.aot.trace(program, (leaf(64),), partitioner="min_cut")
    assert min_cut.saved_bytes == 64 * 4
    assert default.saved_bytes > 64 * 4


@pytest.fixture(scope="module")
def decomposed_operators(assay_binary: Path) -> set[str]:
    """As `assay decompositions` lists them, but those that are made of another of their kind."""
    done = subprocess.run([assay_binary, "decompositions"], capture_output=True, text=True)
    rows = re.findall(r"^\s*aten::(\S+)\s+(.*)$", done.stdout, re.MULTILINE)
    assert len(rows) > 100
    kept = {name for name, made_of in rows if name.partition(".")[0] in made_of.split(", ")}
    return {name if "." in name else f"{name}.default" for name, _ in rows if name not in kept}


@every_program
def test_no_decomposed_operator_is_left(name: str, decomposed_operators: set[str]) -> None:
    before, _, _ = traced(name)
    after, _, _ = traced(name, decompose=True)

    def used(trace: assay.aot.Trace) -> set[str]:
        text = trace.joint + trace.forward + trace.backward
        return set(re.findall(r"torch\.ops\.aten\.(\w+\.\w+)\(", text)) & decomposed_operators

    assert used(before), "this program has nothing to decompose"
    assert used(after) == set()


# --- Where nodes come from ------------------------------------------------------------------------


def _origins(text: str) -> dict[str, str]:
    """For each node of a printed graph, the last comment before it that names a file."""
    origins = {}
    where = ""
    for line in text.splitlines():
        line = line.strip()
        if line.startswith("# File:") or "No stacktrace" in line:
            where = line
        elif match := re.match(r"(\w+)(?:: \"[^\"]*\")? = ", line):
            origins[match[1]] = where
    return origins


def _two_lines(x: Tensor, w: Tensor) -> Tensor:
    y = torch.mm(x, w)
    return torch.nn.functional.gelu(y)


@pytest.mark.parametrize("decompose", [False, True])
def test_nodes_carry_the_line_of_the_program(decompose: bool) -> None:
    trace = assay.aot.trace(_two_lines, (leaf(3, 4), leaf(4, 2)), decompose=decompose)
    first = _two_lines.__code__.co_firstlineno
    matmul, gelu = (f"{Path(__file__).name}:{first + line}" for line in (1, 2))
    for half in (trace.forward, trace.backward, trace.joint):
        origins = _origins(half)
        assert origins
        for where in origins.values():
            assert matmul in where or gelu in where, half
    backward = _origins(trace.backward)
    assert all(matmul in where for name, where in backward.items() if name.startswith("mm"))
    assert any(gelu in where for where in backward.values())


# --- Traces of other things -----------------------------------------------------------------------


def test_nothing_requires_a_gradient() -> None:
    trace = assay.aot.trace(lambda x: x.sin() * 2, (plain(3),))
    assert (trace.backward, trace.saved_bytes) == ("", 0)
    x = plain(3)
    torch.testing.assert_close(flat(load(trace.forward)(x)), [x.sin() * 2], rtol=0, atol=0)


def test_parameters_are_inputs_after_those_given() -> None:
    module = torch.nn.Linear(4, 2)
    trace = assay.aot.trace(module, (plain(3, 4),))
    names = list(placeholders(trace.captured))
    assert names == ["input_0", "captured_0", "captured_1"]
    assert len(placeholders(trace.forward)) == 3


def test_a_graphs_text_is_traced_like_its_function() -> None:
    inputs = (leaf(3, 4), leaf(4, 2))
    trace = assay.aot.trace(_two_lines, inputs)
    again = assay.aot.trace(trace.captured, inputs)
    assert _without_comments(again.joint) == _without_comments(trace.joint)
    assert again.saved_bytes == trace.saved_bytes


def _without_comments(text: str) -> list[str]:
    lines = [line for line in text.splitlines() if line.strip()]
    return [line for line in lines if not line.strip().startswith("#")]


def test_a_trace_changes_nothing() -> None:
    module = torch.nn.BatchNorm1d(4)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    x = plain(3, 4)
    copy = x.clone()
    torch.manual_seed(SEED)
    state = torch.get_rng_state()
    assay.aot.trace(lambda x: torch.dropout(module(x.mul_(2)), 0.5, True), (x,))
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(x, copy)
    for name, value in module.state_dict().items():
        assert torch.equal(value, before[name]), name
    assert all(parameter.grad is None for parameter in module.parameters())


def test_an_unknown_partitioner_is_an_error() -> None:
    with pytest.raises(assay.UserError, match="unknown partitioner 'max_cut'"):
        assay.aot.trace(torch.sin, (leaf(3),), partitioner="max_cut")
