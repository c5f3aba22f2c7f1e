"""A failure that shows far from the call that is wrong is reduced to both ends."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from reduce.chains import AFTER_AUTOGRAD, STOCK_FAULTS, Chain, chain_file
from reduce.reducing import Reduced, reduce

OURS = ["--backend", "aot_eager", "--inject"]
TORCH = ["--stack", "torch", "--backend", "inductor", "--trust"]
ENV = {"ASSAY_PYTHON": sys.executable}
KINDS = {"dtype": "dtype", "nan": "nan", "accuracy": "values"}


def check(reduced: Reduced, fault: str) -> None:
    """The faulty call is left and named; with it, at most the one that notices."""
    report = reduced.report
    assert report["status"] == "reduced", report
    raises = report["signature"]["kind"] == "exception"
    assert raises == (fault == "dtype"), report["signature"]
    assert report["calls"] == (2 if raises else 1), reduced.text
    assert report["wrong"]["node"] == "cumsum"
    assert "cumsum" in report["wrong"]["operator"]
    assert report["wrong"]["kind"] == KINDS[fault]
    assert report["wrong"]["call"].startswith(f"cumsum = {report['wrong']['operator']}(")
    assert (report["noticed"] or {}).get("node") == ("mm" if raises else None)
    assert (report["reproduced"], report["runs"]) == (5, 5)
    if raises:
        assert "# assay reduce: wrong (dtype): cumsum = torch." in reduced.text
        assert "# assay reduce: noticed by: mm = torch." in reduced.text


@pytest.mark.parametrize("branches", [False, True], ids=["chain", "graph"])
@pytest.mark.parametrize("fault", KINDS)
def test_a_fault_40_calls_before_it_shows(fault: str, branches: bool, tmp_path: Path) -> None:
    for seed in range(2):
        directory = tmp_path / str(seed)
        directory.mkdir()
        file = chain_file(directory, Chain(seed, branches=branches))
        reduced = reduce(file, directory / "out", *OURS, f"cumsum:{fault}")
        check(reduced, fault)
        assert reduced.report["calls_before"] > 70
        assert reduced.report["trials"] < 60


@pytest.mark.parametrize("fault", KINDS)
def test_a_fault_after_autograd(fault: str, tmp_path: Path) -> None:
    file = chain_file(tmp_path, Chain(4, branches=True, calls=AFTER_AUTOGRAD))
    check(reduce(file, tmp_path / "out", *OURS, f"cumsum:{fault}"), fault)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 115))
@pytest.mark.parametrize("fault", KINDS)
def test_a_fault_in_many_graphs(fault: str, seed: int, tmp_path: Path) -> None:
    file = chain_file(tmp_path, Chain(seed, distance=40 + seed % 30, branches=seed % 3 > 0))
    reduced = reduce(file, tmp_path / "out", *OURS, f"cumsum:{fault}")
    check(reduced, fault)
    assert reduced.report["trials"] < 60


@pytest.mark.parametrize("seed", range(3))
def test_bypassing_alone_is_enough(seed: int, tmp_path: Path) -> None:
    """Also where nothing tells which call is wrong: without the pass that asks."""
    file = chain_file(tmp_path, Chain(seed, branches=seed > 0))
    passes = "suspects,halves,suffix,prefix,calls,bypass,outputs,inputs"
    reduced = reduce(file, tmp_path / "out", *OURS, "cumsum:dtype", "--passes", passes)
    assert reduced.report["calls"] == 2, reduced.text
    assert reduced.report["wrong"]["operator"] == "torch.cumsum"
    assert reduced.report["noticed"]["operator"] == "torch.mm"


def test_both_ends_are_printed(tmp_path: Path) -> None:
    from support.command import assay

    file = chain_file(tmp_path, Chain(7, distance=5, before=5))
    result = assay("reduce", file, *OURS, "cumsum:dtype", "--output", tmp_path / "out")
    assert "\nwrong (dtype): cumsum = torch.cumsum(" in result.out
    assert "\nnoticed by: mm = torch.mm(" in result.out


@pytest.mark.parametrize("fault", ["nan", "accuracy"])
def test_a_fault_in_backward(fault: str, tmp_path: Path) -> None:
    """The gradient of an input shows what is wrong 40 calls after it in the graph."""
    chain = Chain(3, branches=True)
    file = chain_file(tmp_path, chain, grad=True)
    lines = file.read_text().splitlines()
    lines = [
        line.replace("torch.cumsum", "torch.tanh").replace(", 1)", ")")
        if "torch.cumsum(" in line
        else line
        for line in lines
    ]
    file.write_text("\n".join(lines))
    reduced = reduce(file, tmp_path / "out", *OURS, f"tanh_backward:{fault}")
    assert reduced.report["calls"] == 1, reduced.text
    assert reduced.report["wrong"]["operator"] == "torch.tanh"
    assert reduced.report["wrong"]["kind"] == KINDS[fault]


@pytest.mark.slow
@pytest.mark.parametrize("branches", [False, True], ids=["chain", "graph"])
@pytest.mark.parametrize("fault", KINDS)
def test_a_fault_of_inductors(fault: str, branches: bool, tmp_path: Path) -> None:
    chain = Chain(5, branches=True, calls=AFTER_AUTOGRAD) if branches else Chain(5)
    file = chain_file(tmp_path, chain, STOCK_FAULTS[fault])
    reduced = reduce(file, tmp_path / "out", *TORCH, env=ENV, timeout=900)
    check(reduced, fault)
    assert reduced.report["trials"] < 100
