"""Reducing failures of backends written in Python, which trials get by name or by value."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import torch

import assay
from assay import _reduce
from assay.stock import sent_backend
from fx.recorded import record
from support.command import environment

TESTS = Path(__file__).parents[1]


def program(x: torch.Tensor, y: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor]:
    z = torch.sin(x + y)
    a = torch.relu(z)
    for _ in range(5):
        a = torch.nn.functional.linear(a, w).tanh()
    return (a,)


def inputs() -> tuple[torch.Tensor, ...]:
    torch.manual_seed(0)
    return tuple(torch.randn(8, 8, requires_grad=True) for _ in range(3))


@pytest.fixture(scope="module")
def launcher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with that program, as the debug wrapper writes one."""
    directory = tmp_path_factory.mktemp("launcher")
    recorded = record(program, inputs())[0]
    file = directory / "minifier_launcher.py"
    graph = assay.fx.from_graph_module(recorded.module)
    assay._C.save_repro(
        graph._graph, recorded.inputs, str(file), "mine", "after_dynamo", False, str(directory)
    )
    return file


def assay_command(
    binary: Path, *arguments: str | Path, cwd: Path
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [binary, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=cwd,
        env=environment(
            ASSAY_PYTHON=sys.executable,
            PYTHONPATH=os.pathsep.join([*_package_path(), str(TESTS)]),
        ),
        check=False,
    )


def _package_path() -> list[str]:
    return [str(Path(assay.__file__).parents[1])]


def calls_in(repro: Path) -> list[str]:
    [forward] = [part.split("return")[0] for part in repro.read_text().split("def forward")[1:]]
    return [line.strip() for line in forward.splitlines() if " = " in line and "#" not in line]


# --- By name --------------------------------------------------------------------------------------

KINDS = {
    "raises": "NotImplementedError in relu while compiling",
    "raises_at_run_time": "ZeroDivisionError",
    "crashes": "SIGSEGV",
    "hangs": "hangs",
    "is_wrong": "differs from eager (values)",
    "is_wrong_backward": "differs from eager (values)",
}


@pytest.mark.parametrize(
    "kind",
    ["is_wrong", *(pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS)],
)
def test_a_backend_by_name(kind: str, launcher: Path, assay_binary: Path, tmp_path: Path) -> None:
    timeout = ["--timeout", "3"] if kind == "hangs" else []
    done = assay_command(
        assay_binary, "reduce", launcher, "--backend", f"fx.backends:{kind}", "--output", "out",
        *timeout, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert KINDS[kind] in done.stdout
    [call] = calls_in(tmp_path / "out" / "repro.py")
    assert "torch.relu(" in call
    text = (tmp_path / "out" / "repro.py").read_text()
    assert f"assay run repro.py --backend fx.backends:{kind}" in text


@pytest.mark.slow
def test_what_does_not_fail(launcher: Path, assay_binary: Path, tmp_path: Path) -> None:
    done = assay_command(
        assay_binary, "run", launcher, "--backend", "fx.backends:is_right", "--accuracy",
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "fx.backends:is_right matches eager" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--stack", "python"], "--stack python needs to know where the backend is"),
        (["--backend-file", "none.pkl"], "none.pkl: no such file"),
        (["--backend", "a:b", "--backend-file", "x.pkl"], "both name a backend"),
        (["--backend", "no_such_module:f"], "No module named 'no_such_module'"),
    ],
)
def test_wrong_requests(
    arguments: list[str], message: str, launcher: Path, assay_binary: Path, tmp_path: Path
) -> None:
    (tmp_path / "x.pkl").write_bytes(b"")
    for command in ("run", "reduce"):
        if ":" in arguments[-1] and command == "run":
            continue  # one start of the server is enough
        done = assay_command(assay_binary, command, launcher, *arguments, cwd=tmp_path)
        assert done.returncode == 2, done.stdout + done.stderr
        assert message in done.stderr


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("fx.backends:nothing", "has no attribute 'nothing'"),
        ("fx.backends:not_a_backend", "TypeError: a int cannot be called"),
    ],
)
def test_names_of_no_backend(name: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(TESTS), *sys.path])
    with pytest.raises(sent_backend.CannotLoad, match=message):
        sent_backend.load_named(name)
    assert not sent_backend.is_loaded()


# --- By value -------------------------------------------------------------------------------------

GUIDE = """
import sys
import torch
import assay
from assay import _reduce

model = torch.nn.Sequential(*[torch.nn.Linear(20, 20) for _ in range(5)])

def test_backend_error():
    y = torch.ones(20, 20)
    x = torch.ones(20, 20)
    z = x + y
    a = torch.relu(z)
    return model(a)

def toy_compiler(gm, _):
    for node in gm.graph.nodes:
        if node.target == torch.relu:
            assert False
    return gm

seen = []
torch.compile(test_backend_error, backend=lambda *args: seen.append(args) or args[0])()
print(_reduce.reduce(*seen[0], toy_compiler))
"""


def test_the_guides_toy_compiler(assay_binary: Path, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(GUIDE)
    done = run_script(tmp_path, assay_binary)
    assert done.returncode == 0, done.stderr
    repro = Path(done.stdout.splitlines()[-1])
    assert repro == tmp_path / "torch_compile_debug" / "toy_compiler" / "reduced" / "repro.py"
    [call] = calls_in(repro)
    assert "= torch.relu(" in call
    assert "AssertionError in relu while compiling" in done.stderr


WATCHED = """
import torch
import assay

def program(x, y):
    return torch.tanh(torch.relu(x + y) @ y)

class Compiler:
    def __init__(self, operator):
        self.operator = operator

    def __call__(self, gm, example_inputs):
        for node in gm.graph.nodes:
            if node.target is self.operator:
                raise TypeError("cannot compile this")
        return gm

compiled = assay.aot.compile(program, backend=Compiler(torch.ops.aten.relu.default))
compiled(torch.ones(4, 4), torch.ones(4, 4))
"""


def test_the_debug_wrapper_reduces_by_itself(assay_binary: Path, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(WATCHED)
    done = run_script(tmp_path, assay_binary, TORCHDYNAMO_REPRO_AFTER="dynamo")
    assert done.returncode == 1
    assert "BackendCompilerFailed: backend 'Compiler' raised:\nTypeError" in done.stderr
    assert "TypeError in relu while compiling" in done.stderr
    [call] = calls_in(tmp_path / "repro.py")
    assert "torch.ops.aten.relu.default(" in call


def run_script(directory: Path, binary: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "script.py"],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=directory,
        env=environment(
            ASSAY_BINARY=str(binary), PYTHONPATH=os.pathsep.join(_package_path()), **variables
        ),
        check=False,
    )


def sent(backend: Any, tmp_path: Path) -> Any:
    file = tmp_path / "backend.pkl"
    sent_backend.save(backend, file)
    return pickle.loads(pickle.loads(file.read_bytes())["backend"])


def test_operators_are_sent_by_name(tmp_path: Path) -> None:
    operators = [torch.ops.aten.relu.default, torch.ops.aten.add, torch.ops.higher_order.cond]
    assert all(a is b for a, b in zip(sent(operators, tmp_path), operators, strict=True))
    assert sent(lambda: torch.ops.aten.add.Tensor, tmp_path)() is torch.ops.aten.add.Tensor
    assert sent({"f": torch.relu}, tmp_path)["f"] is torch.relu


# --- In forks of the process ----------------------------------------------------------------------

LIVE = """
import threading
import torch
import assay
from assay import _reduce

torch.set_num_threads(2)
big = torch.randn(2000, 2000)
big @ big.sin()  # the process has threads by now

lock = threading.Lock()

def mine(x):
    return x * 2

def build():
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_function(torch.sin, (x,))
    z = graph.call_function(mine, (y,))
    graph.output((graph.call_function(torch.tanh, (z,)), y))
    return torch.fx.GraphModule({}, graph)

def backend(gm, example_inputs):
    with lock:
        for node in gm.graph.nodes:
            if node.target is mine:
                raise NotImplementedError("what is this?")
    return gm

print(_reduce.reduce(build(), [torch.ones(3)], backend))
"""


def test_what_cannot_be_sent_is_tried_in_forks(assay_binary: Path, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(LIVE)
    done = run_script(tmp_path, assay_binary)
    assert done.returncode == 0, done.stderr
    assert "NotImplementedError in mine while compiling" in done.stderr
    [call] = calls_in(Path(done.stdout.splitlines()[-1]))
    assert "= __main__.mine(" in call


LIVE_CRASH = LIVE.replace("raise NotImplementedError", "import ctypes; ctypes.string_at(0); print")


@pytest.mark.slow
def test_crashes_of_forks_do_not_end_the_process(assay_binary: Path, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(LIVE_CRASH)
    done = run_script(tmp_path, assay_binary)
    assert done.returncode == 0, done.stderr
    assert "SIGSEGV" in done.stderr
    [call] = calls_in(Path(done.stdout.splitlines()[-1]))
    assert "= __main__.mine(" in call


def test_only_what_others_cannot_have_is_tried_in_forks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = threading.Lock()

    def backend(gm: torch.fx.GraphModule, example_inputs: list[Any]) -> Any:
        return gm

    def holding_a_lock(gm: torch.fx.GraphModule, example_inputs: list[Any]) -> Any:
        with lock:
            return gm

    monkeypatch.setattr(_reduce.live_server, "start", lambda backend: "a socket")

    def how(backend: Any, *functions: str) -> str:
        return _reduce.send(backend, "it", str(tmp_path), functions)[0][0]

    common = ["torch.relu", "operator.add", "torch.ops.aten.add.Tensor", "getattr"]
    assert how(backend, *common) == "--backend-file"
    assert how(backend, *common, "torch.ops.mylib.foo.default") == "--backend-server"
    assert how(backend, "assay.fx.objects.f_0") == "--backend-server"
    assert how(holding_a_lock, *common) == "--backend-server"
