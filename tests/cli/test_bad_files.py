"""Exit code 2: a file that is not a graph, or a graph that cannot be run.

Each case asserts what a user needs: the place, what is wrong, and what to do; and that the command
neither crashed nor printed half a result.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.command import FIXTURES, Result, assay, graph_file, graph_text

LAUNCHER = FIXTURES / "linear_layernorm_relu" / "dynamo_launcher.py"


def assert_refused(result: Result, *messages: str) -> None:
    assert result.code == 2, result
    assert result.out == ""
    assert result.err.startswith("error: ")
    for noise in ("Traceback", "terminate called", "internal error", "Exception raised from"):
        assert noise not in result.err
    for message in messages:
        assert message in result.err


# --- What is not a graph file at all --------------------------------------------------------------


def test_missing_file() -> None:
    assert_refused(assay("run", "missing.py"), "missing.py: No such file or directory")


def test_directory(tmp_path: Path) -> None:
    assert_refused(assay("run", tmp_path), "this is a directory", "expected a file such as")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_file(tmp_path: Path) -> None:
    file = graph_file(tmp_path, "return (x,)")
    file.chmod(0)
    assert_refused(assay("run", file), "Permission denied")


def test_endless_device() -> None:
    assert_refused(assay("run", "/dev/zero"), "a graph file may have at most 67108864")


CONTENTS = {
    "empty": (b"", "no graph found\n  hint: expected a class with a forward() method"),
    "other program": (b"print('hello')\n", "no graph found"),
    "not Python": (b"{'a': [1, 2}\n", "'}' does not match the open '['"),
    "binary": (b"\x7fELF\x02\x01\x00\x00", ":1:1: the file is not text: byte 0x7f"),
    "latin-1": (b"# caf\xe9\n", ":1:6: the file is not text: byte 0xe9"),
    "huge line": (b"x = '" + b"a" * (4 << 20), ":1:5: this string is never closed"),
    "no forward": (b"class Repro(torch.nn.Module):\n    pass\n", "'Repro' has no forward()"),
}


@pytest.mark.parametrize("name", CONTENTS)
def test_contents_that_are_no_graph(name: str, tmp_path: Path) -> None:
    content, message = CONTENTS[name]
    file = tmp_path / "file.py"
    file.write_bytes(content)
    result = assay("run", file)
    assert_refused(result, message)
    assert len(result.err) < 1000  # the huge line is not printed


def test_json_reports_a_bad_file_too(tmp_path: Path) -> None:
    file = graph_file(tmp_path, "relu = torch.relu(y)\nreturn (relu,)")
    result = assay("run", file, "--json")
    assert result.code == 2
    report = result.json()
    assert report["status"] == "error"
    assert report["kind"] == "user"
    assert report["message"] == "'y' is not defined"
    assert (report["file"], report["line"], report["column"]) == (str(file), 8, 27)
    assert report["hint"].startswith("a graph can only use its parameters")


# --- A file that was cut off ----------------------------------------------------------------------


def test_cut_off_anywhere(tmp_path: Path) -> None:
    """Until the last input has been described the file is refused; after that it can be run."""
    text = LAUNCHER.read_text()
    needed = text.index("load_args._version")
    cuts = [len(text) * i // 20 for i in range(20)]

    def run(cut: int) -> Result:
        file = tmp_path / f"cut_at_{cut}.py"
        file.write_text(text[:cut])
        return assay("run", file, "--save-dir", LAUNCHER.parent / "checkpoints")

    with ThreadPoolExecutor(2) as pool:
        for cut, result in zip(cuts, pool.map(run, cuts), strict=True):
            if cut < needed:
                assert_refused(result, f"cut_at_{cut}.py")
            else:
                assert result.code == 0, result


# --- Graphs that are not well formed --------------------------------------------------------------

BODIES = {
    "undefined value": (
        "relu = torch.relu(y)\nreturn (relu,)",
        ":8:27: 'y' is not defined\n  8 |         relu = torch.relu(y)\n    |" + " " * 27 + "^\n",
    ),
    "the name of a later result": (
        "torch.relu(x)\nreturn (relu.shape,)",
        "'relu' is not a value at this point of forward()",
    ),
    "no return": ("relu = torch.relu(x)", "forward() has no return statement"),
    "after return": ("return (x,)\nrelu = torch.relu(x)", "unexpected statement after the return"),
    "loop": ("for i in x:\n    pass\nreturn (x,)", "forward() cannot contain this statement"),
    "conditional": ("y = x if True else x\nreturn (y,)", "cannot contain"),
    "lambda": ("y = torch.relu(lambda: x)\nreturn (y,)", "cannot contain"),
    "keywords from a dict": ("y = torch.relu(**x)\nreturn (y,)", "a graph cannot contain **"),
    "missing attribute": ("y = self.weight\nreturn (y,)", "the module has no attribute 'weight'"),
    "deep brackets": ("y = " + "(" * 300 + "x" + ")" * 300, "brackets are nested too deeply"),
    "deep expression": ("y = x" + " + x" * 5000, "this expression is nested too deeply"),
    "deep sign": ("y = " + "-" * 5000 + "x", "expected a shallower expression"),
    "big integer": ("y = x + 123456789012345678901", "not a number Assay can represent"),
}


@pytest.mark.parametrize("name", BODIES)
def test_bodies_that_are_no_graph(name: str, tmp_path: Path) -> None:
    body, message = BODIES[name]
    result = assay("run", graph_file(tmp_path, body))
    assert_refused(result, "graph.py:", message)
    assert len(result.err) < 1000


INPUTS = {
    "nothing known": ("x", "the file does not describe the input 'x'"),
    "twice": ('x: "f32[4]", x: "f32[4]"', "duplicate parameter 'x'"),
    "too large": ('x: "f32[1000000000000][1]cpu"', "needs 4000000000000 bytes, more than this"),
    "overflow": ('x: "f32[4611686018427387904, 4611686018427387904]"', "overflows"),
    "negative": ('x: "f32[-4][1]cpu"', "an input has a negative size"),
}


@pytest.mark.parametrize("name", INPUTS)
def test_inputs_that_cannot_be_made(name: str, tmp_path: Path) -> None:
    inputs, message = INPUTS[name]
    assert_refused(assay("run", graph_file(tmp_path, "return (x,)", inputs=inputs)), message)


# --- Calls that cannot be made --------------------------------------------------------------------

CALLS = {
    "unknown operator": (
        "torch.ops.aten.relo.default(x)",
        ["unknown operator 'torch.ops.aten.relo.default'", "did you mean torch.ops.aten.relu."],
    ),
    "unknown library": (
        "torch.ops.mylib.frobnicate.default(x)",
        ["unknown operator 'torch.ops.mylib.frobnicate.default'"],
    ),
    "wrong argument": (
        "torch.ops.aten.add.Tensor(x, 'a')",
        [
            "argument 'other' should be Tensor, found",
            "its schema is aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1)",
        ],
    ),
    "missing argument": (
        "torch.ops.aten.mm.default(x)",
        ["argument 'mat2' is missing", "its schema is aten::mm(Tensor self, Tensor mat2)"],
    ),
    "too many arguments": (
        "torch.ops.aten.relu.default(x, 1)",
        ["takes 1 positional arguments, 2 given", "its schema is aten::relu(Tensor self)"],
    ),
    "unknown keyword": (
        "torch.ops.aten.relu.default(x, inplace = True)",
        ["has no argument 'inplace'", "its schema is aten::relu(Tensor self)"],
    ),
    "no overload": (
        "torch.sum(x, 'a')",
        [
            "the arguments of 'torch.sum' match no schema",
            "aten::sum.dim_IntList(Tensor self, int[1]? dim",
            "argument 'dim' should be ",
        ],
    ),
    "Python function": (
        "my.module.gelu(x)",
        ["the function 'my.module.gelu' needs a Python process", "TORCHDYNAMO_REPRO_AFTER=aot"],
    ),
    "Python method": ("x.frobnicate()", ["the method 'Tensor.frobnicate' needs a Python process"]),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_that_cannot_be_made(name: str, tmp_path: Path) -> None:
    call, messages = CALLS[name]
    result = assay("run", graph_file(tmp_path, f"y = {call}\nreturn (y,)"))
    assert_refused(result, "graph.py:8:9: node 'y': ", f"  8 |         y = {call}\n", *messages)


def test_module_that_only_python_can_make(tmp_path: Path) -> None:
    file = graph_file(tmp_path, "y = self.l(x)\nreturn (y,)", constructor="self.l = MyLayer(4)")
    assert_refused(
        assay("run", file), "node 'y': the module 'l', a MyLayer, needs a Python process"
    )


def test_subgraph_whose_body_stock_left_out() -> None:
    assert_refused(
        assay("run", FIXTURES / "higher_order" / "inference_runnable.py"),
        "the body of the subgraph 'true_graph_0' is not in the file",
        "stock PyTorch wrote '<lambda>()'",
        "hint: reproduce the branch on its own",
    )


def test_graph_that_contains_itself(tmp_path: Path) -> None:
    file = graph_file(tmp_path, "y = self.a(x)\nreturn (y,)", constructor="self.a = Repro()")
    assert_refused(assay("run", file), "the class 'Repro' is used twice")


def test_unknown_backend() -> None:
    result = assay("run", LAUNCHER, "--backend", "aot_eagr")
    assert_refused(result, "unknown backend 'aot_eagr'", "did you mean aot_eager")


def test_results_that_cannot_be_saved(tmp_path: Path) -> None:
    result = assay("run", LAUNCHER, "--output", tmp_path / "missing" / "results.pt")
    assert_refused(result, "results.pt: the results cannot be written")


def test_show_refuses_the_same_files(tmp_path: Path) -> None:
    (tmp_path / "graph.py").write_text(graph_text("relu = torch.relu(y)\nreturn (relu,)"))
    assert_refused(assay("show", tmp_path / "graph.py"), "'y' is not defined")
