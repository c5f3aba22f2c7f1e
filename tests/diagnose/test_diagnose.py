"""What `assay diagnose` says about scripts that fail, and about scripts that do not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from diagnose.diagnosing import diagnose
from support.command import assay

SCRIPT = """
import sys, torch
torch.manual_seed(0)
layers = [torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 8), torch.nn.Tanh()]
torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = sys.argv[1] if sys.argv[1:] else None
model = torch.compile(torch.nn.Sequential(*layers))
print(model(torch.randn(4, 8)).sum())
"""


def test_a_compile_error_is_reduced_to_its_operator(tmp_path: Path) -> None:
    found = diagnose(tmp_path, SCRIPT, "compile_error")
    verdict = found.verdict
    assert found.code == 1
    assert (verdict["status"], verdict["stage"], verdict["step"]) == (
        "fails",
        "inductor",
        "compile",
    )
    assert verdict["calls"] == ["torch.nn.functional.relu"]
    assert verdict["signature"]["type"] == "torch._inductor.exc.CppCompileError"
    assert verdict["guilty_pass"]["subsystem"] == "lowerings"
    assert verdict["rungs"]["aot_eager_decomp_partition"] == "passes"
    # The report is complete, and the repro in it is a file that runs.
    for part in ("The smallest program", "torch.nn.functional.relu", "Versions", "2.13.0"):
        assert part in found.report
    history = json.loads((found.directory / "history.json").read_text())
    assert [step["name"] for step in history["steps"]][:2] == ["eager", "compiled"]
    shown = assay("show", found.directory / "repro.py")
    assert shown.code == 0 and "relu" in shown.out
    # `assay report` shows it again.
    again = assay("report", found.directory)
    assert again.code == 0 and again.out == found.report


def test_nothing_fails(tmp_path: Path) -> None:
    found = diagnose(tmp_path, SCRIPT)
    assert found.code == 0
    assert found.verdict["status"] == "fine"
    assert found.verdict["summary"].startswith("Nothing fails")
    assert not (found.directory / "repro.py").exists()


def test_a_script_that_fails_in_eager_too(tmp_path: Path) -> None:
    text = "import torch\ntorch.compile(lambda x: x @ x)(torch.ones(2, 3))\n"
    found = diagnose(tmp_path, text)
    assert found.code == 1
    assert found.verdict["status"] == "fails_in_eager"
    assert "torch.compile is not at fault" in found.verdict["summary"]


def test_a_script_chooses_how_processes_start(tmp_path: Path) -> None:
    """It may do so once, and nothing that was imported before it has."""
    text = """
import multiprocessing, torch
multiprocessing.set_start_method("spawn")
print(torch.compile(torch.sin)(torch.ones(2)))
"""
    assert diagnose(tmp_path, text).verdict["status"] == "fine"


def test_random_numbers_are_not_a_failure(tmp_path: Path) -> None:
    text = """
import os, torch
print("process", os.getpid())
print(torch.compile(lambda x: torch.nn.functional.dropout(x))(torch.ones(64)))
"""
    found = diagnose(tmp_path, text)
    assert found.code == 0, found.verdict
    assert any("random numbers only" in note for note in found.verdict["notes"])
    assert any("two eager runs print different things" in note for note in found.verdict["notes"])


def test_a_failure_in_dynamo_is_reduced_on_the_syntax_tree(tmp_path: Path) -> None:
    text = """
import torch

def helper(x, unused=3):
    y = x + 1
    if x.ndim > 0:
        print("not traced")
    return y * 2

def model(x, scale=2.0):
    x = torch.sin(x) * scale
    for _ in range(3):
        x = torch.cos(x)
    return helper(x)

print("before")
result = torch.compile(model, fullgraph=True)(torch.ones(3))
print(result)
"""
    found = diagnose(
        tmp_path, text.replace('print("not traced")', "id(open)\n        open('/dev/null')")
    )
    verdict = found.verdict
    assert found.code == 1
    assert (verdict["stage"], verdict["step"]) == ("dynamo", "capture")
    assert verdict["frame"]["function"] == "helper"
    small = (found.directory / "repro.py").read_text()
    assert "open(" in small and "fullgraph=True" in small
    assert "cos" not in small and "before" not in small
    assert small in found.report


def test_a_caught_failure_is_found_all_the_same(tmp_path: Path) -> None:
    text = SCRIPT.replace(
        "print(model(torch.randn(4, 8)).sum())",
        "try:\n    model(torch.randn(4, 8))\nexcept Exception:\n    print('went on')",
    )
    found = diagnose(tmp_path, text, "compile_error", options=("--no-reduce",))
    assert found.code == 1
    assert found.verdict["stage"] == "inductor"


def test_bad_usage(tmp_path: Path) -> None:
    done = assay("diagnose", "there_is_none.py", cwd=tmp_path)
    assert done.code == 2 and "there is no file 'there_is_none.py'" in done.err
    done = assay("diagnose", "--budget", "-1", "x.py", cwd=tmp_path)
    assert done.code == 2
    done = assay("report", tmp_path)
    assert done.code == 2 and "is not a directory that" in done.err


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["runtime_error", "accuracy"])
def test_other_faults_of_inductor(kind: str, tmp_path: Path) -> None:
    found = diagnose(tmp_path, SCRIPT, kind)
    assert found.code == 1
    assert found.verdict["stage"] == "inductor"
    assert found.verdict["calls"] == ["torch.nn.functional.relu"]
    expected = {"runtime_error": "exception", "accuracy": "accuracy"}[kind]
    assert found.verdict["kind"] == found.verdict["signature"]["kind"] == expected


@pytest.mark.slow
def test_a_failure_that_needs_backward(tmp_path: Path) -> None:
    text = """
import torch, torch._inductor.lowering as lowering
target = torch.ops.aten.sigmoid_backward.default
def wrong(*args, **kwargs):
    raise RuntimeError("no lowering today")
lowering.lowerings[torch.ops.aten.le.Scalar] = wrong
x = torch.randn(5, requires_grad=True)
y = torch.compile(lambda x: torch.relu(torch.sin(x) * 2))(x)
y.sum().backward()
"""
    found = diagnose(tmp_path, text)
    assert found.code == 1
    assert found.verdict["status"] == "fails"
