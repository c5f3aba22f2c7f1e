"""The pages name things that exist: files, make targets; and nothing of one machine."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from support.command import BINARY, ROOT, environment
from support.pages import PAGES, prose

LINK = re.compile(r"\]\(([^)#]+)[^)]*\)|src=\"([^\"]+)\"")
# A path of ours in backquotes: `src/graph/print.h`, `tests/`, `docs/observe.md`.
PATH = re.compile(r"`((?:src|include|python|tests|tools|docs|examples|cmake|bench)/[\w./-]*)`")
TARGET = re.compile(r"^make ([a-z-]+)|`make ([a-z-]+)`", re.MULTILINE)
MACHINE = re.compile(r"/(root|home|work|Users)/|https?://(?!no-color)")

on_every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def found(pattern: re.Pattern[str], text: str) -> set[str]:
    return {next(group for group in match.groups() if group) for match in pattern.finditer(text)}


@on_every_page
def test_links_lead_somewhere(page: Path) -> None:
    for link in found(LINK, prose(page)):
        if not link.startswith(("http:", "https:")):
            assert (page.parent / link).exists(), link


@on_every_page
def test_paths_exist(page: Path) -> None:
    for path in found(PATH, page.read_text()):
        assert (ROOT / path).exists(), path


@on_every_page
def test_make_targets_exist(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in found(TARGET, page.read_text()):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


@on_every_page
def test_nothing_of_one_machine(page: Path) -> None:
    assert MACHINE.search(page.read_text()) is None


def everything_in(directory: Path) -> set[Path]:
    return set(directory.rglob("*"))


def test_the_demo_runs() -> None:
    """As `make demo` runs it; the script insists on the exit codes itself."""
    python = Path(sys.executable).parent
    demo = ROOT / "examples" / "demo"
    before = everything_in(demo)
    done = subprocess.run(
        [demo / "run"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment(
            ASSAY_BINARY=str(BINARY),
            PATH=f"{python}:/usr/bin:/bin",
            PYTHONPATH=str(BINARY.parents[1] / "python"),
        ),
        timeout=120,
        check=False,
    )
    output = done.stdout.decode()
    assert done.returncode == 0, output
    assert "the results agree" in output
    assert "failed: node 'bmm' failed: " in output
    assert "did you mean torch.ops.aten.amax.default" in output
    # A crash and wrong numbers, found, reduced to one call, and found again.
    assert output.count("\nfailed: SIGSEGV in gelu while running\n") == 2
    assert "        gelu = torch._C._nn.gelu(linear_2)\n        return (gelu,)\n" in output
    assert output.count("\nfailed: differs from eager (values) at output[0]\n") == 2
    assert "        softmax = torch.softmax(scores, dim = 0)\n        return (softmax,)\n" in output
    assert "aot_eager matches eager" in output
    assert "[repro] Copying reduced repro to repro.py\n" in output
    assert str(tempfile.gettempdir()) not in output, "paths are as the user would give them"
    assert "\033[" not in output
    assert everything_in(demo) == before
