"""Functions of floats: large arguments, and the same value in whatever loop it is computed."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from kernels.against_eager import Program


def test_inverse_hyperbolic_functions_of_large_numbers() -> None:
    for dtype, large in ((torch.float32, 3e38), (torch.float64, 1e300)):
        numbers = torch.tensor([1.0, 1e10, 1e19, 3e30, large] * 7, dtype=dtype)
        text = Program(lambda x: (x.asinh(), x.acosh()), lambda n=numbers: [n.clone()]).difference()
        assert not text, text


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_of_infinities(dtype: torch.dtype, approximate: str) -> None:
    """Eager's is NaN where oneDNN computes it."""

    def program(x: Tensor) -> tuple[Tensor, ...]:
        tensors = (x, x[:1], x[::2], x.view(7, 4).t())
        return tuple(torch.nn.functional.gelu(one, approximate=approximate) for one in tensors)

    def make() -> list[Tensor]:
        inf = float("inf")
        return [torch.tensor([inf, -inf, float("nan"), 0.5] * 7, dtype=dtype).requires_grad_()]

    text = Program(program, make).difference()
    assert not text, text


def test_a_power_of_two_beside_a_power_of_e() -> None:
    def program(x: Tensor) -> tuple[Tensor, ...]:
        return x.exp(), x.exp2(), x.log(), x.log2(), x.exp().log2()

    for dtype in (torch.float32, torch.float64):
        text = Program(program, lambda d=dtype: [torch.rand(70, dtype=d) + 0.5]).difference()
        assert not text, text


FUNCTIONS = {
    "atan2": lambda x: torch.atan2(x, x.abs() + 1),
    "erfc": lambda x: torch.erfc(x),
    "pow": lambda x: (x.abs() + 0.1) ** 1.3,
    "tan": lambda x: torch.tan(x),
    "sin of large numbers": lambda x: torch.sin(x * 40000),
    "lgamma": lambda x: torch.lgamma(x),
    "sinh": lambda x: torch.sinh(x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_backward_finds_the_extreme_that_the_forward_saw(name: str) -> None:
    """It computes the function again, in vectors where the forward did not, and compares."""

    def program(x: Tensor, y: Tensor) -> Tensor:
        smallest = FUNCTIONS[name](torch.maximum(x, y)[1:]).amin(-1, keepdim=True)
        return torch.minimum(smallest, x) + 0.5

    def make() -> list[Tensor]:
        return [torch.randn(9).requires_grad_(), torch.randn(9).requires_grad_()]

    text = Program(program, make).difference()
    assert not text, text
