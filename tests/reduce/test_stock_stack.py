"""Stock PyTorch as the compiler under test: inductor's own faults in files that stock writes."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from reduce.reducing import reduce, stock_file
from reduce.test_robust import processes_below, start, while_running
from support.command import assay, environment, graph_file

STOCK = ["--stack", "torch", "--backend", "inductor"]
ENV = {"ASSAY_PYTHON": sys.executable}
KINDS = ["compile_error", "runtime_error", "accuracy"]


def with_fault(file: Path, kind: str) -> Path:
    """The file with inductor's relu made faulty, as a user's configuration would stand in it."""
    line = f'torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "{kind}"'
    text = re.sub(
        r"^import torch\._inductor\.config$", f"\\g<0>\n{line}", file.read_text(), flags=re.M
    )
    assert line in text
    faulty = file.with_name(f"{kind}_{file.name}")
    faulty.write_text(text)
    return faulty


def check(model: str, stage: str, kind: str, root: Path, tmp_path: Path) -> None:
    file = with_fault(stock_file(model, stage, root), kind)
    # With several threads a relu that is large enough for them throws inside of OpenMP, which
    # aborts the process: another failure.
    threads = ["--threads", "1"] if kind == "runtime_error" else []
    reduced = reduce(file, tmp_path / "out", *STOCK, *threads, env=ENV, timeout=900)
    assert reduced.report["status"] == "reduced", reduced.report
    assert reduced.report["calls"] == 1
    assert "relu" in reduced.graph[0]
    assert (reduced.report["reproduced"], reduced.report["runs"]) == (5, 5)
    assert reduced.report["elements"] <= 16
    expected = {"compile_error": "exception", "runtime_error": "exception", "accuracy": "accuracy"}
    assert reduced.report["signature"]["kind"] == expected[kind]
    # The result is a file like any other, stock's to run too: without Assay it fails the same way.
    if kind == "compile_error" and stage == "after_aot":
        done = subprocess.run(
            [sys.executable, reduced.directory / "repro.py"],
            capture_output=True,
            text=True,
            env=environment(TORCHINDUCTOR_CACHE_DIR=str(tmp_path / "cache")),
            cwd=tmp_path,
        )
        assert done.returncode != 0
        assert "CppCompileError" in done.stderr


@pytest.mark.parametrize(
    ("model", "stage", "kind"),
    [
        ("mlp", "after_aot", "compile_error"),
        ("mlp", "after_dynamo", "accuracy"),
        ("chain", "after_dynamo", "runtime_error"),
    ],
)
def test_inductors_fault_is_reduced_to_its_operator(
    model: str, stage: str, kind: str, stock_root: Path, tmp_path: Path
) -> None:
    check(model, stage, kind, stock_root, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stage", ["after_dynamo", "after_aot"])
@pytest.mark.parametrize("model", ["mlp", "chain", "bert_relu", "gpt2_relu"])
def test_inductors_faults_in_all_models(
    model: str, stage: str, kind: str, stock_root: Path, tmp_path: Path
) -> None:
    check(model, stage, kind, stock_root, tmp_path)
    repro = tmp_path / "out" / "repro.py"
    assert assay("run", repro, *STOCK, "--accuracy", env=ENV, timeout=300).code == 1


@pytest.mark.slow
def test_a_fault_that_threads_turn_into_an_abort_stays_that(
    stock_root: Path, tmp_path: Path
) -> None:
    file = with_fault(stock_file("mlp", "after_aot", stock_root), "runtime_error")
    reduced = reduce(file, tmp_path / "out", *STOCK, "--threads", "2", env=ENV, timeout=900)
    signature = reduced.report["signature"]
    assert (signature["kind"], signature["type"]) == ("signal", "SIGABRT"), reduced.report
    assert (reduced.report["calls"], reduced.report["needs_threads"]) == (1, True)
    assert "relu" in reduced.graph[0]
    # What one thread does, as large or smaller, is a failure too, and listed as another one.
    others = {
        (other["signature"]["kind"], other["signature"]["type"])
        for other in reduced.report["other"]
    }
    assert ("exception", "RuntimeError") in others
    repro = tmp_path / "out" / "repro.py"
    asked = ["run", repro, *STOCK, "--json", "--accuracy"]
    for threads, kind in [("2", "signal"), ("1", "exception")]:
        found = assay(*asked, "--threads", threads, env=ENV, timeout=300).json()
        assert found["signature"]["kind"] == kind


def test_when_every_trial_is_killed_nothing_is_written(stock_root: Path, tmp_path: Path) -> None:
    file = with_fault(stock_file("mlp", "after_aot", stock_root), "compile_error")
    reducer = start(file, tmp_path / "out", *STOCK, "-j", "1", env=ENV)
    # The server, its worker, and then one process for each trial.
    for _ in while_running(reducer, pause=0.002):
        [*servers] = processes_below(reducer.pid)
        depth = {process: _depth(process, reducer.pid) for process in servers}
        for process, levels in depth.items():
            # Not the compilers that the server itself starts while it warms up.
            if levels == 3 and _name(process).startswith("python"):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
    out, _ = reducer.communicate()
    assert reducer.returncode == 1
    assert '"status": "killed"' in out
    assert not (tmp_path / "out" / "repro.py").exists()


def _name(process: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/comm").read_text()
    return ""


def _depth(process: int, ancestor: int) -> int:
    levels = 0
    while process not in (ancestor, 0):
        with contextlib.suppress(OSError, IndexError):
            stat = Path(f"/proc/{process}/stat").read_text()
            process = int(stat.rsplit(")", 1)[1].split()[1])
            levels += 1
            continue
        return 0
    return levels


def test_a_passing_file_is_said_to_pass(tmp_path: Path) -> None:
    file = graph_file(tmp_path, "a = torch.sin(x)\nreturn (a,)")
    result = assay("run", file, *STOCK, "--accuracy", env=ENV, timeout=300)
    assert result.code == 0
    assert "inductor matches eager" in result.out


def test_logs_are_about_the_file_alone(tmp_path: Path) -> None:
    file = graph_file(tmp_path, "a = torch.relu(x)\nreturn (a,)")
    logs = {"TORCH_LOGS": "output_code"}
    result = assay("run", file, *STOCK, env=ENV | logs, timeout=300)
    assert result.code == 0
    assert "cpp_fused_0 = async_compile.cpp_pybinding" in result.err
    assert "softmax" not in result.err, "the server's own first graph"


def test_a_python_without_assay_is_named(tmp_path: Path) -> None:
    file = graph_file(tmp_path, "a = torch.sin(x)\nreturn (a,)")
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.base_prefix}/bin/python3 -I -S "$@"\n')
    bare.chmod(0o755)
    result = assay("run", file, *STOCK, env={"ASSAY_PYTHON": str(bare)})
    assert result.code == 2
    assert "has no package assay" in result.err
    assert "the trial server did not start" in result.err


def test_python_in_the_file_is_not_executed_without_trust(tmp_path: Path) -> None:
    file = graph_file(tmp_path, "a = torch.sin(x)\nreturn (a,)")
    witness = tmp_path / "witness"
    file.write_text(f"open({str(witness)!r}, 'w')\n" + file.read_text())
    assert assay("run", file, *STOCK, env=ENV, timeout=300).code == 0
    assert not witness.exists()
    assert assay("run", file, *STOCK, "--trust", env=ENV, timeout=300).code == 0
    assert witness.exists()
