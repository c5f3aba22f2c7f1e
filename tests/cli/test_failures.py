"""Exit code 1: the program under test fails. The message says which node, which call, and where in
the user's program it comes from."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support.command import BINARY, assay, graph_file

STACK = """\
# File: model.py:7 in main, code: return layer(x)
# File: model.py:31 in layer, code: y = a @ b
"""

FAILURES = {
    "shape mismatch": (
        "mm = torch.ops.aten.mm.default(x, x)",
        "mat1 and mat2 shapes cannot be multiplied (4x3 and 4x3)",
    ),
    "index out of range": (
        "select = torch.ops.aten.select.int(x, 0, 9)",
        "index 9 out of range for tensor of size [4, 3] at dimension 0",
    ),
    "python-level function": ("matmul = torch.matmul(x, x)", "shapes cannot be multiplied"),
    "method": ("view = x.view(5, 5)", "shape '[5, 5]' is invalid for input of size 12"),
    "out of memory": (
        "zeros = torch.ops.aten.zeros.default([1000000000000000])",
        "can't allocate memory",
    ),
}


@pytest.mark.parametrize("name", FAILURES)
def test_message_has_node_call_and_user_stack(name: str, tmp_path: Path) -> None:
    statement, message = FAILURES[name]
    node = statement.split(" = ")[0]
    file = graph_file(
        tmp_path, f"{STACK}{statement}\nreturn ({node},)", inputs='x: "f32[4, 3][3, 1]cpu"'
    )
    result = assay("run", file)
    assert result.code == 1
    assert result.out == ""
    assert result.err.startswith(f"failed: node '{node}' failed: ")
    assert message in result.err
    assert result.err.endswith(
        f"  in {statement}\n"
        '  File "model.py", line 7, in main\n'
        "    return layer(x)\n"
        '  File "model.py", line 31, in layer\n'
        "    y = a @ b\n"
    )
    assert "Exception raised from" not in result.err  # no C++ stack of libtorch's


def test_json_describes_the_failure(tmp_path: Path) -> None:
    comment = "# File: model.py:7 in forward, code: y = x @ x\n"
    body = comment + "mm = torch.ops.aten.mm.default(x, x)\nreturn (mm,)"
    result = assay("run", graph_file(tmp_path, body, inputs='x: "f32[4, 3]"'), "--json")
    assert result.code == 1
    report = result.json()
    assert report["status"] == "failed"
    assert report["failure"] == {
        "kind": "exception",
        "stage": "eager",
        "backend": "eager",
        "type": "OperatorError",
        "node": "mm",
        "call": "torch.ops.aten.mm.default(x, x)",
        "message": "mat1 and mat2 shapes cannot be multiplied (4x3 and 4x3)",
        "stack": [{"file": "model.py", "line": 7, "function": "forward", "text": "y = x @ x"}],
    }
    assert report["inputs"]["original"] is False


@pytest.mark.parametrize(
    ("fault", "words"), [("segfault", "Segmentation fault"), ("abort", "Aborted")]
)
def test_a_crash_says_where(fault: str, words: str, tmp_path: Path) -> None:
    file = graph_file(tmp_path, "y = torch.sin(x)\nz = torch.relu(y)\nreturn (z,)")
    result = assay("run", file, "--backend", "aot_eager", "--inject", f"relu:{fault}")
    assert result.code < 0  # by the signal, as without us
    assert f"{words} in z (torch.relu)\n" in result.err
    assert "hint: `assay reduce`" in result.err


def test_a_bug_of_ours_has_its_own_exit_code_and_asks_for_a_report(tmp_path: Path) -> None:
    """A trial server that answers nonsense: an exception that nobody expected."""
    python = tmp_path / "python"
    python.write_text(
        f"#!{sys.executable}\nimport os, sys\n"
        "os.write(int(sys.argv[-1]), b'{\"ready\": 3.5}\\n')\n"
    )
    python.chmod(0o755)
    file = graph_file(tmp_path, "y = torch.sin(x)\nreturn (y,)")
    asked = ["run", file, "--stack", "torch"]
    result = assay(*asked, env={"ASSAY_PYTHON": str(python)})
    assert result.code == 3
    assert "error: internal error: " in result.err
    assert "This is a bug in Assay; please report it" in result.err
    report = assay(*asked, "--json", env={"ASSAY_PYTHON": str(python)}).json()
    assert (report["status"], report["kind"]) == ("error", "internal")


BUG = ["--plugin", BINARY.parent.parent / "lib" / "bug_plugin.so", "--backend", "bug"]


@pytest.mark.parametrize(
    "command", [["run"], ["run", "--isolated"], ["run", "--accuracy"], ["reduce"], ["analyze"]]
)
def test_a_bug_of_ours_is_not_the_programs_failure(command: list[str], tmp_path: Path) -> None:
    file = graph_file(tmp_path, "y = torch.sin(x)\nreturn (y,)")
    asked = [command[0], file, *command[1:], *BUG]
    if command == ["reduce"]:
        asked += ["--output", tmp_path / "out"]
    result = assay(*asked)
    assert result.code == 3, result.out + result.err
    assert "error: internal error: a graph has several calls (" in result.err
    assert result.err.count("This is a bug in Assay; please report it") == 1
    report = assay(*asked, "--json")
    assert report.code == 3
    assert (report.json()["status"], report.json()["kind"]) == ("error", "internal")
    assert report.json()["type"] == "InternalError"


def test_a_candidate_that_shows_a_bug_of_ours_is_told_and_not_taken(tmp_path: Path) -> None:
    body = "a = torch.cos(x)\nb = torch.sin(a)\nc = b * 2\nd = c + a\nreturn (d,)"
    out = tmp_path / "out"
    asked = ["reduce", graph_file(tmp_path, body), *BUG, "--output", out]
    report = assay(*asked, "--json").json()
    assert (report["status"], report["signature"]["kind"]) == ("reduced", "accuracy")
    assert report["calls"] == 2
    [other] = report["other"]
    assert other["signature"]["kind"] == "internal"
    assert "This is a bug in Assay; please report it" in other["signature"]["message"]
    assert assay("run", other["file"], *BUG).code == 3
    again = assay(*asked)
    assert "another failure found: InternalError" in again.out


@pytest.mark.parametrize(
    ("kind", "stage"), [("compile_error", "compile"), ("runtime_error", "run")]
)
def test_an_isolated_run_means_the_same_by_stage(kind: str, stage: str, tmp_path: Path) -> None:
    file = graph_file(tmp_path, "y = torch.sin(x)\nz = torch.relu(y)\nreturn (z,)")
    asked = ["run", file, "--backend", "aot_eager", "--inject", f"relu:{kind}", "--json"]
    here = assay(*asked).json()["failure"]
    isolated = assay(*asked, "--isolated").json()
    assert here["stage"] == isolated["failure"]["stage"] == isolated["signature"]["stage"] == stage
    for part in ("kind", "backend", "type", "message", "node"):
        assert here[part] == isolated["failure"][part], part


def test_a_program_that_fails_eagerly_has_the_stage_eager(tmp_path: Path) -> None:
    file = graph_file(tmp_path, "y = torch.mm(x, x)\nreturn (y,)", inputs='x: "f32[4, 3]"')
    asked = ["run", file, "--backend", "eager", "--json"]
    assert assay(*asked).json()["failure"]["stage"] == "eager"
    assert assay(*asked, "--isolated").json()["failure"]["stage"] == "eager"
