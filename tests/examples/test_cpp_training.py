"""The C++ example trains, and its compiled loss is that of eager."""

from __future__ import annotations

import re
import subprocess

from support.command import BINARY, environment

PROGRAM = BINARY.with_name("cpp_training")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROGRAM, *arguments],
        capture_output=True,
        env=environment(),
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=120,
        check=False,
    )


class TestCppTraining:
    """`cpp_training`, with few steps."""

    def test_losses_are_equal_and_fall(self) -> None:
        done = run("--steps", "40")
        assert done.returncode == 0, done.stdout + done.stderr
        rows = re.findall(
            r"^ +(\d+) +([\d.]+) +([\d.]+) +[\d.]+ +[\d.]+$", done.stdout, re.MULTILINE
        )
        assert [int(step) for step, _, _ in rows] == [1, 2, 3, 20, 40]
        assert all(eager == compiled for _, eager, compiled in rows)
        assert float(rows[-1][1]) < float(rows[0][1])
        assert "graphs compiled: 1\n" in done.stdout
        assert "losses are equal in all 40 steps\n" in done.stdout
        assert re.search(r"^speed: [\d.]+ times eager$", done.stdout, re.MULTILINE)

    def test_unknown_backend(self) -> None:
        done = run("--backend", "aot_eagre")
        assert done.returncode == 2
        assert "did you mean aot_eager" in done.stderr

    def test_usage(self) -> None:
        done = run("--steps")
        assert done.returncode == 2
        assert done.stderr.startswith("usage: ")
