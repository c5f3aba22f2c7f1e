"""Every `assay` command in README.md and docs/ prints what is written below it.

A ```console block holds commands (`$ assay ...`) each followed by its output, standard error
included. The commands of a block run one after the other in a directory of their own, which looks
like the root of the repository and takes what they write. Times, rates and numbers of threads and
trials differ from run to run and are not compared; other numbers may differ in their last digits; a
line `...` stands for any number of lines. The Python examples in ```pycon blocks are run too.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.command import BINARY, ROOT, environment
from support.pages import PAGES, blocks

VARIES = {
    "TIME": re.compile(r"\d+(\.\d+)? (us|ms|s)\b"),
    "RATE": re.compile(r"\d+(\.\d+)?/s\b"),
    "THREADS": re.compile(r"\d+ threads?\b"),
    "TRIALS": re.compile(r"\d+ trials?\b"),
}


@dataclass(frozen=True)
class Command:
    line: int
    text: str
    output: list[str]


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    commands: list[Command]

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def console_blocks() -> list[Block]:
    found = []
    for page in PAGES:
        for first, lines in blocks(page, "console"):
            starts = [i for i, line in enumerate(lines) if line.startswith("$ ")]
            commands = [
                Command(first + start, lines[start][2:], lines[start + 1 : end])
                for start, end in zip(starts, [*starts[1:], len(lines)], strict=True)
            ]
            found.append(Block(page, first, commands))
    return found


def mask(line: str) -> list[str]:
    """The words of a line, without what differs from run to run."""
    for word, pattern in VARIES.items():
        line = pattern.sub(word, line)
    return line.split()


def same_word(shown: str, found: str) -> bool:
    if shown == found:
        return True
    try:
        return float(found) == pytest.approx(float(shown), rel=1e-4, abs=1e-6)
    except ValueError:
        return False


def same_line(shown: str, found: str) -> bool:
    left, right = mask(shown), mask(found)
    return len(left) == len(right) and all(map(same_word, left, right))


def same_output(shown: list[str], found: list[str]) -> bool:
    if not shown:
        return not found
    if shown[0].strip() == "...":
        return any(same_output(shown[1:], found[i:]) for i in range(len(found) + 1))
    return bool(found) and same_line(shown[0], found[0]) and same_output(shown[1:], found[1:])


@pytest.fixture()
def root(tmp_path: Path) -> Path:
    """A directory with everything that the pages name, where commands may write."""
    for entry in ROOT.iterdir():
        if not entry.name.startswith("."):
            (tmp_path / entry.name).symlink_to(entry)
    return tmp_path


def run(command: Command, root: Path) -> str:
    """What the command prints, with paths as seen from the root."""
    assert re.match(r"(\w+=\S+ )*assay ", command.text), "a console block holds assay commands"
    done = subprocess.run(
        ["bash", "-c", command.text],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=root,
        env=environment(
            PATH=f"{BINARY.parent}{os.pathsep}{os.environ['PATH']}", ASSAY_PYTHON=sys.executable
        ),
        timeout=120,
        check=False,
    )
    return done.stdout.decode().replace(f"{root}/", "")


@pytest.mark.parametrize("block", console_blocks(), ids=str)
def test_commands_print_what_the_page_shows(block: Block, root: Path) -> None:
    for command in block.commands:
        output = run(command, root)
        assert same_output(command.output, output.splitlines()), (
            f"{block.page}:{command.line}: $ {command.text}\nprints now:\n{output}"
        )


def test_there_are_commands_to_check() -> None:
    assert sum(len(block.commands) for block in console_blocks()) >= 8


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_examples(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    names: dict[str, object] = {}
    for line, lines in blocks(page, "pycon"):
        text = "\n".join([*lines, ""])
        test = doctest.DocTestParser().get_doctest(text, names, page.name, str(page), line - 1)
        output: list[str] = []
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
        runner.run(test, out=output.append, clear_globs=False)
        names.update(test.globs)
        assert runner.failures == 0, "".join(output)
