"""A wrong rewrite of the kernels' pipeline is found: `assay reduce` names operators and step.

The setting `kernel_fault` makes one on purpose.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.command import BINARY

SMALL = """\
        sin = torch.ops.aten.sin.default(x)
        exp = torch.ops.aten.exp.default(sin)
        add = torch.ops.aten.add.Tensor(exp, x)
        amax = torch.ops.aten.amax.default(add, [1])
        return (add, amax)
"""


def large(calls: int) -> str:
    """Rows of pointwise calls and sums, with one exponential and one extreme among them."""
    lines, last = [], "x"
    for number in range(calls):
        name = f"v{number}"
        call = ("sin.default({0})", "mul.Tensor({0}, y)", "add.Tensor({0}, x)", "cos.default({0})")
        text = call[number % 4].format(last)
        if number == calls // 2:
            text = f"exp.default({last})"
        lines.append(f"        {name} = torch.ops.aten.{text}")
        last = name
    lines.append(f"        largest = torch.ops.aten.amax.default({last}, [1])")
    lines.append(f"        return ({last}, largest)")
    return "\n".join(lines) + "\n"


def repro_file(directory: Path, body: str) -> Path:
    file = directory / "graph.py"
    file.write_text(
        "import torch\nclass Repro(torch.nn.Module):\n    def forward(self, x, y):\n"
        + body
        + "def load_args(reader):\n"
        + "".join(
            f"    buf{number} = reader.storage(None, 480)\n"
            f"    reader.tensor(buf{number}, (8, 15), is_leaf=True)\n"
            for number in range(2)
        )
        + "load_args._version = 0\nmod = Repro()\n"
    )
    return file


def reduced(directory: Path, body: str, fault: str) -> dict[str, Any]:
    command = [BINARY, "reduce", repro_file(directory, body), "--backend=native", "--accuracy"]
    command += ["--output", directory / "reduced", "--confirmations=1", "-j1", "--json"]
    environment = {**os.environ, "ASSAY_KERNEL_FAULT": fault}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    return json.loads(run.stdout)


def check(directory: Path, body: str, step: str, operator: str) -> None:
    result = reduced(directory, body, f"{step}:{operator}")
    assert result["pipeline_step"] == step
    assert result["calls"] <= 2
    text = Path(result["file"]).read_text()
    assert f"torch.ops.aten.{operator}" in text
    assert f"# assay reduce: pipeline step: {step}" in text


@pytest.mark.parametrize(
    ("step", "operator"), [("lower_to_loops", "exp"), ("inline_producers", "exp")]
)
def test_the_step_and_the_operators_are_named(tmp_path: Path, step: str, operator: str) -> None:
    check(tmp_path, SMALL, step, operator)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "operator"),
    [("lower_to_loops", "exp"), ("inline_producers", "exp"), ("merge_kernels", "amax")],
)
def test_they_are_found_in_a_large_graph(tmp_path: Path, step: str, operator: str) -> None:
    check(tmp_path, large(60), step, operator)
