"""`assay show`: what is in a graph file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.command import FIXTURES, assay, graph_file

LAUNCHER = FIXTURES / "linear_layernorm_relu" / "dynamo_launcher.py"
RUNNABLE = FIXTURES / "linear_layernorm_relu" / "forward_runnable.py"
DYNAMIC = FIXTURES / "dynamic_mlp" / "forward_symbolic_launcher.py"
NO_BODIES = FIXTURES / "higher_order" / "inference_runnable.py"


def test_text_lists_inputs_operators_and_largest_tensors() -> None:
    result = assay("show", LAUNCHER)
    assert (result.code, result.err) == (0, "")
    title, inputs, operators, largest = result.out.split("\n\n")
    assert title == f"{LAUNCHER}: 9 nodes (5 inputs, 3 calls), after_dynamo"
    assert inputs.splitlines()[0] == "inputs"
    assert "  l_args_0_                          f32[10, 10][10, 1]cpu" in inputs.splitlines()
    assert operators.splitlines()[1:] == [
        "  1  torch._C._nn.linear",
        "  1  torch.nn.functional.layer_norm",
        "  1  torch.nn.functional.relu",
    ]
    assert largest.splitlines()[0] == "largest tensors"
    assert len(largest.splitlines()) == 6


def test_text_shows_symbols() -> None:
    out = assay("show", DYNAMIC).out
    assert "symbols: s27 = 7, s77 = 5\n" in out


def test_json_has_the_same_facts() -> None:
    report = assay("show", RUNNABLE, "--json").json()
    assert report["nodes"] == 19
    assert report["calls"] == 13
    assert report["stage"] == "after_aot"
    assert report["symbols"] == {}
    assert report["operators"]["aten.mul.Tensor"] == 2
    assert sum(report["operators"].values()) == report["calls"]
    assert [node["name"] for node in report["inputs"]] == [f"primals_{i}" for i in range(1, 6)]
    sizes = [tensor["bytes"] for tensor in report["largest_tensors"]]
    assert sizes == sorted(sizes, reverse=True)
    assert "shapes_missing" not in report


def test_dot_is_one_graph_with_an_edge_for_every_use() -> None:
    out = assay("show", LAUNCHER, "--dot").out
    lines = out.strip().splitlines()
    assert lines[0] == 'digraph "Repro" {'
    assert lines[-1] == "}"
    quoted = r'"(?:[^"\\]|\\.)*"'
    node = re.compile(rf"  ({quoted}) \[label={quoted}(, \w+=(?:\w+|{quoted}))*\];")
    edge = re.compile(rf"  ({quoted}) -> ({quoted});")
    names = {match[1] for line in lines if (match := node.fullmatch(line))}
    edges = [match.groups() for line in lines if (match := edge.fullmatch(line))]
    assert len(names) == 9
    assert len(edges) == 8
    assert all(end in names for pair in edges for end in pair)
    assert len(lines) == 2 + 2 + len(names) + len(edges)  # braces, two settings
    assert r"torch.nn.functional.relu\nf32[10, 10][10, 1]cpu requires_grad" in out


@pytest.mark.parametrize("file", [LAUNCHER, RUNNABLE, DYNAMIC], ids=lambda path: path.stem)
def test_code_is_read_again_and_printed_the_same(file: Path, tmp_path: Path) -> None:
    code = assay("show", file, "--code").out
    assert code.startswith("class Repro(torch.nn.Module):\n")
    again = tmp_path / "again.py"
    again.write_text(code)
    assert assay("show", again, "--code", "--no-run").out == code


def test_code_runs_with_stock_pytorch(tmp_path: Path) -> None:
    import torch

    source = graph_file(tmp_path, "relu = torch.relu(x)\nadd = relu + 1\nreturn (add,)")
    names: dict[str, object] = {"torch": torch}
    exec(assay("show", source, "--code").out, names)
    module = names["Repro"]
    assert isinstance(module, type)
    x = torch.randn(4, 4)
    assert torch.equal(module()(x)[0], torch.relu(x) + 1)


def test_a_graph_that_cannot_run_is_still_shown() -> None:
    result = assay("show", NO_BODIES)
    assert result.code == 0
    assert "  1  higher_order.cond\n" in result.out
    assert "note: shapes are unknown, because the graph did not run: " in result.out
    assert "the body of the subgraph 'true_graph_0' is not in the file" in result.out
    report = assay("show", NO_BODIES, "--json").json()
    assert "true_graph_0" in report["shapes_missing"]
    assert report["inputs"][0] == {"name": "arg0_1", "type": "?"}


def test_no_run_leaves_unknown_shapes_unknown() -> None:
    out = assay("show", RUNNABLE, "--no-run").out
    assert "  primals_1  ?\n" in out
    assert "largest tensors" not in out
