"""Every function and method of PyTorch's own operator samples, called without Python, against eager.

What needs a Python process is listed with the reason, so that coverage cannot shrink unnoticed.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from assay import UserError

from conformance.eager import Outcome, call
from conformance.op_samples import op_db, samples, spellings

SAMPLES = 5

# Whole modules of Python code without operators of their own.
PYTHON_MODULES = ("torch.masked.", "torch.signal.", "torch.jiterator")
NEEDS_PYTHON = {
    ".lu": "Python code around torch._lu_with_info, deprecated",
    "torch.lu": "the same",
    "torch.functional.lu": "the same",
    "torch._lowrank.pca_lowrank": "Python code with random projections",
    "torch.pca_lowrank": "the same",
    "torch._lowrank.svd_lowrank": "the same",
    "torch.svd_lowrank": "the same",
    "torch._segment_reduce": "bound by hand, no graph has it",
    "torch._C._sparse._sparse_mm": "sparse tensors are out of scope",
    "torch._C._sparse.sparse_sampled_addmm": "the same",
    "torch.sparse.sampled_addmm": "the same",
    "torch.sparse.mm": "the same",
    "torch.nn.functional.linear_cross_entropy": "Python code with its own autograd functions",
}
# Results that eager does not repeat itself.
NOT_REPEATABLE = {"linalg.lstsq"}
UNINITIALISED = {"empty", "empty_like", "new_empty", "new_empty_strided", "empty_permuted"}
# A sample gives these a Python object that no graph can hold.
UNCONVERTIBLE = {"torch.nn.functional.triplet_margin_with_distance_loss"}


def needs_python(error: Exception | None) -> bool:
    return isinstance(error, UserError) and "needs a Python process" in str(error)


def is_listed(name: str) -> bool:
    return name in NEEDS_PYTHON or name.startswith(PYTHON_MODULES)


def compare(op: Any, dtype: torch.dtype) -> None:
    values = op.name not in UNINITIALISED
    for spelling in spellings(op):
        for sample in samples(op, dtype, SAMPLES):
            if spelling.is_in_place and sample.broadcasts_input:
                continue
            args = (sample.input, *sample.args)
            eager = Outcome(spelling.function, args, sample.kwargs)
            found = Outcome(
                lambda *a, **k: call(spelling.name, *a, **k),
                args,
                sample.kwargs,
            )
            where = f"{spelling.name}: {sample.summary()}"
            if is_listed(spelling.name):
                assert needs_python(found.error), f"{where}: works now, remove it from the list"
                break
            if eager.error is not None:
                assert found.error is not None, f"{where}: eager raises {eager.error}"
                continue
            if spelling.name in UNCONVERTIBLE and isinstance(found.error, TypeError | UserError):
                continue
            assert found.error is None, f"{where}: {found.error}"
            assert (text := found.differs_from(eager, values)) == "", f"{where}: {text}"


@pytest.mark.parametrize("op", op_db, ids=lambda op: op.formatted_name)
@pytest.mark.filterwarnings("ignore")
def test_float32(op: Any) -> None:
    if torch.float32 not in op.supported_dtypes("cpu") or op.name in NOT_REPEATABLE:
        pytest.skip("not for float32, or not repeatable")
    compare(op, torch.float32)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64, torch.bfloat16])
@pytest.mark.parametrize("op", op_db, ids=lambda op: op.formatted_name)
@pytest.mark.filterwarnings("ignore")
def test_other_dtypes(op: Any, dtype: torch.dtype) -> None:
    if dtype not in op.supported_dtypes("cpu") or op.name in NOT_REPEATABLE:
        pytest.skip("not for this dtype, or not repeatable")
    compare(op, dtype)
