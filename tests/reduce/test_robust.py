"""What must not lead a reduction astray: other faults, faults that come and go, killed trials, the
reducer's own death."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from reduce.reducing import reduce, stock_file
from support.command import BINARY, environment, graph_file

AOT = ["--backend", "aot_eager"]


def processes_below(parent: int) -> list[int]:
    """The process's children, their children, and so on."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError, IndexError):
            after_name = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            children.setdefault(int(after_name[1]), []).append(int(entry.name))
    found: list[int] = []
    pending = [parent]
    while pending:
        below = children.get(pending.pop(), [])
        found += below
        pending += below
    return found


def trial_processes(reducer: int) -> list[int]:
    """The processes of trials: the children of the servers, which are the reducer's children."""
    below = processes_below(reducer)
    return [process for process in below if f"PPid:\t{reducer}\n" not in _status(process)]


def _status(process: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/status").read_text()
    return ""


@pytest.fixture()
def chain(stock_root: Path) -> Path:
    return stock_file("chain", "after_dynamo", stock_root)


def test_the_first_of_two_faults_is_kept_and_the_second_reported(
    chain: Path, tmp_path: Path
) -> None:
    faults = "sigmoid:runtime_error,relu:abort"
    reduced = reduce(chain, tmp_path / "out", "--inject", faults, *AOT)
    assert reduced.report["signature"]["operator"] == "sigmoid"
    assert reduced.report["calls"] == 1
    [other] = reduced.report["other"]
    assert other["signature"]["type"] == "SIGABRT"
    assert other["signature"]["operator"] == "relu"
    # It is a program of its own, ready to be reduced.
    again = reduce(Path(other["file"]), tmp_path / "again", "--inject", "relu:abort", *AOT)
    assert again.report["calls"] == 1
    assert "relu" in again.graph[0]


def test_two_faults_of_one_kind_are_told_apart(chain: Path, tmp_path: Path) -> None:
    faults = "relu:segfault,sigmoid:segfault"
    reduced = reduce(chain, tmp_path / "out", "--inject", faults, *AOT)
    assert reduced.report["signature"]["operator"] == "sigmoid"
    assert reduced.report["calls"] == 1
    assert "sigmoid" in reduced.graph[0]
    assert [other["signature"]["operator"] for other in reduced.report["other"]] == ["relu"]


@pytest.mark.parametrize("kind", ["runtime_error", "accuracy", "segfault"])
def test_a_flaky_fault_is_reduced_and_said_to_be_flaky(kind: str, tmp_path: Path) -> None:
    # One call has the fault, so that the program fails in half of its runs.
    body = "a = torch.sin(x)\nb = a * 2\nc = torch.relu(b)\nd = c + a\ne = d - b\nreturn (e,)"
    file = graph_file(tmp_path, body)
    fault = f"relu:{kind}:50%"
    reduced = reduce(file, tmp_path / "out", "--inject", fault, *AOT, "--confirmations", "12")
    assert reduced.report["status"] == "reduced"
    assert reduced.report["calls"] == 1
    assert "relu" in reduced.graph[0]
    assert reduced.report["flaky"]
    assert 0 < reduced.report["reproduced"] < 12


def start(
    file: Path, directory: Path, *options: str, env: dict[str, str] | None = None
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [BINARY, "reduce", file, "--json", "--output", directory, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(**(env or {})),
        text=True,
    )


def while_running(
    reducer: subprocess.Popen[str], pause: float, seconds: float = 300
) -> Iterator[None]:
    """Until the reducer ends. One that does not end in time is killed, and fails the test."""
    deadline = time.monotonic() + seconds
    while reducer.poll() is None:
        if time.monotonic() > deadline:
            reducer.kill()
            pytest.fail("the reducer did not end in time")
        yield
        time.sleep(pause)


def wait_for_a_trial(reducer: subprocess.Popen[str]) -> list[int]:
    """The processes below the reducer, once there are its two servers and a trial."""
    for _ in while_running(reducer, pause=0.01, seconds=60):
        below = processes_below(reducer.pid)
        if len(below) >= 3:
            return below
    raise AssertionError("the reducer ended before its first trial")


def kill_trials(reducer: subprocess.Popen[str], share: float, seed: int) -> int:
    """Kill that share of the trials' processes from outside until the reducer ends."""
    draw = random.Random(seed)
    seen: set[int] = set()
    killed = 0
    for _ in while_running(reducer, pause=0.001):
        for process in trial_processes(reducer.pid):
            if process in seen:
                continue
            seen.add(process)
            if draw.random() < share:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
                    killed += 1
    return killed


def test_trials_killed_from_outside_do_not_change_the_result(chain: Path, tmp_path: Path) -> None:
    options = ["--inject", "relu:accuracy", *AOT]
    expected = reduce(chain, tmp_path / "quiet", *options)
    reducer = start(chain, tmp_path / "killed", *options)
    killed = kill_trials(reducer, share=0.3, seed=1)
    assert reducer.wait() == 0
    assert killed > 0
    assert (tmp_path / "killed" / "repro.py").read_text() == expected.text


def test_when_every_trial_is_killed_nothing_is_written(chain: Path, tmp_path: Path) -> None:
    reducer = start(chain, tmp_path / "out", "--inject", "relu:accuracy", *AOT)
    kill_trials(reducer, share=1, seed=1)
    out, _ = reducer.communicate()
    assert reducer.returncode == 1
    assert '"status": "killed"' in out
    assert "killed externally" in out
    assert not (tmp_path / "out" / "repro.py").exists()


def test_a_reducer_that_was_killed_goes_on(chain: Path, tmp_path: Path) -> None:
    options = ["--inject", "relu:accuracy", *AOT, "-j", "1"]
    expected = reduce(chain, tmp_path / "whole", *options)
    verdicts = tmp_path / "out" / "verdicts.jsonl"
    for count in (2, 6, 12):
        reducer = start(chain, tmp_path / "out", *options)
        for _ in while_running(reducer, pause=0.002):
            if verdicts.exists() and len(verdicts.read_text().splitlines()) >= count:
                reducer.kill()
        reducer.wait()
    resumed = reduce(chain, tmp_path / "out", *options)
    assert resumed.report["resumed"]
    assert resumed.text == expected.text
    assert resumed.report["trials"] < expected.report["trials"]


def test_ctrl_c_says_how_to_go_on(chain: Path, tmp_path: Path) -> None:
    reducer = start(chain, tmp_path / "out", "--inject", "relu:hang", *AOT, "--timeout", "30")
    wait_for_a_trial(reducer)
    reducer.send_signal(signal.SIGINT)
    _, err = reducer.communicate(timeout=10)
    assert reducer.returncode == 130
    assert "run the same command again to resume" in err


def test_nothing_is_left_running(chain: Path, tmp_path: Path) -> None:
    reducer = start(chain, tmp_path / "out", "--inject", "relu:hang", *AOT, "--timeout", "30")
    below = wait_for_a_trial(reducer)
    reducer.kill()
    reducer.wait()
    deadline = time.monotonic() + 10
    while any(_status(process) and "Z" not in _status(process) for process in below):
        assert time.monotonic() < deadline, "a process outlived the reducer"
        time.sleep(0.05)


@pytest.mark.slow  # tests/cli/test_reduce.py has a small one
@pytest.mark.parametrize("kind", ["runtime_error", "accuracy"])
def test_the_number_of_workers_does_not_matter(kind: str, chain: Path, tmp_path: Path) -> None:
    texts = set()
    for jobs in ("1", "2", "4"):
        reduced = reduce(chain, tmp_path / jobs, "--inject", f"sigmoid:{kind}", *AOT, "-j", jobs)
        texts.add(reduced.text)
    assert len(texts) == 1


def test_threads_of_the_caller_do_not_matter(chain: Path, tmp_path: Path) -> None:
    threads = [
        threading.Thread(
            target=reduce, args=(chain, tmp_path / str(i), "--inject", "relu:abort", *AOT)
        )
        for i in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "0/repro.py").read_text() == (tmp_path / "1/repro.py").read_text()
