"""The samples of PyTorch's troubleshooting guide, unchanged, through `python -m assay`.

`programs/` holds them as the guide prints them; where it leaves a program out (`...`), there is a
small one.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from support.command import BINARY, environment

PROGRAMS = Path(__file__).parent / "programs"


def run(name: str, tmp_path: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "assay", str(PROGRAMS / f"{name}.py")],
        cwd=tmp_path,
        env=environment(ASSAY_BINARY=str(BINARY), **settings),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_tensor_as_key_of_a_dict_works(tmp_path: Path) -> None:
    done = run("assertion_error", tmp_path, TORCH_LOGS="graph_breaks")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_an_operator_that_only_inductor_rejected_runs_as_in_eager(tmp_path: Path) -> None:
    done = run("backend_error", tmp_path)
    assert done.returncode == 0, done.stderr


def test_toy_compiler_fails_with_the_script_alone_in_the_traceback(tmp_path: Path) -> None:
    done = run("toy_compiler", tmp_path)
    assert done.returncode == 1
    assert "BackendCompilerFailed: backend 'toy_compiler' raised:\nAssertionError" in done.stderr
    assert "runpy" not in done.stderr
    assert "__main__.py" not in done.stderr


def test_toy_compiler_is_reduced_to_one_relu(tmp_path: Path) -> None:
    done = run("toy_compiler", tmp_path, TORCHDYNAMO_REPRO_AFTER="dynamo")
    assert done.returncode == 1
    assert "BackendCompilerFailed" in done.stderr
    lines = (tmp_path / "repro.py").read_text().splitlines()
    body = [line.strip() for line in lines[lines.index("class Repro(torch.nn.Module):") :]]
    calls = [line for line in body if " = torch." in line and not line.startswith("#")]
    assert len(calls) == 1, calls
    assert "torch.relu(add)" in calls[0]


def test_explain(tmp_path: Path) -> None:
    done = run("toy_example", tmp_path)
    assert done.returncode == 0, done.stderr
    # The branch on random data has one more operator on one side.
    assert "Dynamo produced 3 graphs, with 2 graph breaks and " in done.stdout
    lines = [line.strip() for line in done.stdout.splitlines()]
    file = PROGRAMS / "toy_example.py"
    assert f'File "{file}", line 5, in toy_example' in lines
    assert 'print("woo")' in lines
    assert f'File "{file}", line 6, in toy_example' in lines
    assert "if b.sum() < 0:" in lines


def test_compile_profiler(tmp_path: Path) -> None:
    done = run("profiler", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Graph Breaks" in done.stdout
    assert "Recompilation" in done.stdout


def test_cache_size_limit_is_that_of_assay(tmp_path: Path) -> None:
    done = run("cache_size_limit", tmp_path)
    assert done.stdout.split() == ["0.0", "1.0", "2.0", "3.0", "4.0", "5.0"]
    assert done.stderr.count("hit cache_size_limit (2)") == 1
    assert "last reason: n is 2, was 1" in done.stderr


def test_steps_in_the_log(tmp_path: Path) -> None:
    done = run("compile_debug", tmp_path, TORCH_LOGS="dynamo")
    assert done.returncode == 0, done.stderr
    steps = [line.split("[dynamo] ")[1] for line in done.stderr.splitlines() if "Step " in line]
    file = PROGRAMS / "compile_debug.py"
    assert steps[0] == f"Step 1: torchdynamo start tracing test_model {file}:3"
    assert "Step 2: calling compiler function native" in steps
    assert "Step 3: compiling forward graph" in steps
    assert steps[-1] == "Step 2: done compiler function native"
    assert "TorchDynamo attempted to trace" not in done.stderr


def test_every_instruction_in_the_log(tmp_path: Path) -> None:
    done = run("toy_example", tmp_path, TORCH_LOGS="+dynamo", TORCHDYNAMO_VERBOSE="1")
    assert "TRACE LOAD_FAST a (toy_example:4)" in done.stderr
    assert "TRACE BINARY_OP / (toy_example:4)" in done.stderr


def test_debug_function_names_what_is_captured(tmp_path: Path) -> None:
    other = run("compile_debug", tmp_path, TORCH_LOGS="graph", TORCHDYNAMO_DEBUG_FUNCTION="other")
    assert other.returncode == 0
    assert "layer_norm" not in other.stderr
    named = run(
        "compile_debug", tmp_path, TORCH_LOGS="graph", TORCHDYNAMO_DEBUG_FUNCTION="test_model"
    )
    assert "layer_norm" in named.stderr


def test_compile_debug_runs(tmp_path: Path) -> None:
    done = run("compile_debug", tmp_path, TORCH_COMPILE_DEBUG="1")
    assert done.returncode == 0, done.stderr
