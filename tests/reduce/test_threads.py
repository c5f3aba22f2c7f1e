"""Failures that need threads: found by `run --accuracy`, and reduced with threads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from reduce.reducing import reduce
from support.command import assay, environment, graph_file

BODY = "a = torch.sin(x)\nb = torch.relu(a)\nc = torch.cos(b)\nreturn (c,)"
OURS = ["--backend", "aot_eager", "--inject", "relu:accuracy:threads"]
TORCH = ["--stack", "torch", "--backend", "inductor", "--trust"]
ENV = {"ASSAY_PYTHON": sys.executable}
# Inductor's relu, wrong with more than one thread.
STOCK_FAULT = """
import torch
from torch._inductor import lowering
relu = lowering.lowerings[torch.ops.aten.relu.default]
def wrong_with_threads(x):
    if torch.get_num_threads() == 1:
        return relu(x)
    return lowering.lowerings[torch.ops.aten.add.Tensor](relu(x), 1)
lowering.lowerings[torch.ops.aten.relu.default] = wrong_with_threads
"""


def prepare(stack: str, directory: Path) -> tuple[Path, list[str]]:
    file = graph_file(directory, BODY)
    if stack == "assay":
        return file, OURS
    file.write_text(STOCK_FAULT + file.read_text())
    return file, TORCH


@pytest.mark.parametrize("stack", ["assay", "torch"])
def test_a_failure_that_needs_threads_is_found_and_reduced(stack: str, tmp_path: Path) -> None:
    file, options = prepare(stack, tmp_path)
    options = [*options, "--accuracy"]
    result = assay("run", file, *options, "--threads", "2", env=ENV, timeout=300)
    assert result.code == 1
    assert result.out.startswith("failed: differs from eager (values)")
    assert "it needs threads: it fails with 2, but not with one" in result.out
    assert assay("run", file, *options, "--threads", "1", env=ENV, timeout=300).code == 0

    reduced = reduce(file, tmp_path / "out", *options, "--threads", "2", env=ENV, timeout=600)
    report = reduced.report
    assert report["status"] == "reduced", report
    assert (report["threads"], report["needs_threads"]) == (2, True)
    assert report["calls"] == 1
    assert "relu" in reduced.graph[0]
    assert (report["reproduced"], report["runs"]) == (5, 5)
    assert "--accuracy --threads 2\n" in reduced.text, "how to see it"


def test_the_default_is_pytorchs(tmp_path: Path) -> None:
    asked = [sys.executable, "-c", "import torch; print(torch.get_num_threads())"]
    done = subprocess.run(asked, capture_output=True, env=environment(), check=True)
    file = graph_file(tmp_path, BODY)
    found = assay("run", file, *OURS, "--accuracy", "--json").json()
    assert found["threads"] == int(done.stdout)
    assert found["status"] == ("failed" if found["threads"] > 1 else "ok")
    alone = assay("run", file, *OURS, "--accuracy", "--json", env={"OMP_NUM_THREADS": "1"})
    assert alone.code == 0
    assert alone.json()["threads"] == 1


@pytest.mark.parametrize("kind", ["runtime_error", "abort", "hang"])
def test_any_kind_of_failure_can_need_threads(kind: str, tmp_path: Path) -> None:
    file = graph_file(tmp_path, BODY)
    fault = ["--backend", "aot_eager", "--inject", f"relu:{kind}:threads", "--threads", "2"]
    result = assay("run", file, *fault, "--isolated", "--timeout", "1")
    assert result.code == 1
    assert "it needs threads" in result.out


def test_one_thread_is_used_when_it_is_enough(tmp_path: Path) -> None:
    file = graph_file(tmp_path, BODY)
    fault = ["--backend", "aot_eager", "--inject", "relu:accuracy", "--threads", "2"]
    found = assay("run", file, *fault, "--accuracy", "--json").json()
    assert (found["threads"], found["needs_threads"]) == (2, False)
    reduced = reduce(file, tmp_path / "out", *fault)
    assert (reduced.report["threads"], reduced.report["needs_threads"]) == (1, False)
    assert "--threads" not in reduced.text


def test_a_fault_that_comes_and_goes_does_not_seem_to_need_threads(tmp_path: Path) -> None:
    file = graph_file(tmp_path, BODY)
    fault = ["--backend", "aot_eager", "--inject", "relu:abort:50%", "--threads", "2"]
    reduced = reduce(file, tmp_path / "out", *fault)
    assert reduced.report["status"] == "reduced"
    assert (reduced.report["threads"], reduced.report["needs_threads"]) == (1, False)
