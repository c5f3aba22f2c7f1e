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


needs_ninja = pytest.mark.skipif(
    shutil.which("ninja") is None, reason="the build was not made by Ninja"
)
# Before the demo had a list of targets and rooms were compiled a few files at a time, it was 334.
MOST_FILES_FOR_THE_DEMO = 162


def demo_targets() -> list[str]:
    [targets] = re.findall(r"^tools/build \S+ \S+ (.+)$", plan("demo"), flags=re.M)
    return targets.split()


def compiled(*targets: str) -> list[Path]:
    """What a build of these targets from nothing compiles; without targets, of all."""
    commands = subprocess.run(
        ["ninja", "-C", BUILD, "-t", "commands", *targets],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return [BUILD / file for file in re.findall(r" -c (\S+)", commands)]


def sources(files: list[Path]) -> set[str]:
    """The files of ours among them, and those that CMake has put together in one."""
    found: set[str] = set()
    for file in files:
        if file.parent.name == "Unity":
            found |= set(re.findall(rf'#include "{re.escape(str(ROOT))}/(.+)"', file.read_text()))
        elif file.is_relative_to(ROOT):
            found.add(str(file.relative_to(ROOT)))
    return found


@needs_ninja
def test_the_demo_compiles_only_what_it_runs() -> None:
    of_the_demo = sources(compiled(*demo_targets()))
    assert any(source.startswith("src/cli/") for source in of_the_demo)
    assert any(source.startswith("python/binding/") for source in of_the_demo)
    assert "examples/cpp_training/main.cpp" in of_the_demo
    assert [source for source in of_the_demo if source.startswith(("tests/", "bench/"))] == []
    everything = sources(compiled())
    assert any(source.startswith("tests/") for source in everything)
    rooms = {str(file.relative_to(ROOT)) for file in (ROOT / "src").rglob("*.cpp")}
    assert rooms <= everything


@needs_ninja
def test_the_demo_compiles_few_files() -> None:
    if "ASSAY_UNITY:BOOL=ON" not in (BUILD / "CMakeCache.txt").read_text():
        pytest.skip("this build compiles each file alone")
    assert len(compiled(*demo_targets())) <= MOST_FILES_FOR_THE_DEMO


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
