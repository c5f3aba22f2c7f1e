"""The prims of stock PyTorch, in files that run without Python: equal to what eager computes."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import assay

UNARY = (
    "acos asin asinh atan ceil clone cosh digamma erf_inv erfc exp2 expm1 floor isfinite lgamma "
    "log1p log2 round signbit sinh tan trunc"
).split()
BINARY = "atan2 fmax fmin fmod hypot maximum minimum nextafter pow remainder".split()
OF_INTEGERS = "bitwise_and bitwise_or bitwise_xor gcd shift_left shift_right_arithmetic".split()
CALLS = [
    *(f"{name}.default(x)" for name in UNARY),
    *(f"{name}.default(x, y)" for name in BINARY),
    *(f"{name}.default(i, i)" for name in OF_INTEGERS),
    "amax.default(x, [0])",
    "amin.default(i, [0, 1])",
    "collapse_view.default(x, 0, 1)",
    "collapse.default(x, 0, 1)",
    "pow.default(x, 2)",
    "prod.default(i, [0, 1])",
    "remainder.default(i, 3)",
    "split_dim.default(x, 1, 2)",
    "as_strided.default(x, [2, 2], [1, 2], 3)",
    "as_strided_scatter.default(x, y[:2, :2], [2, 2], [4, 1], 0)",
    "bessel_i0.default(x)",
    "copy_strided.default(x, [1, 3])",
    "copy_to.default(x, y)",
    "fft_r2c.default(x, dim=[1], onesided=True).abs()",
    "fft_c2r.default(torch.complex(x, y), dim=[1], last_dim_size=6)",
    "fft_c2c.default(torch.complex(x, y), dim=[0], forward=False).abs()",
    "fill.default(x, 3.0)",
    "full.default([2], 3, dtype=torch.int64, device=torch.device('cpu'), requires_grad=False)",
    "full_like.default(x, 2.0, dtype=torch.float64, device=torch.device('cpu'), "
    "requires_grad=False)",
    "igamma.default(y, y)",
    "imag.default(torch.complex(x, y))",
    "scalar_tensor.default(3, dtype=torch.float32, device=torch.device('cpu'))",
    "spherical_bessel_j0.default(x)",
    "squeeze.default(x.unsqueeze(1), [1])",
    "sum.default(i, [1])",
    "var.default(x, [0], 0)",
]


@pytest.mark.parametrize("call", CALLS)
def test_as_stock(call: str) -> None:
    text = f"""\
class Repro(torch.nn.Module):
    def forward(self, x, y, i):
        result = torch.ops.prims.{call}
        return (result,)
"""
    scope: dict[str, Any] = {"torch": torch}
    exec(text, scope)
    torch.manual_seed(0)
    inputs = (torch.randn(3, 4), torch.rand(3, 4) + 0.5, torch.randint(1, 7, (3, 4)))
    [expected] = scope["Repro"]()(*inputs)
    [found] = assay.parse(text)(*inputs)
    assert found.stride() == expected.stride()
    torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)
