"""`assay coverage`, `assay cache`, `assay run --profile`."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command import FIXTURES, assay, graph_file

MODEL = """
linear = torch.nn.functional.linear(x, x)
norm = torch.nn.functional.layer_norm(linear, (4,))
relu = torch.relu(norm)
return (relu.t(), torch.linalg.inv(x))
"""


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    return graph_file(tmp_path, MODEL)


def test_coverage_lists_the_lowerings() -> None:
    rows = assay("coverage", "--json").json()
    families = {row["operator"]: row["family"] for row in rows}
    assert families["aten::add.Tensor"] == "pointwise"
    assert len(families) == len(rows) > 100
    text = assay("coverage").out
    assert f"{len(rows)} operators are lowered; every other one is a call of ATen." in text


def test_coverage_of_a_file(graph: Path) -> None:
    [half] = assay("coverage", graph, "--json").json()
    assert half["graph"] == "inference"
    rows = {row["operator"]: row for row in half["operators"]}
    product = next(row for name, row in rows.items() if "mm" in name)
    assert product["becomes"] == "extern"
    assert product["reason"]
    assert rows["torch.ops.aten.relu.default"]["becomes"] == "kernel"
    assert half["kernel"] > half["extern"] > 0
    text = assay("coverage", graph).out
    assert "calls in kernels" in text
    assert product["reason"] in text


def test_coverage_of_a_training_step() -> None:
    file = FIXTURES / "linear_layernorm_relu" / "forward_runnable.py"
    assert [half["graph"] for half in assay("coverage", file, "--json").json()]


def test_cache(tmp_path: Path, graph: Path) -> None:
    env = {"ASSAY_CACHE_DIR": str(tmp_path / "cache")}
    assert assay("cache", "path", env=env).out == f"{tmp_path / 'cache' / 'kernels'}\n"
    assert assay("cache", "--json", env=env).json()["entries"] == 0
    assert assay("run", graph, "--backend", "native", env=env).code == 0
    found = assay("cache", "stat", "--json", env=env).json()
    assert found["entries"] > 0
    assert 0 < found["bytes"] < found["limit_bytes"]
    assert "of at most" in assay("cache", env=env).out
    assert assay("cache", "clear", "--json", env=env).json()["removed"] == found["entries"]
    assert assay("cache", "stat", "--json", env=env).json()["entries"] == 0


def test_cache_actions_are_checked() -> None:
    result = assay("cache", "empty")
    assert result.code == 2
    assert "stat" in result.err


def test_profile(graph: Path) -> None:
    result = assay("run", graph, "--backend", "native", "--profile", "--repeat", "3", "--json")
    steps = result.json()["profile"]
    assert {step["kind"] for step in steps} == {"kernel", "extern"}
    assert sum(step["share"] for step in steps) == pytest.approx(1)
    assert all(step["calls"] == 3 and step["seconds"] > 0 for step in steps)
    kernel = next(step for step in steps if step["kind"] == "kernel")
    assert kernel["bytes"] > 0
    assert kernel["gb_per_s"] > 0
    text = assay("run", graph, "--backend", "native", "--profile").out
    assert kernel["step"] in text
    assert "GB/s" in text


def test_profile_names_the_users_lines(tmp_path: Path) -> None:
    body = """
# File: model.py:7 in forward, code: y = torch.sin(x)
sin = torch.sin(x)
# File: model.py:8 in forward, code: return y + 1
add = sin + 1
return (add,)
"""
    graph = graph_file(tmp_path, body)
    result = assay("run", graph, "--backend", "native", "--profile", "--json")
    [step] = result.json()["profile"]
    assert step["lines"] == ["model.py:7", "model.py:8"]


def test_profile_needs_kernels(graph: Path) -> None:
    result = assay("run", graph, "--profile")
    assert result.code == 2
    assert "add --backend native" in result.err
