"""A script made smaller on its syntax tree while it fails the same way; eager must still pass.

For failures that no graph shows: in Dynamo, in guards, between graphs. The script is the user's own
and is running already, so its smaller versions may run too.
"""

from __future__ import annotations

import ast
import hashlib
from dataclasses import dataclass, field
from typing import Any

from assay.diagnose import edits, output
from assay.diagnose.outcome import Outcome
from assay.diagnose.runs import OutOfTime, Runs

PASSED = ("passed", "", "")


@dataclass
class Shrunk:
    """The smallest script; ``text`` is None if the failure did not repeat."""

    text: str | None
    lines_before: int
    lines: int
    trials: int
    frame: dict[str, Any] = field(default_factory=dict)


class _Test:
    """Whether a program fails the same way."""

    def __init__(
        self,
        runs: Runs,
        wanted: Outcome,
        backend: str | None,
        is_output: bool,
        eager: Outcome | None,
    ) -> None:
        self.runs = runs
        self.signature = wanted.signature
        self.of_eager = eager.signature if eager is not None else PASSED
        self.backend = backend
        self.is_output = is_output
        self.known: dict[str, bool] = {}
        self.trials = 0
        self.frame: dict[str, Any] = {}
        self.are_numbers: bool | None = None  # what the first program prints differently

    def __call__(self, text: str) -> bool:
        key = hashlib.sha256(text.encode()).hexdigest()
        if key not in self.known:
            self.trials += 1
            self.known[key] = self._fails(text)
        return self.known[key]

    def _fails(self, text: str) -> bool:
        compiled = self.runs.candidate(text, self.backend)
        if self.is_output:
            if compiled.kind != "passed":
                return False
        elif compiled.signature != self.signature:
            return False
        printed = compiled.stdout.read_text()
        frame = compiled.raised.get("frame") or {}
        eager = self.runs.candidate(text, "none")
        if eager.signature != self.of_eager:
            return False
        if self.is_output:
            expected = eager.stdout.read_text()
            difference = output.difference(expected, printed)
            if difference is None:
                return False
            # A wrong number must not become another text, such as that of an object.
            are_numbers = output.is_numeric(difference[1], difference[2])
            if self.are_numbers is not None and are_numbers != self.are_numbers:
                return False
            if not output.repeats(expected, self.runs.candidate(text, "none").stdout.read_text()):
                return False
            self.are_numbers = are_numbers
        self.frame = frame or self.frame
        return True


def shrink(
    runs: Runs,
    wanted: Outcome,
    backend: str | None,
    *,
    is_output: bool,
    eager: Outcome | None = None,
) -> Shrunk:
    """Take the first smaller program that fails the same way, until there is none.

    Eager must pass, or raise what it raises in ``eager``.
    """
    text = runs.options.script.read_text()
    tree = ast.parse(text)
    test = _Test(runs, wanted, backend, is_output, eager)
    before = len(ast.unparse(tree).splitlines())
    best: str | None = None
    try:
        if not test(ast.unparse(tree)):
            return Shrunk(None, before, before, test.trials)
        best = ast.unparse(tree)
        while (smaller := _next(tree, test, len(best))) is not None:
            tree = smaller
            best = ast.unparse(tree)
            runs.directory.write("repro.py", best + "\n")
    except OutOfTime:
        pass
    lines = len(best.splitlines()) if best is not None else before
    return Shrunk(None if best is None else best + "\n", before, lines, test.trials, test.frame)


def _next(tree: ast.Module, test: _Test, length: int) -> ast.Module | None:
    for candidate in edits.proposals(tree):
        try:
            text = ast.unparse(candidate)
            ast.parse(text)
        except (ValueError, SyntaxError):
            continue
        if len(text) < length and test(text):
            return ast.parse(text)
    return None
