"""Operators do what their records say: the first sample of every operator, run under `eager_debug`.

That backend raises if an operator writes to an argument that its record does not have as written,
or returns memory of an argument without being known as a view.
"""

from __future__ import annotations

import pytest
import torch

import assay
from autograd.test_op_db import EXPECTED, OPERATORS
from conformance.op_programs import first_sample

pytestmark = pytest.mark.slow


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OPERATORS)
def test_operators_do_what_their_records_say(name: str) -> None:
    sample = first_sample(OPERATORS[name], torch.float32, requires_grad=True)
    compiled = assay.aot.compile(sample.call, backend="eager_debug")
    try:
        compiled(*sample.make())
    except assay.TraceError:
        # What a graph cannot hold is not run.
        assert name in EXPECTED
