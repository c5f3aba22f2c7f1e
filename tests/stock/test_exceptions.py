"""Whether a compiled program raises what eager does, through PyTorch's wrappers."""

from __future__ import annotations

import pytest
import torch
from torch._dynamo.exc import TorchRuntimeError
from torch._inductor.exc import LoweringException

from assay.stock.failure import is_alike

LINALG = torch._C._LinAlgError
WRAPPED = "Dynamo failed to run FX node with fake tensors: got IndexError('too large')"

# What eager raises, what compiled code raises, and whether that is the same.
CASES: dict[str, tuple[BaseException, BaseException, bool]] = {
    "the same": (IndexError("a"), IndexError("b"), True),
    "another": (IndexError("a"), RuntimeError("b"), False),
    "a class of PyTorch's own": (LINALG("a"), LINALG("a"), True),
    "a wrapper of it": (IndexError("a"), TorchRuntimeError(WRAPPED), True),
    "a wrapper of another": (RuntimeError("a"), TorchRuntimeError(WRAPPED), False),
    "a lowering that refuses": (
        RuntimeError("a"),
        LoweringException(AssertionError("not for empty tensors"), "max", [], {}),
        False,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_alike(case: str) -> None:
    eager, compiled, expected = CASES[case]
    assert is_alike(compiled, eager) == expected


def test_what_eager_raised_before_does_not_count() -> None:
    eager = IndexError("a")
    try:
        try:
            raise eager
        except IndexError:
            raise RuntimeError("b")  # noqa: B904  (its context is what eager raised)
    except RuntimeError as error:
        assert not is_alike(error, eager)
