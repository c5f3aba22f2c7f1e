"""`assay backends`, `assay run --backend`, `--backward` and `--inject`."""

from __future__ import annotations

import functools
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

from support.command import FIXTURES, assay, graph_file

LAUNCHER = FIXTURES / "linear_layernorm_relu" / "dynamo_launcher.py"
RUNNABLE = FIXTURES / "linear_layernorm_relu" / "forward_runnable.py"

# Stock PyTorch's debugging backends (torch/_dynamo/backends/debugging.py), by what they do here.
WORKING = [
    "eager",
    "eager_noexcept",
    "pre_dispatch_eager",
    "eager_debug",
    "ts",
    "aot_eager",
    "aot_eager_default_partitioner",
    "invoke_subgraph",
    "aot_ts",
    "aot_eager_decomp_partition",
    "aot_eager_decomp_partition_with_mode",
    "aot_eager_decomp_partition_crossref",
]
COMPILERS = ["native", "inductor"]
FAULTY = [
    "relu_compile_error_TESTING_ONLY",
    "relu_runtime_error_TESTING_ONLY",
    "relu_accuracy_error_TESTING_ONLY",
    "non_leaf_compile_error_TESTING_ONLY",
]


@functools.cache
def eager_gradients() -> dict[str, Any]:
    report = assay("run", LAUNCHER, "--backward", "--json").json()
    return {entry["name"]: entry for entry in report["gradients"]}


def test_backends_are_listed() -> None:
    entries = {entry["name"]: entry for entry in assay("backends", "--json").json()}
    assert [*entries] == WORKING + COMPILERS + FAULTY
    assert all(entries[name]["tags"] == ["debug"] for name in WORKING)
    assert all(entries[name]["tags"] == ["testing"] for name in FAULTY)
    text = assay("backends").out
    for entry in entries.values():
        assert f"  {entry['name']} " in text
        assert entry["description"] in text
    assert "--inject" in text


def test_every_debugging_backend_of_stock_is_there() -> None:
    from torch._dynamo.backends import registry

    stock = {
        name
        for name in registry.list_backends(exclude_tags=())
        if "debugging" in registry.lookup_backend(name).__module__
    }
    assert {"eager", "eager_debug"} <= stock <= {*WORKING, *FAULTY}


def test_decompositions_are_listed() -> None:
    entries = assay("decompositions", "--json").json()
    gelu = next(entry for entry in entries if entry["operator"] == "aten::gelu")
    assert "erf" in gelu["into"]
    assert [entry["operator"] for entry in entries] == sorted(e["operator"] for e in entries)
    assert "aten::gelu " in assay("decompositions").out


@pytest.mark.parametrize("backend", WORKING)
@pytest.mark.parametrize("file", [LAUNCHER, RUNNABLE], ids=["after_dynamo", "after_aot"])
def test_backend_gives_stocks_results(backend: str, file: Path, tmp_path: Path) -> None:
    saved = tmp_path / "results.pt"
    result = assay("run", file, "--backend", backend, "--output", saved, "--repeat", "3")
    assert result.code == 0, result.err
    assert f"ran with backend {backend} in" in result.out
    expected = torch.load(file.with_suffix(".expected.pt"))
    found = torch.load(saved)
    assert len(found) == len(expected)
    for ours, stock in zip(found, expected, strict=True):
        torch.testing.assert_close(ours.detach(), stock, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("backend", WORKING)
def test_backend_gives_eagers_gradients(backend: str) -> None:
    report = assay("run", LAUNCHER, "--backend", backend, "--backward", "--json").json()
    assert len(report["gradients"]) == 4
    for entry in report["gradients"]:
        eager = eager_gradients()[entry["name"]]
        assert entry["type"] == eager["type"]
        for key in ("mean", "min", "max"):
            assert entry[key] == pytest.approx(eager[key], rel=1e-4, abs=1e-5)


def test_gradients_are_rows_of_the_table(tmp_path: Path) -> None:
    inputs = 'x: "f32[3][1]cpu requires_grad", y: "f32[3][1]cpu"'
    file = graph_file(tmp_path, "mul = x * 3\nreturn (mul + y,)", inputs=inputs)
    result = assay("run", file, "--backward", "--backend", "aot_eager")
    assert result.out.splitlines()[-1].split() == ["grad:x", "f32[3][1]cpu", "3", "3", "3"]
    assert "grad:y" not in result.out


def test_backward_without_gradients_is_refused(tmp_path: Path) -> None:
    constant = graph_file(tmp_path, "return (torch.relu(x),)")
    for file, message in [
        (RUNNABLE, "captured after autograd"),
        (constant, "no floating-point result"),
    ]:
        result = assay("run", file, "--backward")
        assert (result.code, result.out) == (2, "")
        assert message in result.err
        assert "hint: " in result.err


def test_unknown_backend_gives_the_nearest() -> None:
    result = assay("run", LAUNCHER, "--backend", "eagr_debug")
    assert result.code == 2
    assert "unknown backend 'eagr_debug'" in result.err
    assert "did you mean eager_debug" in result.err
    assert "`assay backends` lists them all" in result.err


def test_pre_dispatch_graph_is_printed() -> None:
    result = assay("run", LAUNCHER, "--backend", "pre_dispatch_eager", "--json")
    assert result.json()["status"] == "ok"  # the graph is not in the way of the JSON
    assert "torch.ops.aten.layer_norm.default(" in result.err


def test_mode_logs_every_operator() -> None:
    backend = "aot_eager_decomp_partition_with_mode"
    log = assay("run", LAUNCHER, "--backend", backend, env={"TORCH_LOGS": "+backends"}).err
    assert "torch.ops.aten.rsqrt.default(" in log


@pytest.mark.parametrize(
    ("backend", "stage", "message"),
    [
        ("relu_compile_error_TESTING_ONLY", "compile", "injected compile error at 'input_3'"),
        ("relu_runtime_error_TESTING_ONLY", "run", "injected runtime error"),
    ],
)
def test_failing_backend_is_exit_code_1_and_named(backend: str, stage: str, message: str) -> None:
    result = assay("run", LAUNCHER, "--backend", backend)
    assert (result.code, result.out) == (1, "")
    doing = {"compile": "compiling", "run": "running"}[stage]
    assert result.err.startswith(f"failed: {backend}, {doing}: ")
    assert message in result.err
    result = assay("run", LAUNCHER, "--backend", backend, "--json")
    assert result.code == 1
    failure = result.json()["failure"]
    assert (failure["backend"], failure["stage"]) == (backend, stage)
    assert failure["node"].startswith("input_3")
    assert message in failure["message"]


def test_a_graph_that_a_backend_cannot_take_is_its_failure(tmp_path: Path) -> None:
    file = graph_file(tmp_path, "nonzero = torch.nonzero(x)\nreturn (nonzero,)")
    assert assay("run", file).code == 0
    result = assay("run", file, "--backend", "aot_eager", "--json")
    assert result.code == 1
    failure = result.json()["failure"]
    assert (failure["backend"], failure["stage"]) == ("aot_eager", "compile")
    assert "nonzero" in failure["message"]


def test_a_file_that_is_wrong_is_exit_code_2_with_every_backend(tmp_path: Path) -> None:
    file = graph_file(tmp_path, "relo = torch.ops.aten.relo.default(x)\nreturn (relo,)")
    for backend in ("eager", "aot_eager", "ts"):
        result = assay("run", file, "--backend", backend)
        assert result.code == 2
        assert f"{file}:8:9: node 'relo': unknown operator" in result.err


@pytest.mark.parametrize("backend", ["eager", "ts", "aot_eager_decomp_partition"])
def test_faults_are_injected(backend: str) -> None:
    def run(fault: str) -> Any:
        return assay("run", LAUNCHER, "--backend", backend, "--inject", fault, "--json").json()

    right = assay("run", LAUNCHER, "--json").json()["outputs"][0]
    assert run("relu:compile_error")["failure"]["stage"] == "compile"
    failure = run("relu:runtime_error")["failure"]
    assert failure["stage"] == "run"
    assert "injected runtime error" in failure["message"]
    assert run("relu:nan")["outputs"][0]["nan"] == 100
    assert abs(run("linear:accuracy")["outputs"][0]["mean"] - right["mean"]) > 1e-6
    assert abs(run("relu:accuracy")["outputs"][0]["mean"] - right["mean"]) > 0.1


def test_a_fault_in_a_backward_operator_fails_backward() -> None:
    arguments = ["run", LAUNCHER, "--backend", "aot_eager"]
    fault = ["--inject", "threshold_backward:runtime_error"]
    assert assay(*arguments, *fault).code == 0
    result = assay(*arguments, *fault, "--backward", "--json")
    assert result.code == 1
    assert result.json()["failure"]["stage"] == "backward"


def test_deadly_faults_are_real() -> None:
    for fault, number in [("relu:segfault", signal.SIGSEGV), ("relu:abort", signal.SIGABRT)]:
        assert assay("run", LAUNCHER, "--inject", fault).code == -number


def test_fault_from_the_environment_and_its_absence() -> None:
    result = assay("run", LAUNCHER, env={"ASSAY_INJECT_FAULT": "relu:runtime_error"})
    assert result.code == 1
    result = assay("run", LAUNCHER, "--inject", "conv3d:nan")
    assert result.code == 0
    assert "no fault was injected: nothing in the graph calls 'conv3d'" in result.err


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("relu", "expected a fault as OPERATOR:KIND, found 'relu'"),
        ("relu:acuracy", "did you mean accuracy?"),
        ("", "expected a fault as OPERATOR:KIND"),
    ],
)
def test_wrong_faults_are_refused(fault: str, message: str) -> None:
    result = assay("run", LAUNCHER, "--inject", fault)
    assert result.code == 2
    assert message in result.err
    assert "the kinds are compile_error, runtime_error" in result.err
