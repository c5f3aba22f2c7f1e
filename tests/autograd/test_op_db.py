"""The first sample of every operator that PyTorch differentiates, compiled against eager.

Equal to the last bit, but for the operators in `EXPECTED`, by kind:

- reads values: PyTorch's own code asks for a number, often only to warn or to raise;
- size depends on values: PyTorch tags the operator so (`dynamic_output_shape`);
- sparse: graphs hold strided tensors only;
- custom autograd function: its backward is Python code;
- strides of gradient: the same numbers, in another order in memory.
"""

from __future__ import annotations

import pytest
import torch

from autograd.expected import Expected, check_expected
from conformance.op_programs import first_sample, no_seeds_inside, operators  # noqa: F401

OPERATORS = {name: op for name, op in operators().items() if op.supports_autograd}

_SELECTS = Expected("size depends on values", "as many results as the mask has ones")
_FREEDOM = Expected("reads values", "warns if there are no degrees of freedom")
_RANGE = Expected("reads values", "raises if q is not in 0..1")
_CHUNKED = Expected("custom autograd function", "computes gradients in its forward, in Python")
_RESIDUALS = Expected("size depends on values", "tagged so: residuals only where of full rank")

EXPECTED = {
    "combinations": _SELECTS,
    "masked_select": _SELECTS,
    "corrcoef": _FREEDOM,
    "cov": _FREEDOM,
    "quantile": _RANGE,
    "nanquantile": _RANGE,
    "nn.functional.gaussian_nll_loss": Expected("reads values", "raises if a variance is negative"),
    "tensor_split": Expected("reads values", "this sample has the indices in a tensor"),
    "linalg.lstsq": _RESIDUALS,
    "linalg.lstsq.grad_oriented": _RESIDUALS,
    "nn.functional.ctc_loss": Expected(
        "size depends on values", "tagged so: a result is as long as the longest target"
    ),
    "nn.functional.linear_cross_entropy.chunked": _CHUNKED,
    "nn.functional.linear_cross_entropy.chunked_none": _CHUNKED,
    "sparse.sampled_addmm": Expected("sparse", "takes a sparse tensor"),
    "sparse.mm.reduce": Expected("sparse", "takes a sparse tensor"),
    "to_sparse": Expected("sparse", "returns a sparse tensor"),
    "ormqr": Expected("strides of gradient", "its derivative works out of place in a trace"),
}


def test_exceptions_are_of_operators_in_the_list() -> None:
    assert set(EXPECTED) <= set(OPERATORS)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("no_seeds_inside")
@pytest.mark.parametrize("name", OPERATORS)
def test_first_sample(name: str) -> None:
    expected = EXPECTED.get(name)
    sample = first_sample(OPERATORS[name], torch.float32, requires_grad=True)
    needed = check_expected(expected, sample.call, sample.make, sample.process)
    assert needed or expected is None, f"equal to eager: the exception '{expected}' can go"
