"""A diagnosis that is killed goes on; one whose runs are killed says so and invents nothing."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from diagnose.diagnosing import diagnose, environment
from diagnose.test_diagnose import SCRIPT
from support.command import BINARY
from support.command import environment as clean


def children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):  # it may end meanwhile
        for thread in Path(f"/proc/{pid}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                found += [int(child) for child in thread.read_text().split()]
    return found


@pytest.mark.slow
def test_killed_runs_are_no_verdict(tmp_path: Path) -> None:
    """Below the driver is the server, below that the workers, and below those the runs."""
    over = threading.Event()
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    process = subprocess.Popen(
        [BINARY, "diagnose", script, "compile_error"],
        cwd=tmp_path, env=clean(**environment()), stdout=subprocess.PIPE, text=True,
    )  # fmt: skip

    def kill_runs() -> None:
        while not over.wait(0.01):
            for server in children(process.pid):
                for worker in children(server):
                    for run in children(worker):
                        with contextlib.suppress(ProcessLookupError, FileNotFoundError):
                            # A fork of the server; while that warms up, compilers are below it.
                            if b"server.py" in Path(f"/proc/{run}/cmdline").read_bytes():
                                os.kill(run, signal.SIGKILL)

    killer = threading.Thread(target=kill_runs)
    killer.start()
    out, _ = process.communicate(timeout=300)
    over.set()
    killer.join()
    assert process.returncode == 1
    assert "killed from outside" in out
    assert not (tmp_path / "script_diagnosis" / "repro.py").exists()


@pytest.mark.slow
def test_a_killed_diagnosis_goes_on(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    process = subprocess.Popen(
        [BINARY, "diagnose", "--json", script, "compile_error"],
        cwd=tmp_path, env=clean(**environment()), stdout=subprocess.DEVNULL,
    )  # fmt: skip
    steps = tmp_path / "script_diagnosis" / "steps.jsonl"
    end = time.monotonic() + 120
    while time.monotonic() < end:
        if steps.exists() and steps.read_text().count("\n") >= 2:
            break
        time.sleep(0.05)
    process.kill()
    process.wait()
    before = steps.read_text().splitlines()
    assert len(before) >= 2
    found = diagnose(tmp_path, SCRIPT, "compile_error")
    assert found.code == 1
    assert found.verdict["calls"] == ["torch.nn.functional.relu"]
    after = steps.read_text().splitlines()
    assert after[: len(before)] == before
    # The script did not run again.
    assert sum('"name": "compiled"' in line for line in after) == 1


@pytest.mark.slow
def test_a_budget_ends_it(tmp_path: Path) -> None:
    start = time.monotonic()
    found = diagnose(tmp_path, SCRIPT, "compile_error", options=("--budget", "7"))
    assert time.monotonic() - start < 60
    assert any("budget" in note for note in found.verdict["notes"])
    again = diagnose(tmp_path, SCRIPT, "compile_error")
    assert again.verdict["calls"] == ["torch.nn.functional.relu"]
