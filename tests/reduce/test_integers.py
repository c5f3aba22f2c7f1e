"""Wrong integers in a file from after AOT: found by `run --accuracy`, and reduced to one call."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from reduce.reducing import reduce
from support.command import assay

# Small integers, so that a difference of one is far beyond any tolerance, and large ones, where it
# is within PyTorch's.
FILE = """
import torch
import torch._inductor.config
{setup}
class Repro(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()

    def forward(self, x, n):
        sin = torch.ops.aten.sin.default(x);  x = None
        exp = torch.ops.aten.exp.default(sin)
        mul = torch.ops.aten.mul.Tensor(n, 1000003);  n = None
        {op} = {call}
        add = torch.ops.aten.add.Tensor({op}, 4)
        ge = torch.ops.aten.ge.Scalar(exp, 1.0)
        return (exp, add, ge)

def load_args(reader):
    buf0 = reader.storage(None, 32)
    reader.tensor(buf0, (8,), is_leaf=True)  # x
    buf1 = reader.storage(None, 64, dtype_hint=torch.int64)
    reader.tensor(buf1, (8,), dtype=torch.int64, is_leaf=True)  # n
load_args._version = 0

mod = Repro()

if __name__ == '__main__':
    from torch._dynamo.repro.after_aot import run_repro
    with torch.no_grad():
        run_repro(mod, load_args, accuracy=True, command='run', save_dir=None,
            tracing_mode='real', check_str=None)
"""

CALLS = {
    "neg": "torch.ops.aten.neg.default(mul)",
    "amax": "torch.ops.aten.amax.default(mul, [0])",
    "isnan": "torch.ops.aten.isnan.default(exp)",
}
# Inductor's `neg` and `amax` of integers, off by one.
STOCK_FAULT = """
from torch._inductor import lowering
def off_by_one(right):
    def lower(*args, **kwargs):
        return lowering.lowerings[torch.ops.aten.add.Tensor](right(*args, **kwargs), 1)
    return lower
for op in (torch.ops.aten.neg.default, torch.ops.aten.amax.default):
    lowering.lowerings[op] = off_by_one(lowering.lowerings[op])
"""
TORCH = ["--stack", "torch", "--backend", "inductor", "--trust"]
ENV = {"ASSAY_PYTHON": sys.executable}


def write(directory: Path, op: str, setup: str = "") -> Path:
    file = directory / "launcher.py"
    file.write_text(FILE.format(op=op, call=CALLS[op], setup=setup))
    return file


def options(stack: str, op: str) -> list[str]:
    return TORCH if stack == "torch" else ["--backend", "aot_eager", "--inject", f"{op}:accuracy"]


@pytest.mark.parametrize(("stack", "op"), [("assay", "neg"), ("assay", "amax"), ("torch", "neg")])
def test_wrong_integers_are_found_and_reduced(stack: str, op: str, tmp_path: Path) -> None:
    file = write(tmp_path, op, STOCK_FAULT if stack == "torch" else "")
    found = assay(
        "run", file, *options(stack, op), "--accuracy", "--json", env=ENV, timeout=300
    ).json()
    assert found["status"] == "failed", found
    assert (found["signature"]["kind"], found["signature"]["type"]) == ("accuracy", "integers")
    assert found["where"] == "output[1]"
    assert found["error"] == 1

    reduced = reduce(file, tmp_path / "out", *options(stack, op), env=ENV, timeout=600)
    assert reduced.report["status"] == "reduced", reduced.report
    assert reduced.report["signature"]["type"] == "integers"
    assert reduced.report["calls"] == 1
    assert f"torch.ops.aten.{op}." in reduced.graph[0]
    assert reduced.report["ignored_non_fp"] is False


def test_integers_are_left_out_only_when_asked_for_and_that_is_reported(tmp_path: Path) -> None:
    file = write(tmp_path, "neg")
    asked = ["--backend", "aot_eager", "--inject", "neg:accuracy", "--accuracy", "--ignore-non-fp"]
    result = assay("run", file, *asked)
    assert result.code == 0
    assert "; 2 integer or bool results and 1 integer or bool input were not compared" in result.out
    reduced = reduce(file, tmp_path / "out", *asked)
    assert reduced.report["status"] == "passes"
    assert "2 integer or bool results" in reduced.report["not_compared"]
    asked.remove("--accuracy")
    assert assay("run", file, *asked).code == 2


def test_wrong_bools_are_found(tmp_path: Path) -> None:
    file = write(tmp_path, "isnan")
    asked = ["--backend", "aot_eager", "--inject", "ge:accuracy", "--accuracy"]
    result = assay("run", file, *asked)
    assert result.code == 1
    assert result.out.startswith("failed: differs from eager (integers) at output[2]")
    assert "8 of 8 bools differ" in result.out


def test_a_failure_in_floating_point_stays_one(tmp_path: Path) -> None:
    """The mask made of a wrong number differs too, but what is reduced is the number."""
    file = write(tmp_path, "neg")
    text = file.read_text().replace("return (exp, add, ge)", "return (add, ge, exp)")
    file.write_text(text)
    fault = ["--backend", "aot_eager", "--inject", "exp:accuracy"]
    found = assay("run", file, *fault, "--accuracy", "--json").json()
    assert (found["signature"]["type"], found["where"]) == ("values", "output[2]")
    reduced = reduce(file, tmp_path / "out", *fault, "--accuracy")
    assert reduced.report["signature"]["type"] == "values"
    assert reduced.report["calls"] == 1
    assert "torch.ops.aten.exp." in reduced.graph[0]
    assert reduced.report["ignored_non_fp"] is True
