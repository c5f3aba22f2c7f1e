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
UNITS = 1.01  # ...or this many units in the last printed place


def difference(expected: str, found: str, again: str | None = None) -> tuple[int, str, str] | None:
    """The first line that differs: its number and both texts; None if the outputs agree.

    ``again`` is what a second run like the expected one printed.
    """
    left, right = expected.splitlines(), found.splitlines()
    third = left if again is None else again.splitlines()
    if len(third) != len(left):
        return None  # not even the number of lines repeats
    if len(left) != len(right):
        number = next(
            (n for n, (a, b) in enumerate(zip(left, right, strict=False)) if not _same(a, b, a)),
            min(len(left), len(right)),
        )
        return number + 1, _line(left, number), _line(right, number)
    for number, (a, b, c) in enumerate(zip(left, right, third, strict=True)):
        if not _same(a, b, c):
            return number + 1, a, b
    return None


def is_numeric(left: str, right: str) -> bool:
    """Whether two lines differ in floating-point numbers only."""
    tokens = [[IS_FLOAT.sub("0", token) for token in _tokens(line)] for line in (left, right)]
    return tokens[0] == tokens[1]


def repeats(first: str, second: str) -> bool:
    """Whether two runs of the same program printed the same."""
    return difference(first, second) is None


def _line(lines: list[str], number: int) -> str:
    return lines[number] if number < len(lines) else "(nothing)"


def _same(left: str, right: str, again: str) -> bool:
    if left == right:
        return True
    tokens = [_tokens(line) for line in (left, right, again)]
    if len(tokens[0]) != len(tokens[2]):
        return True  # the line differs by itself
    if len(tokens[0]) != len(tokens[1]):
        return False
    return all(
        a == b or a != c or _close(a, b)
        for a, b, c in zip(tokens[0], tokens[1], tokens[2], strict=True)
    )


def _tokens(line: str) -> list[str]:
    line = ADDRESS.sub("at 0x", GRADIENT.sub("grad_fn", line))
    return [token for token in TOKEN.findall(line) if not token.isspace()]


def _close(left: str, right: str) -> bool:
    if not (IS_FLOAT.match(left) and IS_FLOAT.match(right)):
        return False
    a, b = float(left), float(right)
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) == math.isnan(b)
    rounding = max(_rounding(left), _rounding(right))
    return abs(a - b) <= max(RELATIVE * max(abs(a), abs(b)), rounding)


def _rounding(number: str) -> float:
    """What rounding to the last printed place explains; nothing for a whole number (``49.``)."""
    mantissa, _, exponent = number.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    if decimals == 0:
        return 0.0
    return float(UNITS * 10.0 ** (int(exponent or 0) - decimals))
