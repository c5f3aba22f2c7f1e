"""The toolbox on Python programs: every kind of fault of every kind of backend is reduced to relu.

One call of the compiled function is enough, as in PyTorch.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from support.command import BINARY, environment

PROGRAM = Path(__file__).parent / "programs" / "faulty_backend.py"
LEVELS = {"compile_error": "2", "runtime_error": "2", "accuracy": "4", "abort": "3"}
PYTHON = ("registered", "direct")
FAST = {("dynamo", "direct", "runtime_error"), ("aot", "aot_eager", "accuracy"),
        ("dynamo", "registered", "abort")}  # fmt: skip
MATRIX = [
    pytest.param(*case, marks=[] if case in FAST else pytest.mark.slow)
    for case in [
        *(("dynamo", how, kind) for how in ("eager", "aot_eager", *PYTHON) for kind in LEVELS),
        *(("aot", "aot_eager", kind) for kind in LEVELS),
    ]
]


def run(how: str, kind: str, tmp_path: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    fault = "" if how in PYTHON else f"relu:{kind}"
    return subprocess.run(
        [sys.executable, "-m", "assay", str(PROGRAM), how, kind],
        cwd=tmp_path,
        env=environment(ASSAY_BINARY=str(BINARY), ASSAY_INJECT_FAULT=fault, **settings),
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def calls_in(repro: Path) -> list[str]:
    forward = repro.read_text().split("def forward")[1].split("return")[0]
    lines = [line.strip() for line in forward.splitlines()]
    return [line for line in lines if " = torch" in line and not line.startswith("#")]


def reduce_after_crash(done: subprocess.CompletedProcess[str], kind: str, tmp_path: Path) -> Path:
    """By the command that the log has for a Python backend, or the plain one."""
    [launcher] = tmp_path.glob("torch_compile_debug/*/minifier/minifier_launcher.py")
    told = re.search(r"reduce it with:\n.*?((?:\w+=\S* )+)assay (reduce .*)", done.stderr)
    settings = {"ASSAY_INJECT_FAULT": f"relu:{kind}"} if told is None else {}
    arguments = ["reduce", str(launcher)]
    if told is not None:
        settings = dict(word.split("=", 1) for word in shlex.split(told[1]))
        arguments = shlex.split(told[2])
    reduced = subprocess.run(
        [str(BINARY), *arguments, "--output", "reduced"],
        cwd=tmp_path,
        env=environment(**settings),
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert reduced.returncode == 0, reduced.stdout + reduced.stderr
    return tmp_path / "reduced" / "repro.py"


@pytest.mark.parametrize(("after", "how", "kind"), MATRIX)
def test_a_fault_is_reduced_to_relu(after: str, how: str, kind: str, tmp_path: Path) -> None:
    done = run(
        how, kind, tmp_path,
        TORCHDYNAMO_REPRO_AFTER=after, TORCHDYNAMO_REPRO_LEVEL=LEVELS[kind], ASSAY_REDUCE="now",
    )  # fmt: skip
    assert done.returncode != 0, done.stderr
    repro = tmp_path / "repro.py"
    if kind == "abort":
        repro = reduce_after_crash(done, kind, tmp_path)
    assert repro.exists(), done.stderr[-3000:]
    [call] = calls_in(repro)
    assert "relu" in call


def test_level_1_writes_the_graph_only(tmp_path: Path) -> None:
    done = run(
        "direct", "compile_error", tmp_path,
        ASSAY_REPRO_AFTER="dynamo", ASSAY_REPRO_LEVEL="1",
    )  # fmt: skip
    assert "BackendCompilerFailed" in done.stderr
    assert len(calls_in(tmp_path / "repro.py")) > 1
    assert not list(tmp_path.glob("torch_compile_debug/*/minifier/minifier_launcher.py"))


def test_without_gradients_and_tolerant(tmp_path: Path) -> None:
    done = run(
        "direct", "accuracy", tmp_path,
        ASSAY_REPRO_AFTER="dynamo", ASSAY_REPRO_LEVEL="4", ASSAY_REPRO_FORWARD_ONLY="1",
        ASSAY_REPRO_TOLERANCE="100", ASSAY_REPRO_IGNORE_NON_FP="1",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "repro.py").exists()


def test_only_shapes_of_inputs_and_no_reduction(tmp_path: Path) -> None:
    done = run(
        "direct", "compile_error", tmp_path,
        ASSAY_REPRO_AFTER="dynamo", ASSAY_REPRO_INPUTS="shapes", ASSAY_REDUCE="launcher",
    )  # fmt: skip
    assert done.returncode == 1
    [launcher] = tmp_path.glob("torch_compile_debug/*/minifier/minifier_launcher.py")
    assert "(4, 4)" in launcher.read_text()
    assert not list(tmp_path.glob("torch_compile_debug/*/minifier/checkpoints/storages/*"))
    assert not (tmp_path / "repro.py").exists()
