"""`assay reduce`: what a user sees, and the files that are left."""

from __future__ import annotations

import fcntl
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from support.command import BINARY, Result, assay, environment, graph_file

BODY = """
a = torch.sin(x)
b = a * 2
c = torch.relu(b)
d = c + a
e = torch.cos(d)
return (e, d)
"""
AOT = ["--backend", "aot_eager"]
FAULT = ["--inject", "relu:runtime_error", *AOT]


@pytest.fixture()
def file(tmp_path: Path) -> Path:
    return graph_file(tmp_path, BODY)


def reduce(file: Path, *options: str | Path) -> dict[str, Any]:
    """The report of a reduction that succeeds, into `out` beside the file."""
    result = assay("reduce", file, "--json", "--output", file.parent / "out", *options)
    assert result.code == 0, result.out + result.err
    report = result.json()
    assert report["status"] == "reduced"
    return report


def forward(path: Path) -> list[str]:
    """The calls of a file's graph."""
    lines = path.read_text().split("def forward", 1)[1].split("def load_args", 1)[0].splitlines()
    return [line.strip() for line in lines if "=" in line and "def forward" not in line]


def test_a_file_that_passes_has_nothing_to_reduce(file: Path) -> None:
    result = assay("reduce", file, "--output", file.parent / "out", *AOT)
    assert result.code == 1
    assert "does not fail with aot_eager" in result.out
    assert "nothing to reduce" in result.out
    assert not (file.parent / "out" / "repro.py").exists()
    result = assay("reduce", file, "--output", file.parent / "out", *AOT, "--json")
    assert (result.code, result.json()["status"]) == (1, "passes")


def test_a_file_that_fails_eagerly_is_no_fault_of_the_compiler(tmp_path: Path) -> None:
    file = graph_file(tmp_path, "a = torch.relu(x)\nb = torch.mm(a, torch.ones(5, 5))\nreturn (b,)")
    result = assay("reduce", file, "--output", tmp_path / "out", *FAULT)
    assert result.code == 1
    assert result.out.startswith("Eager itself fails, so this is not a compiler bug:")
    assert "cannot be multiplied" in result.out
    result = assay("reduce", file, "--output", tmp_path / "out", *FAULT, "--json")
    assert (result.code, result.json()["status"]) == (1, "eager_fails")
    assert not (tmp_path / "out" / "repro.py").exists()


def test_a_file_that_is_different_each_time_is_no_fault_of_the_compiler(tmp_path: Path) -> None:
    names = [f"a{i}" for i in range(60)]
    calls = [f"{name} = torch.ops.assay_testing.fault.default(x, 'accuracy', 50)" for name in names]
    file = graph_file(tmp_path, "\n".join([*calls, f"return ({', '.join(names)})"]))
    result = assay("reduce", file, "--output", tmp_path / "out", *AOT)
    assert result.code == 1
    assert result.out.startswith("Eager itself fails")
    assert "not repeatable" in result.out


@pytest.mark.parametrize("kind", ["accuracy", "runtime_error", "compile_error", "abort"])
def test_faults_of_the_environment_are_the_compilers(kind: str, file: Path) -> None:
    # And not the trial server's, which runs relu too, before its first trial.
    result = assay(
        *("reduce", file, "--output", file.parent / "out", *AOT, "--json"),
        env={"ASSAY_INJECT_FAULT": f"relu:{kind}"},
    )
    assert result.json()["calls"] == 1


@pytest.mark.parametrize(
    ("options", "messages"),
    [
        (["--backend", "aot_eagre"], ["aot_eagre", "aot_eager"]),
        (["--passes", "calls,shrink"], ["unknown pass 'shrink'", "shapes"]),
        (["--inject", "relu:smoke"], ["unknown fault kind 'smoke'", "segfault"]),
        (["--inject", "relu"], ["OPERATOR:KIND", "relu:runtime_error"]),
        (["--jobs", "0"], ["--jobs"]),
        (["--timeout", "0"], ["--timeout"]),
        (["--confirmations", "0"], ["--confirmations"]),
        (["--stack", "jax"], ["--stack"]),
    ],
)
def test_bad_options_are_refused(options: list[str], messages: list[str], file: Path) -> None:
    result = assay("reduce", file, "--output", file.parent / "out", *options)
    assert result.code == 2
    for message in messages:
        assert message in result.err


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    result = assay("reduce", tmp_path / "nowhere.py", "--output", tmp_path / "out")
    assert result.code == 2
    assert "nowhere.py" in result.err
    assert not (tmp_path / "out").exists()


def test_the_text_says_what_was_found(file: Path) -> None:
    out = file.parent / "out"
    result = assay("reduce", file, "--output", out, *FAULT)
    assert result.code == 0
    lines = result.out.splitlines()
    assert lines[0].startswith("OperatorError in relu while running")
    assert lines[1].startswith("1 of 5 calls and 1 of 16 input elements are left; ")
    assert "rerun, it fails in 5 of 5 runs" in lines
    assert "torch.relu(" in result.out
    assert lines[-1] == str(out / "repro.py")


def test_the_json_says_everything(file: Path) -> None:
    report = reduce(file, *FAULT)
    assert report["signature"]["kind"] == "exception"
    assert report["signature"]["operator"] == "relu"
    assert report["signature"]["text"].startswith("OperatorError in relu")
    assert (report["calls_before"], report["calls"]) == (5, 1)
    assert (report["elements_before"], report["elements"]) == (16, 1)
    assert (report["runs"], report["reproduced"], report["flaky"]) == (5, 5, False)
    assert report["trials"] > 5
    assert report["killed_trials"] == 0
    assert report["seconds"] > 0
    assert report["other"] == []
    assert report["resumed"] is False
    assert Path(report["file"]) == file.parent / "out" / "repro.py"


def test_the_result_runs_from_anywhere(file: Path, tmp_path: Path) -> None:
    report = reduce(file, *FAULT, "--passes", "suspects")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert assay("run", report["file"], cwd=elsewhere).code == 0
    failing = assay("run", Path(report["file"]), *FAULT, cwd=elsewhere)
    assert failing.code == 1
    assert "synthesized" not in failing.out, "its inputs are beside it"


def test_checkpoints_are_programs(file: Path) -> None:
    reduce(file, *FAULT, "--passes", "calls")
    checkpoints = sorted((file.parent / "out" / "checkpoints").iterdir())
    assert {path.name for path in checkpoints} >= {"1.py", "5.py"}
    for path in checkpoints:
        assert len(forward(path)) == int(path.stem)
        assert assay("run", path).code == 0
        assert assay("run", path, *FAULT).code == 1


def test_another_failure_is_a_program_too(file: Path) -> None:
    report = reduce(file, "--inject", "relu:runtime_error,cos:abort", *AOT)
    [other] = report["other"]
    assert other["signature"]["type"] == "SIGABRT"
    assert Path(other["file"]).parent == file.parent / "out" / "other"
    assert assay("run", other["file"]).code == 0
    assert assay("run", other["file"], "--isolated", "--inject", "cos:abort").code == 1


def test_the_nearest_program_that_passes(file: Path) -> None:
    report = reduce(file, *FAULT, "--keep-passing")
    passing = Path(report["passing"])
    assert passing == file.parent / "out" / "passing.py"
    assert assay("run", passing).code == 0
    assert assay("run", passing, *FAULT).code == 0
    assert "passing" not in reduce(file, *FAULT, "--restart")
    assert not passing.exists()


def test_only_some_passes(file: Path) -> None:
    report = reduce(file, *FAULT, "--passes", "suffix,outputs")
    assert 1 < report["calls"] < 5
    assert report["elements"] == 16
    report = reduce(file, *FAULT, "--passes", "shapes")
    assert (report["calls"], report["elements"]) == (5, 1)


def test_a_command_judges(file: Path) -> None:
    report = reduce(file, "--check", "! grep -q torch.relu")
    assert report["calls"] == 1
    assert "torch.relu" in forward(file.parent / "out" / "repro.py")[0]
    assert report["signature"]["type"] == "exit code 1"
    assert not list((file.parent / "out").glob("candidate*"))


def test_a_command_that_cannot_say_refuses_a_candidate(file: Path) -> None:
    check = 'grep -q torch.cos "$0" || exit 125; ! grep -q torch.relu'
    report = reduce(file, "--check", check)
    assert report["calls"] == 2
    assert report["other"] == []


@pytest.mark.parametrize(
    ("check", "code"), [("exit 125 #", 125), ("no_such_command", 127), ("/etc/passwd", 126)]
)
def test_a_command_that_cannot_judge_the_file_itself(check: str, code: int, file: Path) -> None:
    result = assay("reduce", file, "--output", file.parent / "out", "--check", check)
    assert result.code == 2
    assert f"exit code {code}" in result.err
    assert "125 is inconclusive" in result.err


def test_a_command_that_is_content(file: Path) -> None:
    result = assay("reduce", file, "--output", file.parent / "out", "--check", "true")
    assert result.code == 1
    assert "nothing to reduce" in result.out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_what_a_command_started_ends_with_the_reducer(number: signal.Signals, file: Path) -> None:
    noted = file.parent / "sleeper"
    check = f"sleep 60 & echo $! > {noted}; wait; false"
    reducer = subprocess.Popen(
        [BINARY, "reduce", file, "--output", file.parent / "out", "--check", check],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment(),
    )
    deadline = time.monotonic() + 20
    while not (noted.exists() and noted.read_text().strip()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    reducer.send_signal(number)
    assert reducer.wait(timeout=10) != 0
    sleeper = Path("/proc") / noted.read_text().strip() / "stat"
    while sleeper.exists() and ") Z " not in sleeper.read_text():
        assert time.monotonic() < deadline, "it is still there"
        time.sleep(0.01)


def test_a_graph_without_calls(tmp_path: Path) -> None:
    file = graph_file(tmp_path, "return (x,)")
    assert reduce(file, "--check", "false")["calls"] == 0


def test_the_number_of_workers_does_not_matter(file: Path) -> None:
    texts = set()
    for jobs in ("1", "3"):
        reduce(file, *FAULT, "-j", jobs, "--restart")
        texts.add((file.parent / "out" / "repro.py").read_text())
    assert len(texts) == 1


def test_the_same_command_goes_on_and_restart_does_not(file: Path) -> None:
    first = reduce(file, *FAULT)
    again = reduce(file, *FAULT)
    assert again["resumed"]
    assert again["trials"] < first["trials"]
    assert not reduce(file, *FAULT, "--restart")["resumed"]
    assert not reduce(file, "--inject", "cos:runtime_error", *AOT)["resumed"], "another reduction"


def test_the_directory_is_named_after_the_file(file: Path) -> None:
    result = assay("reduce", file, *FAULT, cwd=file.parent)
    assert result.code == 0
    assert (file.parent / "graph_reduced" / "repro.py").exists()


def test_only_shapes_are_enough(file: Path) -> None:
    # The file has no data: what was made up at first stays, whatever is removed.
    report = reduce(file, "--inject", "relu:accuracy", *AOT, "--passes", "calls")
    repro = file.parent / "out" / "repro.py"
    assert report["signature"]["kind"] == "accuracy"
    assert "reader.storage('" in repro.read_text()
    assert assay("run", repro, "--accuracy", "--inject", "relu:accuracy", *AOT).code == 1


def check_refused(result: Result, message: str) -> None:
    assert result.code == 2
    assert message in result.err
    assert "--output" in result.err


def test_the_file_itself_is_never_removed(file: Path) -> None:
    report = reduce(file, *FAULT, "--passes", "calls")
    repro = Path(report["file"])
    before = repro.read_text()
    result = assay("reduce", repro, *FAULT, "--output", repro.parent)
    check_refused(result, "belongs to the file to reduce")
    assert repro.read_text() == before
    assert assay("run", repro).code == 0


def test_what_no_reduction_made_is_not_removed(file: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    (mine / "storages").mkdir(parents=True)
    (mine / "storages" / "precious").write_text("data")
    check_refused(assay("reduce", file, *FAULT, "--output", mine), "would be overwritten")
    assert (mine / "storages" / "precious").read_text() == "data"


def test_two_reductions_do_not_share_a_directory(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    with (out / ".lock").open("w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        check_refused(
            assay("reduce", file, *FAULT, "--output", out), "another reduction is running"
        )
    assert assay("reduce", file, *FAULT, "--output", out).code == 0


def test_no_contents_are_left_that_nobody_needs(file: Path) -> None:
    reduce(file, *FAULT)
    out = file.parent / "out"
    texts = "".join(path.read_text() for path in out.rglob("*.py"))
    assert all(storage.name in texts for storage in (out / "storages").iterdir())
