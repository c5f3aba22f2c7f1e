"""Makes a failing program smaller by deleting lines, each with the block it heads."""

from __future__ import annotations

import time
from collections.abc import Callable


def indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def block_end(lines: list[str], start: int) -> int:
    """One past the last line of the statement that starts at `start`."""
    end = start + 1
    while end < len(lines) and (
        not lines[end].strip() or indentation(lines[end]) > indentation(lines[start])
    ):
        end += 1
    return end


def shrink(source: str, fails: Callable[[str], bool], seconds: float) -> str:
    """The smallest program found within the time that still `fails`."""
    deadline = time.monotonic() + seconds
    lines = source.splitlines()
    progress = True
    while progress:
        progress = False
        start = len(lines) - 1
        while start >= 0:
            if time.monotonic() > deadline:
                return "\n".join(lines) + "\n"
            smaller = lines[:start] + lines[block_end(lines, start) :]
            text = "\n".join(smaller) + "\n"
            if compiles(text) and fails(text):
                lines = smaller
                progress = True
            start -= 1
    return "\n".join(lines) + "\n"


def compiles(source: str) -> bool:
    try:
        compile(source, "<shrunk>", "exec")
    except SyntaxError:
        return False
    return True
