"""Every `assay` command in README.md and docs/ prints what is written below it.

A ```console block holds commands (`$ assay ...`) each followed by its output, standard error
included. Times and numbers of threads differ from run to run and are not compared; other numbers
may differ in their last digits; a line `...` stands for any number of lines. The Python examples in
```pycon blocks are run too.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.command import BINARY, ROOT, environment
from support.pages import PAGES, blocks

TIME = re.compile(r"\d+(\.\d+)? (us|ms|s)\b")
THREADS = re.compile(r"\d+ threads?\b")


@dataclass(frozen=True)
class Command:
    page: Path
    line: int
    text: str
    output: list[str]

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def commands() -> list[Command]:
    found = []
    for page in PAGES:
        for first, lines in blocks(page, "console"):
            starts = [i for i, line in enumerate(lines) if line.startswith("$ ")]
            for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
                text = lines[start][2:]
                found.append(Command(page, first + start, text, lines[start + 1 : end]))
    return found


def mask(line: str) -> list[str]:
    """The words of a line, without what differs from run to run."""
    return THREADS.sub("THREADS", TIME.sub("TIME", line)).split()


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


@pytest.mark.parametrize("command", commands(), ids=str)
def test_command_prints_what_the_page_shows(command: Command) -> None:
    assert re.match(r"(\w+=\S+ )*assay ", command.text), "a console block holds assay commands"
    path = f"{BINARY.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command.text],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=ROOT,
        env=environment(PATH=path),
        timeout=60,
        check=False,
    )
    output = done.stdout.decode()
    assert same_output(command.output, output.splitlines()), (
        f"{command.page}:{command.line}: $ {command.text}\nprints now:\n{output}"
    )


def test_there_are_commands_to_check() -> None:
    assert len(commands()) >= 5


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
