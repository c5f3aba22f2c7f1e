"""Public bugs of PyTorch's own kernel compiler are absent here (kernels/public_bugs*.py)."""

from __future__ import annotations

import pytest
import torch
import torch.utils._pytree as pytree

import kernels.public_bugs_in_place
import kernels.public_bugs_memory  # noqa: F401
from kernels.against_eager import Program
from kernels.public_bugs import BUGS


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", BUGS)
def test_program(name: str) -> None:
    bug = BUGS[name]
    text = Program(lambda *inputs: pytree.tree_leaves(bug.call(*inputs)), bug.make).difference()
    assert not text, f"pytorch/pytorch #{bug.reports}: {text}"


@pytest.mark.parametrize("name", [name for name in BUGS if name.endswith("_raises")])
def test_programs_that_raise_do(name: str) -> None:
    torch.manual_seed(0)
    with pytest.raises((RuntimeError, IndexError, NotImplementedError)):
        BUGS[name].call(*BUGS[name].make())


def test_there_are_enough() -> None:
    assert len(BUGS) >= 25
    assert all(bug.reports for bug in BUGS.values())
