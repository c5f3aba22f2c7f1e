"""Every function and method of PyTorch's own operator samples, run without Python, against eager.

What needs a Python process is listed with the reason, so that coverage cannot shrink unnoticed.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from assay import UserError
from conformance.eager import Outcome, call
from conformance.op_samples import Spelling, op_db, samples, spellings

SAMPLES = 4

# Whole modules of Python code without operators of their own.
PYTHON_MODULES = ("torch.masked.", "torch.signal.")
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
UNINITIALISED = {
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
}
# A sample gives these a Python object that no graph can hold.
UNCONVERTIBLE = {"torch.nn.functional.triplet_margin_with_distance_loss"}


def is_refused(error: Exception | None) -> bool:
    reasons = ("needs a Python process", "cannot hold a Python object")
    return isinstance(error, UserError) and any(reason in str(error) for reason in reasons)


def is_listed(name: str) -> bool:
    return name in NEEDS_PYTHON or name.startswith(PYTHON_MODULES)


def problem(spelling: Spelling, sample: Any, values: bool) -> str:
    """What is wrong with one call, or an empty text."""
    args = (sample.input, *sample.args)
    eager = Outcome(spelling.function, args, sample.kwargs)
    found = Outcome(lambda *a, **k: call(spelling.name, *a, **k), args, sample.kwargs)
    if is_listed(spelling.name):
        return "" if is_refused(found.error) else "works now, take it off the list"
    if eager.error is not None:
        return "" if found.error is not None else f"eager raises {eager.error}"
    if spelling.name in UNCONVERTIBLE and is_refused(found.error):
        return ""
    return str(found.error) if found.error else found.differs_from(eager, values)


def compare(op: Any, dtype: torch.dtype) -> None:
    drawn = list(samples(op, dtype, SAMPLES))
    for spelling in spellings(op):
        for sample in drawn:
            if spelling.is_in_place and sample.broadcasts_input:
                continue
            if text := problem(spelling, sample, op.name not in UNINITIALISED):
                pytest.fail(f"{spelling.name}: {text}\n{sample.summary()}")


def test_table_of_python_functions_is_this_torch() -> None:
    tool = Path(__file__).parents[2] / "tools" / "python_functions.py"
    subprocess.run([sys.executable, tool, "--check"], check=True, capture_output=True)


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
