"""TORCH_LOGS=output_code,schedule,fusion,perf_hints,... say what `assay logs` promises."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command import assay, graph_file

BODY = """
sin = torch.sin(x)
product = sin @ x
total = (product + 1).sum(-1)
inverse = torch.linalg.inv(x + x.t())
return (total, inverse)
"""


def log(directory: Path, name: str, body: str = BODY) -> str:
    graph = graph_file(directory, body, inputs='x: "f32[16, 16][16, 1]cpu"')
    result = assay("run", graph, "--backend", "native", env={"TORCH_LOGS": name})
    assert result.code == 0, result.err
    return result.err


def test_nothing_is_logged_unasked(tmp_path: Path) -> None:
    assert log(tmp_path, "") == ""


def test_output_code(tmp_path: Path) -> None:
    assert 'extern "C" int ' in log(tmp_path, "output_code")


def test_schedule(tmp_path: Path) -> None:
    text = log(tmp_path, "schedule")
    lines = [line.split("] ", 2)[-1].strip() for line in text.splitlines()]
    assert any(line.startswith("1. ") for line in lines)
    steps = [line for line in lines if line[:1].isdigit()]
    kinds = [step.split()[1] for step in steps]
    assert "kernel" in kinds
    assert "extern" in kinds
    assert any("torch.ops.aten.mm.default" in step for step in steps)


def test_fusion(tmp_path: Path) -> None:
    text = log(tmp_path, "fusion")
    assert "[__fusion]" in text
    assert "sum" in text


def test_perf_hints(tmp_path: Path) -> None:
    text = log(tmp_path, "perf_hints")
    assert "linalg_inv" in text
    assert "is a call of ATen: " in text
    assert "aten.mm" not in text  # a product is ATen's by design


def test_perf_hints_about_a_graph_of_calls(tmp_path: Path) -> None:
    text = log(tmp_path, "perf_hints", "inverse = torch.linalg.inv(x)\nreturn inverse")
    assert "is a call of ATen: " in text


@pytest.mark.parametrize("name", ["ir_pre_fusion", "ir_post_fusion"])
def test_loops(tmp_path: Path, name: str) -> None:
    assert f"[__{name}]" in log(tmp_path, name)


def test_kernels_that_do_the_same_are_written_once(tmp_path: Path) -> None:
    body = "\n".join(f"v{i} = torch.sin({'x' if i == 0 else f'v{i - 1}'}) @ x" for i in range(4))
    graph = graph_file(tmp_path, f"{body}\nreturn (v3,)", inputs='x: "f32[16, 16][16, 1]cpu"')
    result = assay("run", graph, "--backend", "native", env={"TORCH_LOGS": "output_code"})
    assert result.code == 0, result.err
    assert result.err.count('extern "C" int ') == 1
    assert result.err.count("the same: ") == 3
