"""Small programs of every kind, compiled with `aot_eager` against eager: results and gradients."""

from __future__ import annotations

import pytest
import torch

from autograd.compare import SEED, check
from autograd.programs_memory import MEMORY
from autograd.programs_nn import NN
from autograd.programs_values import VALUES

PROGRAMS = {**MEMORY, **VALUES, **NN}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    program = PROGRAMS[name]
    torch.manual_seed(SEED)
    check(program.build(), program.make, tolerance=program.tolerance)
