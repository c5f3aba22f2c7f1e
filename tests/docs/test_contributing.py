"""CONTRIBUTING.md's table of the files that one touches to add something is true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import assay as assay_package
from support.command import ROOT, assay
from support.pages import tables

[ROWS] = [rows[1:] for rows in tables(ROOT / "CONTRIBUTING.md") if rows[0][0] == "to add"]
DECOMPOSITIONS = ROOT / "src" / "autograd" / "decompositions"
REDUCER_PASSES = ROOT / "src" / "reduce" / "passes"
GRAPH_PASSES = ROOT / "src" / "graph" / "passes"


def named_files(cell: str) -> list[str]:
    return [name for name in re.findall(r"`([^`]+)`", cell) if name.startswith(("src/", "python/"))]


@pytest.mark.parametrize(("number", "which"), [row[1:] for row in ROWS], ids=[r[0] for r in ROWS])
def test_as_many_files_as_counted_and_all_exist(number: str, which: str) -> None:
    files = named_files(which)
    assert len(files) == int(number)
    for file in files:
        assert list(ROOT.glob(re.sub(r"<\w+>", "*", file))), file


def sources_with(pattern: str, folder: Path) -> dict[str, list[Path]]:
    """The sources in which each match of the pattern's group occurs."""
    found: dict[str, list[Path]] = {}
    for file in sorted(folder.rglob("*.cpp")):
        for match in set(re.findall(pattern, file.read_text())):
            found.setdefault(match, []).append(file)
    return found


def test_a_decomposition_is_a_row_in_one_file() -> None:
    listed = [entry["operator"] for entry in assay("decompositions", "--json").json()]
    expected = {name.removeprefix("aten::").replace(".", "_") for name in listed}
    rows = sources_with(r"\brow(?:_of_\w+)?<\s*ops::(\w+)", DECOMPOSITIONS)
    assert set(rows) == expected
    assert {name: files for name, files in rows.items() if len(files) > 1} == {}


def test_a_reducer_pass_is_a_file_and_a_row() -> None:
    names = [entry["name"] for entry in assay("reduce", "--list-passes", "--json").json()]
    assert {file.stem for file in REDUCER_PASSES.glob("*.cpp")} == set(names)
    table = re.findall(r"^PASS\((\w+),", (REDUCER_PASSES / "passes.def").read_text(), flags=re.M)
    assert table == names
    defined = sources_with(r"\bpasses::(\w+)\(\) \{", ROOT / "src")
    assert defined == {name: [REDUCER_PASSES / f"{name}.cpp"] for name in names}


def test_a_graph_pass_registers_itself_and_a_pipeline_names_it() -> None:
    names = {entry["name"] for entry in assay("passes", "--json").json()}
    registered = sources_with(r'RegisterPass \w+\(\s*\{\.name = "(\w+)"', GRAPH_PASSES)
    assert registered
    assert set(registered) <= names
    assert {name: files for name, files in registered.items() if len(files) > 1} == {}
    pipelines = sources_with(r'\.run\("(\w+)"', ROOT / "src")
    assert set(registered) <= set(pipelines)


def test_an_error_is_a_class_in_cpp_and_one_in_python() -> None:
    headers = [*(ROOT / "include").rglob("*.h"), *(ROOT / "src").rglob("*.h")]
    named = [
        name
        for header in headers
        for name in re.findall(r'python_class\(\) .*return "(\w+)"', header.read_text())
    ]
    classes = {
        name
        for name, value in vars(assay_package.errors).items()
        if isinstance(value, type) and value is not assay_package.Error
    }
    assert sorted(named) == sorted(classes)  # each is named once, and there are no others
    assert {*classes, "Error"} == set(assay_package.errors.__all__)
    for name in assay_package.errors.__all__:
        assert getattr(assay_package, name) is getattr(assay_package.errors, name)
        assert issubclass(getattr(assay_package, name), assay_package.Error)
    # Nothing else needs to know them: neither the binding nor the stub of the extension.
    for file in ["python/binding/module.cpp", "python/assay/_C.pyi", "python/assay/__init__.py"]:
        text = (ROOT / file).read_text()
        assert [name for name in classes if re.search(rf"\b{name}\b", text)] == []
