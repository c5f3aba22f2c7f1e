"""`assay.watch`: stock's backends, and the script's own, with the debug wrapper around them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.command import assay, environment

SCRIPT = """
import sys, torch, assay
after, level, kind, reduce = sys.argv[1:]
torch.manual_seed(0)
torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = kind
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 8))
backend = assay.watch("inductor", after=after, level=int(level), reduce=reduce)
compiled = torch.compile(model, backend=backend)
compiled(torch.randn(2, 8)).sum().backward()
print("went well")
"""

OWN = """
import torch, assay
def own(gm, inputs):
    def call(*args):
        for node in gm.graph.nodes:
            if node.target is torch.sin:
                raise RuntimeError("no sines")
        return gm(*args)
    return call
torch.compile(lambda x: torch.cos(torch.sin(x) + 1), backend=assay.watch(own))(torch.ones(3))
"""


def run(tmp_path: Path, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "script.py"
    script.write_text(text)
    kept = {"PYTHONPATH": os.environ.get("PYTHONPATH", ""),
            "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache"),
            "ASSAY_BINARY": os.environ.get("ASSAY_BINARY", "")}  # fmt: skip
    return subprocess.run(
        [sys.executable, script, *arguments],
        cwd=tmp_path, env=environment(**kept), capture_output=True, text=True, timeout=300,
    )  # fmt: skip


def launcher(tmp_path: Path) -> Path:
    [file] = tmp_path.glob("torch_compile_debug/run_*/minifier/minifier_launcher.py")
    return file


@pytest.mark.parametrize("after", ["dynamo", "aot"])
def test_a_compile_error_leaves_a_launcher(after: str, tmp_path: Path) -> None:
    done = run(tmp_path, SCRIPT, after, "2", "compile_error", "launcher")
    assert done.returncode == 1 and "CppCompileError" in done.stderr
    shown = assay("show", launcher(tmp_path), "--json").json()
    assert shown["stage"] == f"after_{after}"
    assert "inject_relu_bug_TESTING_ONLY = 'compile_error'" in launcher(tmp_path).read_text()


def test_a_backend_that_does_not_fail_is_unchanged(tmp_path: Path) -> None:
    script = SCRIPT.replace("= kind\n", "= None\n")
    for after in ("dynamo", "aot"):
        done = run(tmp_path, script, after, "4", "", "launcher")
        assert done.returncode == 0, done.stderr
        assert done.stdout == "went well\n"
    assert not list(tmp_path.glob("torch_compile_debug/run_*/minifier/*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("after", ["dynamo", "aot"])
def test_wrong_numbers_are_found_at_level_4(after: str, tmp_path: Path) -> None:
    done = run(tmp_path, SCRIPT, after, "4", "accuracy", "now")
    assert done.returncode == 1 and "AccuracyError" in done.stderr
    assert "accuracy=True" in launcher(tmp_path).read_text()
    text = (tmp_path / "repro.py").read_text()
    assert text.count("relu") >= 1 and "linear" not in text.partition("def forward")[2]


def test_a_backend_of_the_script_is_reduced(tmp_path: Path) -> None:
    done = run(tmp_path, OWN)
    assert done.returncode == 1 and "no sines" in done.stderr
    text = (tmp_path / "repro.py").read_text()
    assert "= torch.sin(" in text and "= torch.cos(" not in text


def test_level_1_writes_the_graph_here(tmp_path: Path) -> None:
    done = run(tmp_path, SCRIPT, "dynamo", "1", "runtime_error", "launcher")
    assert done.returncode == 1
    assert "relu" in (tmp_path / "repro.py").read_text()
    assert not list(tmp_path.glob("torch_compile_debug/run_*/minifier/minifier_launcher.py"))
