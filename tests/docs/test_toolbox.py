"""docs/toolbox.md is true: its tables of passes, requests, files and exit codes."""

from __future__ import annotations

import re
from pathlib import Path

from support.command import ROOT, assay, graph_file
from support.pages import tables

PAGE = ROOT / "docs" / "toolbox.md"
AOT = ("--backend", "aot_eager")


def table(header: str) -> list[list[str]]:
    """The rows of the table whose first cell of the header is this one."""
    [found] = [rows for rows in tables(PAGE) if rows[0][0] == header]
    return found[1:]


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_passes_in_their_order(tmp_path: Path) -> None:
    file = graph_file(tmp_path, "return (x,)")
    refused = assay("reduce", file, "--passes", "nothing", "--output", tmp_path / "out")
    order = refused.err.split("the passes are ")[1].strip().split(", ")
    assert [names(row[0])[0] for row in table("pass")] == order


def test_what_passes_do() -> None:
    listed = assay("reduce", "--list-passes", "--json").json()
    described = [(entry["name"], entry["description"]) for entry in listed]
    assert [(names(row[0])[0], row[1]) for row in table("pass")] == described


def test_fields_of_a_request() -> None:
    text = (ROOT / "src" / "sandbox" / "trial.cpp").read_text()
    sent = text.split("json to_json(const Trial& trial)")[1].split("\n}")[0].split("return ")[1]
    fields = set(re.findall(r'\{"(\w+)",', sent)) - {"wall", "cpu", "memory", "output"}
    documented = {name for row in table("request") for name in names(row[0])}
    assert documented == fields | {"id", "cancel"}


def test_verdicts() -> None:
    text = (ROOT / "src" / "sandbox" / "signature.h").read_text()
    declared = re.findall(r"^  (\w+),", text.split("enum class Verdict {")[1].split("};")[0], re.M)
    assert [names(row[0])[0] for row in table("verdict")] == declared


def test_the_directory_of_a_reduction(tmp_path: Path) -> None:
    body = "a = torch.sin(x)\nb = torch.relu(a)\nc = torch.exp(b)\nreturn (c,)"
    file = graph_file(tmp_path, body)
    faults = ("--inject", "relu:runtime_error,exp:abort")
    found = assay("reduce", file, *AOT, *faults, "--output", tmp_path / "out")
    assert found.code == 0, found.err
    entries = {entry.name + "/" * entry.is_dir() for entry in (tmp_path / "out").iterdir()}
    documented = {names(row[0])[0] for rows in tables(PAGE) for row in rows if row[0].count("`")}
    assert entries <= documented
    assert entries >= {"repro.py", "storages/", "checkpoints/", "other/", "verdicts.jsonl"}


def test_exit_codes(tmp_path: Path) -> None:
    file = graph_file(tmp_path, "y = torch.relu(x)\nreturn (y,)")
    out = ("--output", tmp_path / "out")
    fault = ("--inject", "relu:segfault")
    assert assay("run", file, *AOT, "--accuracy").code == 0
    assert assay("run", file, *AOT, "--isolated", *fault).code == 1
    assert assay("run", tmp_path / "missing.py", "--isolated").code == 2
    assert assay("reduce", file, *AOT, *out, *fault).code == 0
    assert assay("reduce", file, *AOT, *out).code == 1
    assert assay("reduce", tmp_path / "missing.py", *out).code == 2
