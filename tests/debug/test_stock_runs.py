"""Stock PyTorch runs what the debug wrapper writes, from any directory, with the same inputs."""

from __future__ import annotations

import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._dynamo.debug_utils import InputReader
from torch._dynamo.repro import after_aot, after_dynamo

from debug.program import Run, run_program
from support.command import environment


def run_eagerly(file: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[torch.Tensor, ...]:
    """Execute the file as a program; its call of run_repro loads the inputs and runs eagerly."""
    results: list[Any] = []

    def run_repro(mod: torch.nn.Module, load_args: Any, *, save_dir: str, **_: Any) -> None:
        reader = InputReader(save_dir)
        load_args(reader)
        results.append(mod(*reader.args))

    for module in (after_aot, after_dynamo):
        monkeypatch.setattr(module, "run_repro", run_repro)
    runpy.run_path(str(file), run_name="__main__")
    [result] = results
    return result


def numbers(*sizes: int) -> torch.Tensor:
    """As debug_program makes them."""
    count = torch.Size(sizes).numel()
    return (torch.arange(count, dtype=torch.float32) * 0.5 - 2).reshape(sizes)


def infer(build_directory: Path, directory: Path, after: str, level: int = 2) -> Run:
    """A failure of the program that computes (relu(x / 2)) ** 2 + 1."""
    return run_program(
        build_directory, directory, "infer", after=after, level=level, fault="relu:runtime_error"
    )


EXPECTED = (numbers(4, 3) * 0.5).relu().pow(2) + 1


@pytest.mark.parametrize("after", ["dynamo", "aot"])
def test_files_work_from_another_directory_and_moved(
    build_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: str
) -> None:
    before = tmp_path / "before"
    before.mkdir()
    run = infer(build_directory, before, after, level=1)
    monkeypatch.chdir("/")
    [result] = run_eagerly(run.repro, monkeypatch)
    assert torch.equal(result, EXPECTED)
    [checkpoint] = run.minifier.glob("checkpoints/*.py")
    [result] = run_eagerly(checkpoint, monkeypatch)
    assert torch.equal(result, EXPECTED)

    shutil.move(before, tmp_path / "after")
    [result] = run_eagerly(tmp_path / "after" / "repro.py", monkeypatch)
    assert torch.equal(result, EXPECTED)


def test_the_backward_graph_runs(
    build_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_program(build_directory, tmp_path, "train", after="aot", fault="where:runtime_error")
    w = numbers(3, 2).requires_grad_()
    (numbers(4, 3) @ w).relu().sum().backward()
    results = run_eagerly(run.launcher, monkeypatch)
    assert any(result is not None and torch.equal(result, w.grad) for result in results)


def test_a_bundle_is_one_file(
    build_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = infer(build_directory, tmp_path, "aot")
    bundle = subprocess.run(
        [build_directory / "bin" / "debug_program", "bundle", run.launcher],
        capture_output=True,
        check=True,
    )
    shutil.rmtree(run.minifier)
    file = tmp_path / "bundle.py"
    file.write_bytes(bundle.stdout)
    [result] = run_eagerly(file, monkeypatch)
    assert torch.equal(result, EXPECTED)


def test_a_file_runs_as_a_program(build_directory: Path, tmp_path: Path) -> None:
    run = infer(build_directory, tmp_path, "dynamo", level=1)
    done = subprocess.run(
        [sys.executable, run.repro, "run", "--backend", "eager"],
        capture_output=True,
        text=True,
        cwd="/",
        env=environment(),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "generating random data" not in done.stderr
