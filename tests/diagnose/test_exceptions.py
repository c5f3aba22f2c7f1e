"""Exceptions of the program's own: lost by the compiler, caught by the script, raised by both."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnose.diagnosing import diagnose

CAUGHT = """
import torch
def f(x, i):
    return {call}
x, i = -torch.eye(3), torch.tensor([0, 7])
for g in (f, torch.compile(f)):
    try:
        print(g(x, i))
    except Exception as error:
        print({printed})
"""


@pytest.mark.slow
def test_one_that_the_script_catches(tmp_path: Path) -> None:
    text = CAUGHT.format(call="x[i] * 2", printed="type(error).__name__")
    verdict = diagnose(tmp_path, text).verdict
    assert (verdict["status"], verdict["stage"]) == ("fails", "inductor")
    assert verdict["signature"]["type"] == "exception"
    assert verdict["calls"] == ["operator.getitem"]


@pytest.mark.slow
def test_one_that_eager_raises_too(tmp_path: Path) -> None:
    text = CAUGHT.format(call="torch.linalg.cholesky(x) + 1", printed="'not positive definite'")
    found = diagnose(tmp_path, text)
    assert (found.code, found.verdict["status"]) == (0, "fine"), found.verdict


@pytest.mark.slow
def test_one_that_nothing_catches_in_either(tmp_path: Path) -> None:
    text = "import torch\ntorch.compile(torch.linalg.cholesky)(-torch.eye(3))\n"
    assert diagnose(tmp_path, text).verdict["status"] == "fails_in_eager"
