"""Every operator that PyTorch tests on the CPU, compiled to kernels, against eager.

The first sample of each with float32, forward and backward, and with other dtypes; the slow suite
takes all samples with float32. The exceptions are those of tests/autograd, where graphs are traced,
and `EXPECTED` here.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

import assay
from autograd.expected import MESSAGES, Expected
from autograd.test_op_db import EXPECTED as EXPECTED_WITH_AUTOGRAD
from conformance.op_programs import (
    OperatorSample,
    first_sample,
    no_seeds_inside,  # noqa: F401
    operator_samples,
    operators,
)
from kernels.against_eager import Program

DTYPES = (torch.bfloat16, torch.float16, torch.int64, torch.bool)

_SIZE = Expected("size depends on values", "as many results as the values say")
_NUMBER = Expected("reads values", "returns a number")

# Operators without a derivative, which tests/autograd does not call.
EXPECTED = EXPECTED_WITH_AUTOGRAD | {
    "item": _NUMBER,
    "allclose": _NUMBER,
    "equal": _NUMBER,
    "unique": _SIZE,
    "unique_consecutive": _SIZE,
    "nonzero": _SIZE,
    "argwhere": _SIZE,
}
# Only some samples: with a mask, with a tensor where others have a number.
EXPECTED_OF_SOME = EXPECTED | {
    "narrow": Expected("reads values", "starts where a tensor says"),
    "index_fill": Expected("size depends on values", "the value's gradient skips equal indices"),
    "__getitem__": Expected("size depends on values", "as many results as the mask has ones"),
    "index_put": Expected("size depends on values", "as many gradients as the mask has ones"),
    "repeat_interleave": Expected("size depends on values", "as many results as the tensor says"),
}
# What they return is whatever was in memory.
UNINITIALIZED = ("empty", "empty_strided", "empty_permuted", "empty_like", "new_empty")


def check(sample: OperatorSample, name: str, expected: Expected | None) -> None:
    program = Program(sample.call, sample.make, sample.process, sample.call_in_float64)
    by_strides = expected is not None and expected.kind == "strides of gradient"
    try:
        text = program.difference(
            gradient_strides=not by_strides, values=not name.startswith(UNINITIALIZED)
        )
    except assay.TraceError as error:
        if expected is None or MESSAGES[expected.kind] not in str(error):
            raise
        return
    assert not text, text


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("no_seeds_inside")
@pytest.mark.parametrize("name", operators())
def test_first_sample(name: str) -> None:
    op = operators()[name]
    sample = first_sample(op, torch.float32, requires_grad=op.supports_autograd)
    check(sample, name, EXPECTED.get(name))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("no_seeds_inside")
@pytest.mark.parametrize("name", operators())
def test_first_sample_of_other_dtypes(name: str) -> None:
    for dtype in DTYPES:
        op: Any = operators(dtype).get(name)
        if op is None:
            continue
        differentiable = dtype.is_floating_point and dtype in op.supported_backward_dtypes("cpu")
        try:
            sample = first_sample(op, dtype, requires_grad=differentiable)
            check(sample, name, EXPECTED.get(name))
        except BaseException as error:
            error.add_note(f"with {dtype}")
            raise


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("no_seeds_inside")
@pytest.mark.parametrize("name", operators())
def test_all_samples(name: str) -> None:
    op = operators()[name]
    failures = []
    samples = operator_samples(op, torch.float32, requires_grad=op.supports_autograd)
    for number, sample in enumerate(samples):
        try:
            check(sample, name, EXPECTED_OF_SOME.get(name))
        except Exception as error:
            failures.append(f"sample {number}, {sample.sample}: {type(error).__name__}: {error}")
    assert not failures, f"{len(failures)} of {number + 1} samples:\n" + "\n".join(failures[:5])


def test_exceptions_are_of_operators_in_the_list() -> None:
    assert set(EXPECTED_OF_SOME) <= set(operators())
