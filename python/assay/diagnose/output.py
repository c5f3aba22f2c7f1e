"""Whether two runs of a script printed the same: text exactly, numbers within a tolerance.

A compiled program rounds differently, so floating-point numbers need not be equal. What two eager
runs already print differently (times, addresses) says nothing and is left out.
"""

from __future__ import annotations

import math
import re

TOKEN = re.compile(
    r"0x[0-9a-fA-F]+|[-+]?(?:\d+\.\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)"
    r"|[-+]?\d+|\w+|\s+|[^\w\s]"
)
IS_FLOAT = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][-+]?\d+)?$")
# Of a compiled function it is one node, whatever the operators are.
GRADIENT = re.compile(r"grad_fn=<\w+>")
# ``<generator object f at 0x7f...>``: forks of one process repeat it, compiled ones need not.
ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]+")
RELATIVE = 1e-3  # of the larger number...
UNITS = 1.01  # ...or this many units in the last printed place...
NOISE = 2e-6  # ...or this much of the largest number beside it: what is left of a sum that is 0


def difference(expected: str, found: str, again: str | None = None) -> tuple[int, str, str] | None:
    """The first line that differs: its number and both texts; None if the outputs agree.

    ``again`` is what a second run like the expected one printed.
    """
    left, right = _blocks(expected), _blocks(found)
    third = left if again is None else _blocks(again)
    if len(third) != len(left):
        return None  # not even the number of lines repeats
    for i, (number, a) in enumerate(left):
        if i == len(right):
            return number, _first_line(a), "(nothing)"
        b, c = right[i][1], third[i][1]
        # With a block more or less, what is left out or added is not what does not repeat.
        if not _same(a, b, c if len(left) == len(right) else a):
            return _in_block(number, a, b)
    if len(right) > len(left):
        number, text = right[len(left)]
        return number, "(nothing)", _first_line(text)
    return None


def _blocks(text: str) -> list[tuple[int, str]]:
    """Lines with their numbers; those of one tensor are one block.

    Where its lines break depends on how its numbers are printed.
    """
    blocks: list[tuple[int, str]] = []
    depth = 0
    for number, line in enumerate(text.splitlines(), 1):
        if depth > 0:
            start, before = blocks[-1]
            blocks[-1] = (start, f"{before}\n{line}")
        else:
            blocks.append((number, line))
        for character in line:
            depth = max(0, depth + (character in "([{") - (character in ")]}"))
    return blocks


def _first_line(block: str) -> str:
    return block.partition("\n")[0]


def _in_block(number: int, left: str, right: str) -> tuple[int, str, str]:
    """The first line of a block that differs, if its lines break where the other's do."""
    lines, others = left.splitlines(), right.splitlines()
    if len(lines) == len(others):
        for i, (a, b) in enumerate(zip(lines, others, strict=True)):
            if not _same(a, b, a):
                return number + i, a, b
    return number, _first_line(left), _first_line(right)


def sentence(found: tuple[int, str, str]) -> str:
    """A difference in words."""
    line, expected, printed = found
    return f"line {line} of its output is {printed!r}, in eager {expected!r}"


def is_numeric(left: str, right: str) -> bool:
    """Whether two lines differ in floating-point numbers only."""
    tokens = [[IS_FLOAT.sub("0", token) for token in _tokens(line)] for line in (left, right)]
    return tokens[0] == tokens[1]


def numbers(line: str) -> list[float]:
    """The floating-point numbers of a line."""
    return [float(token) for token in _tokens(line) if IS_FLOAT.match(token)]


def repeats(first: str, second: str) -> bool:
    """Whether two runs of the same program printed the same."""
    return difference(first, second) is None


def _same(left: str, right: str, again: str) -> bool:
    if left == right:
        return True
    tokens = [_tokens(line) for line in (left, right, again)]
    if len(tokens[0]) != len(tokens[2]):
        return True  # the line differs by itself
    if len(tokens[0]) != len(tokens[1]):
        return False
    noise = NOISE * _largest_in_brackets(tokens[0])
    return all(
        a == b or a != c or _close(a, b, noise)
        for a, b, c in zip(tokens[0], tokens[1], tokens[2], strict=True)
    )


def _tokens(line: str) -> list[str]:
    line = ADDRESS.sub("at 0x", GRADIENT.sub("grad_fn", line))
    return [token for token in TOKEN.findall(line) if not token.isspace()]


def _largest_in_brackets(tokens: list[str]) -> float:
    """Of the numbers of a tensor or list; numbers by themselves have no others beside them."""
    depth, largest = 0, 0.0
    for token in tokens:
        depth += (token in "([{") - (token in ")]}")
        if depth > 0 and IS_FLOAT.match(token) and math.isfinite(float(token)):
            largest = max(largest, abs(float(token)))
    return largest


def _close(left: str, right: str, noise: float) -> bool:
    if not (IS_FLOAT.match(left) and IS_FLOAT.match(right)):
        return False
    a, b = float(left), float(right)
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) == math.isnan(b)
    rounding = max(_rounding(left), _rounding(right))
    return abs(a - b) <= max(RELATIVE * max(abs(a), abs(b)), rounding, noise)


def _rounding(number: str) -> float:
    """What rounding to the last printed place explains; nothing for a whole number (``49.``)."""
    mantissa, _, exponent = number.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    if decimals == 0:
        return 0.0
    return float(UNITS * 10.0 ** (int(exponent or 0) - decimals))
