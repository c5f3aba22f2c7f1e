"""`assay run --isolated` and `--accuracy`: the run is a trial, and its verdict is printed."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from support.command import FIXTURES, assay, graph_file

BODY = "a = torch.sin(x)\nb = torch.relu(a)\nreturn (b,)"
LAUNCHER = FIXTURES / "linear_layernorm_relu" / "dynamo_launcher.py"


def test_what_works_is_said_to_work(tmp_path: Path) -> None:
    file = graph_file(tmp_path, BODY)
    result = assay("run", file, "--isolated")
    assert result.code == 0
    assert result.out.startswith("native runs in ")
    result = assay("run", file, "--accuracy", "--backend", "eager")
    assert result.code == 0
    assert result.out.startswith("eager matches eager in ")


def test_a_file_from_stock_works_with_its_own_data() -> None:
    assert assay("run", LAUNCHER, "--accuracy", "--backend", "aot_eager").code == 0


@pytest.mark.parametrize(
    ("kind", "options", "verdict"),
    [
        ("compile_error", ["--isolated"], "BackendError in relu while compiling"),
        ("runtime_error", ["--isolated"], "OperatorError in relu while running"),
        ("segfault", ["--isolated"], "SIGSEGV in relu while running"),
        ("abort", ["--isolated"], "SIGABRT in relu while running"),
        ("hang", ["--isolated", "--timeout", "0.5"], "hangs in relu while running"),
        ("accuracy", ["--accuracy"], "differs from eager (values) at output[0]"),
        ("nan", ["--accuracy"], "NaNs are not where eager has them at output[0]"),
        ("runtime_error", ["--accuracy"], "OperatorError in relu while running"),
        ("segfault", ["--accuracy"], "SIGSEGV in relu while running"),
    ],
)
def test_each_failure_is_told(kind: str, options: list[str], verdict: str, tmp_path: Path) -> None:
    file = graph_file(tmp_path, BODY)
    result = assay("run", file, "--inject", f"relu:{kind}", "--backend", "aot_eager", *options)
    assert result.code == 1
    assert result.out.splitlines()[0].startswith(f"failed: {verdict}")


def test_wrong_numbers_are_not_looked_for_without_accuracy(tmp_path: Path) -> None:
    file = graph_file(tmp_path, BODY)
    assert assay("run", file, "--isolated", "--inject", "relu:accuracy").code == 0


def test_a_hang_ends_in_time(tmp_path: Path) -> None:
    file = graph_file(tmp_path, BODY)
    begin = time.monotonic()
    options = ["--isolated", "--inject", "relu:hang", "--timeout", "0.3"]
    assert assay("run", file, *options).code == 1
    assert time.monotonic() - begin < 10


@pytest.mark.parametrize("option", ["--isolated", "--accuracy"])
def test_when_eager_itself_fails_the_compiler_is_not_blamed(option: str, tmp_path: Path) -> None:
    file = graph_file(tmp_path, "a = torch.mm(x, torch.ones(5, 5))\nreturn (a,)")
    result = assay("run", file, option)
    assert result.code == 1
    assert result.out.startswith("Eager itself fails, so this is not a compiler bug:")
    assert "cannot be multiplied" in result.out


def test_what_is_different_each_time_cannot_be_compared(tmp_path: Path) -> None:
    # The operator of injected faults, in the user's own program: each is wrong every other time.
    names = [f"a{i}" for i in range(60)]
    calls = [f"{name} = torch.ops.assay_testing.fault.default(x, 'accuracy', 50)" for name in names]
    file = graph_file(tmp_path, "\n".join([*calls, f"return ({', '.join(names)})"]))
    assert assay("run", file, "--isolated").code == 0
    result = assay("run", file, "--accuracy")
    assert result.code == 1
    assert result.out.startswith("Eager itself fails")


def test_json_says_everything_about_a_run(tmp_path: Path) -> None:
    file = graph_file(tmp_path, BODY)
    report = assay("run", file, "--accuracy", "--backend", "aot_eager", "--json").json()
    assert report["status"] == "ok"
    assert (report["backend"], report["stack"], report["accuracy"]) == ("aot_eager", "assay", True)
    assert report["signature"]["kind"] == "passed"
    assert report["seconds"] > 0
    assert report["peak_bytes"] > 0

    options = ["--backend", "aot_eager", "--inject", "relu:accuracy", "--accuracy", "--json"]
    result = assay("run", file, *options)
    assert result.code == 1
    report = result.json()
    assert report["status"] == "failed"
    assert report["signature"]["kind"] == "accuracy"
    assert report["signature"]["stage"] == "compare"
    assert report["where"] == "output[0]"
    assert report["error"] > report["tolerance"] > 0

    options[3] = "relu:abort"
    report = assay("run", file, *options).json()
    assert report["signature"]["kind"] == "signal"
    assert report["signature"]["operator"] == "relu"
    assert report["node"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--backend", "nobody"], "nobody"),
        (["--timeout", "-1"], "--timeout"),
        (["--stack", "jax"], "--stack"),
    ],
)
def test_bad_options_are_refused(options: list[str], message: str, tmp_path: Path) -> None:
    result = assay("run", graph_file(tmp_path, BODY), "--isolated", *options)
    assert result.code == 2
    assert message in result.err


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    result = assay("run", tmp_path / "no.py", "--isolated")
    assert result.code == 2
    assert "no.py" in result.err


def test_a_bad_fault_is_refused(tmp_path: Path) -> None:
    result = assay("run", graph_file(tmp_path, BODY), "--isolated", "--inject", "relu:smoke")
    assert result.code != 0
    assert "smoke" in result.out + result.err


def test_of_a_long_output_a_failure_shows_the_end(tmp_path: Path) -> None:
    names = [f"a{i}" for i in range(400)]
    calls = [f"{new} = torch.sin({old})" for old, new in zip(["x", *names], names, strict=False)]
    file = graph_file(tmp_path, "\n".join([*calls, "b = torch.relu(a399)", "return (b,)"]))
    options = ["--isolated", "--backend", "aot_eager", "--inject", "relu:runtime_error"]
    logs = {"TORCH_LOGS": "aot_graphs,aot_joint_graph"}
    result = assay("run", file, *options, "--json", env=logs)
    assert len(result.json()["output"]) > 1 << 16
    result = assay("run", file, *options, env=logs)
    assert result.code == 1
    assert "its last output:" in result.out
    assert len(result.out) < (1 << 16) + 1000
