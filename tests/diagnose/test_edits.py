"""Making a program smaller on its syntax tree."""

from __future__ import annotations

import ast

from assay.diagnose import edits


def shrink(text: str, needed: list[str]) -> str:
    """The smallest program with all of the needed texts."""
    tree = ast.parse(text)
    best = ast.unparse(tree)
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for candidate in edits.proposals(tree):
            made = ast.unparse(candidate)
            if len(made) < len(best) and all(part in made for part in needed):
                tree, best, is_smaller = ast.parse(made), made, True
                break
    return best


def test_statements_branches_arguments_and_operands_go() -> None:
    text = """
import math
def f(a, b=2, *, c=3):
    if a > b:
        x = math.sin(a) + math.cos(b)
        return keep(x, other=1)
    else:
        return None
for i in range(3):
    f(i, 5)
"""
    assert shrink(text, ["keep("]) == "def f():\n    keep()"
    assert shrink(text, ["keep(", "f(i"]) == "def f(a):\n    keep()\nf(i)"
    assert shrink(text, ["range(3)"]) == "for i in range(3):\n    pass"


def test_every_proposal_is_a_program() -> None:
    text = """
@decorator
class A(B):
    try:
        with open(x) as y:
            pass
    except E:
        z = 1 if q else 2
    finally:
        w = -v[0]
"""
    for candidate in edits.proposals(ast.parse(text)):
        ast.parse(ast.unparse(candidate))
