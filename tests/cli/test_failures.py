"""Exit code 1: the program under test fails. The message says which node, which call, and where in
the user's program it comes from."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command import assay, graph_file

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
        "phase": "run",
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
