"""The check of the order of rooms: it finds nothing here, and what is wrong in small trees."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from support.command import ROOT

SCRIPT = ROOT / "tools" / "check_rooms.py"

PAGE = """
| room | holds | may include |
|---|---|---|
| `src/base/` | errors | nothing of ours |
| `src/observe/` | events | base |
| `src/graph/` | the graph | base, observe |
| `python/binding/`, `python/assay/` | Python | all of the above |
"""


def check(root: Path) -> tuple[int, list[str]]:
    done = subprocess.run(
        [sys.executable, SCRIPT, root], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for folder in ("src/base", "src/observe", "src/graph", "python/binding", "include/assay"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "architecture.md").write_text(PAGE)
    return tmp_path


def test_this_tree_is_in_order() -> None:
    assert check(ROOT) == (0, [])


def test_a_small_tree_in_order(tree: Path) -> None:
    (tree / "include/assay/error.h").write_text("#include <string>\n")
    (tree / "src/base/environment.cpp").write_text('#include "assay/error.h"\nstd::getenv("A");\n')
    (tree / "src/graph/graph.h").write_text('#include "observe/log.h"\n#include "graph/node.h"\n')
    (tree / "python/binding/module.cpp").write_text('#include "graph/graph.h"\n#include <Python.h>')
    assert check(tree) == (0, [])


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("src/base/a.h", '#include "graph/graph.h"', "base must not depend on graph"),
        ("src/graph/a.c", "# include <cli/main.h>", "graph must not depend on cli"),
        ("src/graph/a.cpp", '#include "assay/compile.h"', "graph must not depend on frontend"),
        ("src/graph/a.cpp", '#include "assay/new.h"', "does not say which room implements it"),
        ("include/assay/error.h", '#include "graph/graph.h"', "base must not depend on graph"),
        ("include/assay/new.h", "", "does not know which room it belongs to"),
        ("src/attic/a.h", "", "does not know which room it belongs to"),
        ("src/graph/a.cpp", "#include <pybind11/cast.h>", "only capture and binding include"),
        ("python/binding/a.cpp", '#include "cli/dot.h"', "binding must not depend on cli"),
        ("src/graph/a.cpp", 'std::getenv("PATH");', "settings come from config"),
        ("python/binding/a.cpp", 'secure_getenv("PATH");', "settings come from config"),
        ("src/graph/a.cpp", 'environment_variable("ASSAY_X")', "ASSAY_X is a setting"),
        ("src/graph/a.cpp", 'environment_variable("TORCH_LOGS")', "TORCH_LOGS is a setting"),
    ],
)
def test_what_points_the_wrong_way_is_found(tree: Path, file: str, text: str, message: str) -> None:
    (tree / file).parent.mkdir(exist_ok=True)
    (tree / file).write_text(text + "\n")
    code, lines = check(tree)
    assert code == 1
    assert len(lines) == 1
    assert lines[0].startswith(file + ": ")
    assert message in lines[0]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("base, observe", "base", "graph may include base, observe, config"),
        ("all of the above", "all of the above but graph", "binding may include"),
        ("| `src/observe/` | events | base |\n", "", "no row for observe"),
        ("`src/observe/`", "`src/attic/`", "there is no room attic"),
    ],
)
def test_a_page_that_disagrees_is_found(tree: Path, old: str, new: str, message: str) -> None:
    (tree / "docs" / "architecture.md").write_text(PAGE.replace(old, new))
    code, lines = check(tree)
    assert code == 1
    assert any(message in line for line in lines), lines


def test_the_order_has_no_cycle() -> None:
    spec = importlib.util.spec_from_file_location("check_rooms", SCRIPT)
    assert spec is not None and spec.loader is not None
    rooms = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(rooms)
    for room in rooms.STANDS_ON:
        assert room not in rooms.below(room)
