"""`assay logs`, `assay passes`, `--version`, `--help`, and wrong usage."""

from __future__ import annotations

import pytest
import torch

from support.command import ROOT, assay


def project_version() -> str:
    text = (ROOT / "CMakeLists.txt").read_text()
    return text.split("project(assay VERSION ")[1].split()[0].rstrip(")")


def test_version_names_assays_and_torchs() -> None:
    result = assay("--version")
    assert (result.code, result.out) == (
        0,
        f"assay {project_version()} (torch {torch.__version__})\n",
    )


@pytest.mark.parametrize("command", [[], ["run"], ["show"]], ids=["assay", "run", "show"])
def test_help_shows_examples_and_exit_codes(command: list[str]) -> None:
    result = assay(*command, "--help")
    assert (result.code, result.err) == (0, "")
    assert "examples:\n  assay run repro.py " in result.out
    assert "exit codes: 0 success, 1 the program under test fails, 2 bad usage" in result.out


def test_logs_lists_every_name() -> None:
    text = assay("logs").out
    names = {entry["name"]: entry for entry in assay("logs", "--json").json()}
    assert names["dynamo"]["kind"] == "component"
    assert names["graph_code"]["kind"] == "artifact"
    assert names["output_code"]["off_by_default"] is True
    listed = {line.split()[0] for line in text.splitlines() if line}
    assert set(names) <= listed


def test_passes_lists_every_pass() -> None:
    text = assay("passes").out
    passes = assay("passes", "--json").json()
    found = {entry["name"]: entry for entry in passes}
    assert found["dead_code"]["room"] == "graph"
    assert found["decompositions"]["required"] is False
    assert found["partition_min_cut"]["required"] is True
    rooms = {"autograd", "backends", "compare", "graph", "kernels"}
    assert {entry["room"] for entry in passes} == rooms
    for entry in passes:
        assert f"  {entry['name']} " in text
        assert entry["room"] in text
        assert entry["description"] in text
    assert "ASSAY_DISABLE_PASSES" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "subcommand is required"),
        (["runn", "x.py"], "unknown command 'runn'"),
        (["--colour"], "unknown option '--colour'"),
        (["run"], "FILE is required"),
        (["run", "x.py", "--sede", "1"], "--sede"),
        (["run", "x.py", "--threads", "0"], "--threads: Value 0 not in range 1 to 1024"),
        (["run", "x.py", "--repeat", "many"], "--repeat"),
        (["run", "x.py", "--seed", "one"], "--seed"),
        (["run", "x.py", "y.py"], "y.py"),
        (["show", "x.py", "--dot", "--code"], "at most 1"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_usage_is_exit_code_2(arguments: list[str], message: str) -> None:
    result = assay(*arguments)
    assert result.code == 2
    assert result.out == ""
    assert message in result.err
