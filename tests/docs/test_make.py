"""What the commands of the Makefile do, as far as it can be told without a fresh clone."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from support.command import BINARY, ROOT

BUILD = BINARY.parents[1]


def plan(target: str) -> str:
    """The commands that `make` would run."""
    return subprocess.run(
        ["make", "--dry-run", target], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout


def compiled(*targets: str) -> set[str]:
    """The sources that a build of these targets from nothing compiles; without targets, of all."""
    commands = subprocess.run(
        ["ninja", "-C", BUILD, "-t", "commands", *targets],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return set(re.findall(rf" -c {re.escape(str(ROOT))}/(\S+)", commands))


@pytest.mark.skipif(shutil.which("ninja") is None, reason="the build was not made by Ninja")
def test_the_demo_compiles_only_what_it_runs() -> None:
    [targets] = re.findall(r"^tools/build \S+ \S+ (.+)$", plan("demo"), flags=re.M)
    sources = compiled(*targets.split())
    assert any(source.startswith("src/cli/") for source in sources)
    assert any(source.startswith("python/binding/") for source in sources)
    assert "examples/cpp_training/main.cpp" in sources
    assert [source for source in sources if source.startswith(("tests/", "bench/"))] == []
    assert any(source.startswith("tests/") for source in compiled())


@pytest.mark.parametrize(
    ("failing", "code"), [("", 0), ("lint-quick", 1), ("test", 1), ("lint-quick|test", 1)]
)
def test_ci_runs_the_quick_linters_then_the_tests(failing: str, code: int, tmp_path: Path) -> None:
    make = tmp_path / "make"
    make.write_text(f'#!/bin/bash\necho "$@" >>{tmp_path}/calls\n! [[ "$1" =~ ^({failing})$ ]]\n')
    make.chmod(0o755)
    done = subprocess.run(
        [ROOT / ".ci" / "run"],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert (tmp_path / "calls").read_text() == "lint-quick\ntest\n"
    for target in filter(None, failing.split("|")):
        assert f"failed: make {target}" in done.stderr


def test_the_quick_linters_leave_clang_tidy_out() -> None:
    assert "tools/lint quick" in plan("lint-quick")
    assert "tools/setup_system format" in plan("lint-quick")
