"""Files that stock PyTorch writes run with Assay, and give stock eager's results to the bit.

The files are made here, by the installed PyTorch, for each model of `stock.models`: after dynamo
and after AOTAutograd, forward and backward, with saved inputs and with made-up ones.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._pytree import tree_leaves

import assay
from stock.compare import assert_identical
from stock.make_files import StockFile, ensure_files, run_file
from stock.models import MODELS

NAMES = [name for name, model in MODELS.items() if not model.large]


def runnable_files(name: str, stock_root: Path) -> list[StockFile]:
    """The files that stock PyTorch itself can run."""
    return [file for file in ensure_files(name, stock_root) if file.expected is not None]


@pytest.mark.parametrize("name", NAMES)
def test_results_equal_stock_eager(name: str, stock_root: Path) -> None:
    for file in runnable_files(name, stock_root):
        path = stock_root / name / file.file
        expected = torch.load(stock_root / name / str(file.expected))
        assert_identical(assay.load(path).run(), expected, f"{name}/{file.file}")


@pytest.mark.parametrize("name", NAMES)
def test_inputs_change_as_in_stock_eager(name: str, stock_root: Path) -> None:
    for file in runnable_files(name, stock_root):
        if file.inputs_after is None:
            continue
        repro = assay.load(stock_root / name / file.file)
        inputs, _ = repro.inputs()
        torch.manual_seed(0)
        with torch.set_grad_enabled(repro.stage != "after_aot"):
            repro.run_with(inputs)
        after = torch.load(stock_root / name / file.inputs_after)
        assert_identical(inputs, after, f"inputs of {name}/{file.file}")


@pytest.mark.parametrize("name", NAMES)
def test_what_assay_prints_runs_under_stock(name: str, stock_root: Path) -> None:
    for file in runnable_files(name, stock_root):
        repro = assay.load(stock_root / name / file.file)
        printed = stock_root / name / f"printed_{file.file}"
        printed.write_text(repro.text)
        assert assay.load(printed).text == repro.text, "reading it back changes it"
        expected = torch.load(stock_root / name / str(file.expected))
        results = run_file(printed, file.kind, file.save_dir)
        assert_identical(results.outputs, expected, f"{name}/{printed.name}")


@pytest.mark.parametrize("name", ["linear_layernorm_relu", "gpt2_small"])
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_assay_run_gives_stock_eagers_outputs(
    name: str, direction: str, stock_root: Path, tmp_path: Path, assay_binary: Path
) -> None:
    """The same through the command, in a process without Python."""
    ensure_files(name, stock_root)
    file = stock_root / name / f"{direction}_runnable.py"
    output = tmp_path / "results.pt"
    subprocess.run([assay_binary, "run", file, "--output", output], check=True, capture_output=True)
    expected = torch.load(stock_root / name / f"{direction}_runnable.expected.pt")
    assert_identical(torch.load(output), expected, f"{name}/{file.name}")


def step(program: Callable[..., Any], inputs: list[Any]) -> tuple[Any, list[torch.Tensor]]:
    """One training step: the results, and the gradients of the inputs."""
    torch.manual_seed(0)
    results = program(*inputs)
    losses = [
        leaf.sum()
        for leaf in tree_leaves(results)
        if isinstance(leaf, torch.Tensor) and leaf.requires_grad and leaf.is_floating_point()
    ]
    leaves = [
        value
        for value in inputs
        if isinstance(value, torch.Tensor) and value.requires_grad and value.is_leaf
    ]
    if not losses or not leaves:
        return results, []
    gradients = torch.autograd.grad(sum(losses[1:], losses[0]), leaves, allow_unused=True)
    return results, list(gradients)


@pytest.mark.parametrize("name", NAMES)
def test_aot_eager_trains_as_eager(name: str, stock_root: Path) -> None:
    """The graphs Dynamo captures, differentiated ahead of time."""
    for file in runnable_files(name, stock_root):
        repro = assay.load(stock_root / name / file.file)
        if repro.stage != "after_dynamo":
            continue
        graph = assay.parse(repro.code)
        eager = step(graph, repro.inputs()[0])
        ours = step(assay.aot.compile(repro.code, backend="aot_eager"), repro.inputs()[0])
        # Recurrent layers run with other kernels when they are differentiated ahead of time.
        if "lstm" in repro.code or "gru" in repro.code:
            torch.testing.assert_close(ours, eager, rtol=1e-5, atol=1e-5)
        else:
            assert_identical(ours, eager, f"{name}/{file.file}")


def test_a_missing_subgraph_is_explained(stock_root: Path) -> None:
    files = ensure_files("higher_order", stock_root)
    repro = assay.load(stock_root / "higher_order" / files[0].file)
    with pytest.raises(assay.UserError, match="the body of the subgraph 'true_graph_0' is not in"):
        repro.run()
