"""`assay analyze`: the first call that a backend computes wrongly; `assay bundle`: one file."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from support.command import FIXTURES, assay, graph_file

BODY = "a = torch.sin(x)\nb = torch.relu(a)\nc = torch.cos(b)\nd = torch.relu(c)\nreturn (d,)"


def test_the_first_wrong_call_is_named(tmp_path: Path) -> None:
    result = assay("analyze", graph_file(tmp_path, BODY), "--inject", "relu:accuracy")
    assert result.code == 1
    assert result.out.startswith("b is the first call with a wrong result")
    assert "torch.relu(a)" in result.out


def test_for_scripts(tmp_path: Path) -> None:
    file = graph_file(tmp_path, BODY)
    report = assay("analyze", file, "--inject", "cos:nan", "--json").json()
    assert (report["status"], report["node"]) == ("accuracy", "c")
    assert report["operator"] == "torch.cos"


def test_nothing_is_wrong(tmp_path: Path) -> None:
    result = assay("analyze", graph_file(tmp_path, BODY))
    assert (result.code, result.out) == (0, "every call on its own matches eager\n")


def test_calls_with_several_results(tmp_path: Path) -> None:
    body = "s = torch.split(x, 2)\na = s[0]\nb = s[1]\nc = torch.relu(b)\nreturn (a, c)"
    result = assay("analyze", graph_file(tmp_path, body), "--inject", "relu:accuracy")
    assert result.out.startswith("c is the first call with a wrong result")


def test_a_crash_is_said(tmp_path: Path) -> None:
    result = assay("analyze", graph_file(tmp_path, BODY), "--inject", "cos:segfault")
    assert result.code == 1
    assert "SIGSEGV" in result.out


def test_the_backend_that_the_file_names(tmp_path: Path) -> None:
    launcher = next(FIXTURES.glob("*/dynamo_launcher.py"), None)
    if launcher is None:
        pytest.skip("no checked-in file names a backend")
    result = assay("analyze", launcher)
    assert result.code == 2
    assert "the file names stock PyTorch's backend 'inductor'" in result.err
    assert "--stack torch" in result.err


def test_a_bundle_needs_nothing_beside_it(tmp_path: Path) -> None:
    launcher = next(FIXTURES.glob("*/*_launcher.py"))
    bundled = tmp_path / "bundle.py"
    assert assay("bundle", launcher, "--output", bundled).code == 0
    alone = assay("run", bundled, "--json").json()
    beside = assay("run", launcher, "--json").json()
    assert alone["inputs"]["original"] is True
    assert alone["outputs"] == beside["outputs"]


def test_a_bundle_of_a_file_without_its_data(tmp_path: Path) -> None:
    launcher = next(FIXTURES.glob("*/*_launcher.py"))
    moved = shutil.copy(launcher, tmp_path / "moved.py")
    result = assay("bundle", moved)
    assert result.code == 2
    assert "is missing" in result.err


def test_a_bundle_of_a_file_that_needs_no_data(tmp_path: Path) -> None:
    file = graph_file(tmp_path, BODY)
    bundled = tmp_path / "bundle.py"
    assert assay("bundle", file, "--output", bundled).code == 0
    assert assay("run", bundled).code == 0
