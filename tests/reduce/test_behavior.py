"""What else can be wrong than numbers: found by `run --accuracy`, each as a kind of its own, and
reduced to the call that has it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from reduce.chains import program_file
from reduce.reducing import reduce
from support.command import assay

# For each kind: the calls of a program, the operator that is wrong, and where that shows. What is
# wrong about one call must not change the numbers of others, or that would be the failure.
CHAIN = ["a = torch.sin(x)", "b = torch.relu(a)", "c = torch.cos(b)"]
PROGRAMS: dict[str, tuple[list[str], str, str]] = {
    "strides": (CHAIN, "relu", "output[1]"),
    "aliasing": (["a = torch.sin(x)", "b = x.view(36)", "c = torch.cos(a)"], "view", "output[1]"),
    "mutation": (
        ["a = torch.sin(w)", "b = torch.relu(x)", "c = torch.cos(a)"],
        "relu",
        "input['x']",
    ),
    "second_call": (CHAIN, "relu", "output[1]"),
    "exception": (
        ["a = torch.sin(x)", "b = torch.linalg.cholesky(a)", "c = torch.cos(b)"],
        "cholesky",
        "",
    ),
}
# The same faults in a backend of Dynamo's, in place of its `eager`.
STOCK_FAULT = """
import torch
from torch._dynamo.backends import registry
calls = []
def strides(result, operand):
    return torch.stack([result, result], -1).select(-1, 0)
def aliasing(result, operand):
    return result.clone()
def mutation(result, operand):
    operand.detach().eq_(0)
    return result
def second_call(result, operand):
    calls.append(1)
    return result if len(calls) == 1 else result + 1
def faulty(module, inputs):
    for node in list(module.graph.nodes):
        if getattr(node.target, "__name__", node.target) != "{op}":
            continue
        with module.graph.inserting_after(node):
            if "{kind}" == "exception":
                fault = module.graph.call_function(torch.clone, (node.args[0],))
                node.replace_all_uses_with(fault)
                module.graph.erase_node(node)
            else:
                fault = module.graph.call_function({kind}, (node, node.args[0]))
                node.replace_all_uses_with(fault)
                fault.args = (node, node.args[0])
    module.recompile()
    return module.forward
registry._COMPILER_FNS["eager"] = faulty
"""
STOCK_NAMES = {"cholesky": "linalg_cholesky"}
ENV = {"ASSAY_PYTHON": sys.executable}


def prepare(stack: str, kind: str, directory: Path) -> tuple[Path, list[str]]:
    lines, op, _ = PROGRAMS[kind]
    results = [line.split(" = ")[0] for line in lines]
    body = "\n".join([*lines, f"return ({', '.join(results)})"])
    if stack == "torch":
        name = STOCK_NAMES.get(op, op)
        setup = STOCK_FAULT.replace("{op}", name).replace("{kind}", kind)
        return program_file(directory, body, setup), [
            "--stack",
            "torch",
            "--backend",
            "eager",
            "--trust",
        ]
    fault = "no_exception" if kind == "exception" else kind
    return program_file(directory, body), ["--backend", "aot_eager", "--inject", f"{op}:{fault}"]


# With stock's stack one of them is enough for every day.
CASES = [
    pytest.param(
        stack,
        kind,
        marks=pytest.mark.slow if stack == "torch" and kind != "strides" else (),
    )
    for stack in ("assay", "torch")
    for kind in PROGRAMS
]


@pytest.mark.parametrize(("stack", "kind"), CASES)
def test_a_difference_of_each_kind_is_found_and_reduced(
    stack: str, kind: str, tmp_path: Path
) -> None:
    file, options = prepare(stack, kind, tmp_path)
    _, op, where = PROGRAMS[kind]
    result = assay("run", file, *options, "--accuracy", "--json", env=ENV, timeout=300)
    found: dict[str, Any] = result.json()
    assert (found["signature"]["kind"], found["signature"]["type"]) == ("accuracy", kind), found
    assert found["where"] == where
    reduced = reduce(file, tmp_path / "out", *options, "--accuracy", env=ENV, timeout=600)
    report = reduced.report
    assert report["status"] == "reduced", report
    assert report["signature"]["type"] == kind
    assert report["calls"] == 1, reduced.text
    assert op in reduced.graph[0]
    assert report["wrong"]["kind"] == kind
    assert (report["reproduced"], report["runs"]) == (5, 5)


@pytest.mark.parametrize("stack", ["assay", "torch"])
def test_a_right_compiler_raises_no_alarm(stack: str, tmp_path: Path) -> None:
    """Views, strides and in-place changes as eager has them; a program that both refuse."""
    body = "\n".join(
        [
            "a = torch.transpose(x, 0, 1)",
            "b = torch.relu(a)",
            "c = w.add_(1)",
            "d = x.view(36)",
            "e = d[3:9]",
            "f = x + 1",
            "g = x + 1",
            "return (a, b, c, d, e, f, g, x)",
        ]
    )
    options = (
        ["--stack", "torch", "--backend", "inductor"]
        if stack == "torch"
        else ["--backend", "aot_eager"]
    )
    asked = ["--accuracy", "--json"]
    file = program_file(tmp_path, body)
    found = assay("run", file, *options, *asked, env=ENV, timeout=300).json()
    assert found["status"] == "ok", found
    file = program_file(tmp_path, "a = torch.sin(x)\nb = torch.linalg.cholesky(a)\nreturn (b,)")
    found = assay("run", file, *options, *asked, env=ENV, timeout=300).json()
    assert found["signature"]["kind"] == "invalid", found
