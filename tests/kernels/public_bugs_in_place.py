"""More programs after public reports: in-place writes, aliases, and functions at their edges.

Importing this adds them to `public_bugs.BUGS`.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from kernels.public_bugs import INF, NAN, bug, leaf, numbers

# ---- a tensor is read at other positions than it is written ----


@bug(lambda: (torch.randn(8, 8),), 198033)
def foreach_addition_of_its_own_rows(x: Tensor) -> Any:
    torch._foreach_add_([x], [x.flip(0)])
    return x


@bug(lambda: (torch.randn(4, 8),), 198270)
def rows_are_put_and_then_mirrored(x: Tensor) -> Any:
    x.index_put_((torch.arange(4),), x * 2)
    x.add_(x.flip(0))
    return x


@bug(lambda: (torch.randn(4, 8),), 198270)
def rows_are_added_copied_and_shifted(x: Tensor) -> Any:
    x.index_add_(0, torch.arange(4), x * 2)
    x.copy_(x.flip(0))
    x[1:] = x[:-1].clone()
    torch._foreach_mul_([x], [x.t().reshape(4, 8)])
    return x


@bug(lambda: (torch.randn(3, 16, 16),), 197829)
def rows_and_columns_are_shifted(x: Tensor) -> Any:
    x[1:] = x[:-1].clone()
    x[:, :-1] = x[:, 1:].clone() * 2
    return x


@bug(lambda: (torch.randn(40),), 197829)
def shift_without_a_copy_raises(x: Tensor) -> Any:
    x[1:] = x[:-1]
    return x


@bug(lambda: (torch.randn(64),), 94693)
def parts_of_itself_are_copied_back(x: Tensor) -> Any:
    joined = torch.cat([x[2:11], x[20:40], x[:35]])
    x.copy_(joined)
    return joined + 1


@bug(lambda: (torch.zeros(8, 4), torch.randn(8, 4)), 191571)
def rows_are_gathered_after_they_were_added(zeros: Tensor, x: Tensor) -> Any:
    index = torch.zeros(8, dtype=torch.long)
    total = zeros[:1].scatter_add(0, index.unsqueeze(-1).expand(-1, 4), x)
    return total.index_select(0, index)


# ---- what was computed before a write stays what it was ----


@bug(lambda: (numbers(3.0, 0.5),), 94777)
def logarithm_before_its_input_is_overwritten(x: Tensor) -> Any:
    before = x.log()
    x.log_()
    return before


@bug(lambda: (torch.arange(24).reshape(4, 6), -torch.arange(24).reshape(4, 6)), 198094)
def scattered_copy_before_its_input_is_cleared(x: Tensor, y: Tensor) -> Any:
    slices = torch.slice_scatter(x, y[1:3], dim=0, start=1, end=3)
    diagonal = torch.diagonal_scatter(x, x.diagonal())
    x.zero_()
    return slices, diagonal


@bug(lambda: (torch.randn(8), torch.randn(8), torch.randn(8)), 183575)
def average_that_is_updated_and_used(x: Tensor, gradient: Tensor, average: Tensor) -> Any:
    average.lerp_(gradient, 0.05)
    x.add_(average, alpha=-0.01)
    return gradient.bfloat16().float() * 2


@bug(lambda: (torch.zeros(2, requires_grad=True),), 90844)
def parameter_that_is_updated_without_gradient(x: Tensor) -> Any:
    with torch.no_grad():
        x.add_(1)
    return x * 3


@bug(lambda: (torch.ones(10, requires_grad=True),), 114338)
def equal_values_of_which_one_has_a_gradient(x: Tensor) -> Any:
    with torch.no_grad():
        with torch.enable_grad():
            first = x + 1
        second = x + 1
    return first, second


# ---- inputs that share memory ----


def _base_and_rows() -> tuple[Tensor, Tensor]:
    base = torch.arange(24, dtype=torch.float64).reshape(4, 6)
    return base, base[1:]


@bug(_base_and_rows, 198095)
def view_of_rows_of_a_base_that_is_written(base: Tensor, rows: Tensor) -> Any:
    base.add_(100)
    return rows[0], rows.view(-1)


@bug(_base_and_rows, 198095)
def view_of_a_base_whose_rows_are_written(base: Tensor, rows: Tensor) -> Any:
    rows.mul_(2)
    return base[1:3], rows.t()


@bug(lambda: (torch.arange(24.0).reshape(4, 6),), 198095)
def views_of_an_offset_view(x: Tensor) -> Any:
    rows = x[1:]
    x.add_(100)
    return rows[0], rows.view(-1)


@bug(lambda: (torch.zeros(4, 4), torch.arange(16, dtype=torch.int32).view(4, 4)), 136064)
def copy_into_a_view_of_another_dtype(x: Tensor, y: Tensor) -> Any:
    x.view(torch.float32).add_(1)
    x.view(torch.int32).copy_(y)
    return x.view(torch.int32) + 1


def _halves() -> tuple[Tensor, Tensor]:
    base = torch.randn(8)
    return base[:4], base[2:6]


@bug(_halves, 139789)
def inputs_that_overlap(x: Tensor, y: Tensor) -> Any:
    x.mul_(2)
    return x + y


# ---- values ----


@bug(lambda: (torch.randn(2, 2), torch.tensor(7, dtype=torch.uint8)), 161763, 93829)
def negative_of_a_byte(x: Tensor, byte: Tensor) -> Any:
    return byte + x, -byte, -byte + x, -byte < torch.tensor(4, dtype=torch.uint8)


@bug(lambda: (torch.randint(-(2**31), 2**31 - 1, (2, 40), dtype=torch.int32),), 190764)
def int32_wraps_before_it_is_widened(x: Tensor) -> Any:
    y = x[0]
    return (x * y).long(), (x + y).long() * 2, (x - y) > x, (x + y) // 2, (x * 3).double()


@bug(lambda: (numbers(1_500_000_000, dtype=torch.int64),), 183901, 175966)
def product_of_a_range(x: Tensor) -> Any:
    return torch.arange(9) * x, torch.arange(5, dtype=torch.int32) * 1_500_000_000


@bug(lambda: (numbers(88.85, 89.2, 88.95, -89, 89.5, NAN, INF, -INF, 0.0),), 183763)
def hyperbolic_functions_of_large_numbers(x: Tensor) -> Any:
    large = torch.cat([x.double(), numbers(710.2, -710.4, 711, dtype=torch.float64)])
    return x.sinh(), x.cosh(), large.sinh(), large.cosh()


@bug(lambda: (numbers(-1, -4, 2, -0.0, -INF),), 189808)
def nan_of_a_square_root_is_positive(x: Tensor) -> Any:
    return x.sqrt().view(torch.int32), x.double().sqrt().signbit()


@bug(lambda: (numbers(786460592764.25, 300.7, -5.5, 1e10, dtype=torch.float64).repeat(5),), 105264)
def large_numbers_as_bytes(x: Tensor) -> Any:
    return x.to(torch.uint8), x.float().to(torch.uint8), x.to(torch.int16)


@bug(lambda: (numbers(-1, NAN, INF, -INF, 2),), 100466)
def product_with_a_comparison(x: Tensor) -> Any:
    return x * (x >= 0), x * (x != x), (x < 0) * INF


@bug(lambda: (numbers(-126, -127, -149, -150, 0.5, 128, 127),), 125557)
def powers_of_two_below_the_normal_numbers(x: Tensor) -> Any:
    return 2.0**x, x.exp2(), torch.pow(2, x.double()), torch.ldexp(torch.ones(7), x)


@bug(lambda: (numbers(INF, -INF, NAN, 0, -0.0, 8, 1e-40, 3.5),), 143790)
def mantissa_of_infinities(x: Tensor) -> Any:
    return torch.frexp(x).mantissa


@bug(
    lambda: (numbers(1, -1, 0, -0.0, INF, NAN, 1e-45), numbers(2, -2, 1, 0, -INF, 1, 0)),
    187340,
)
def next_number(x: Tensor, y: Tensor) -> Any:
    return torch.nextafter(x, y), torch.nextafter(x.double(), y.double())


@bug(lambda: (torch.randn(1, 2, 9, 9),), 115157)
def padding_that_is_added_and_returned(x: Tensor) -> Any:
    padded = F.pad(x.abs(), (0, 24, 34, 0), "replicate")
    return padded + padded, padded


@bug(lambda: (torch.ones(5, 1, 8, 8), torch.randn(5)), 159154)
def products_by_einsum(x: Tensor, y: Tensor) -> Any:
    power = torch.exp(-torch.einsum("i...,i->i...", x, y))
    total = torch.einsum("i...->i", power)
    return torch.einsum("i,i...->i...", 1 / total, power)


@bug(lambda: (leaf(1, 2, 8, 8),), 188217)
def functions_after_local_response_norm(x: Tensor) -> Any:
    return F.hardsigmoid(F.logsigmoid(F.local_response_norm(x, 2, alpha=0.028)), inplace=True)


# ---- exceptions ----


@bug(lambda: (torch.arange(4.0), torch.tensor([0, 1, 2, -1]), torch.arange(4.0)), 131321)
def reduction_at_a_negative_index_raises(x: Tensor, index: Tensor, source: Tensor) -> Any:
    return x.scatter_reduce(0, index, source, "sum")


@bug(lambda: (numbers(0.5, 2), numbers(2.5, 0.1)), 194501)
def negative_beta_raises(x: Tensor, y: Tensor) -> Any:
    return F.smooth_l1_loss(x * 2, y, beta=-1.0)


@bug(lambda: (numbers(0, 1), numbers(1, -1)), 185263)
def negative_deviation_raises(mean: Tensor, deviation: Tensor) -> Any:
    return torch.normal(mean, deviation)


@bug(lambda: (numbers(1, 2, 3, dtype=torch.int8),), 197554, 198155)
def rounding_of_integers_to_tens_raises(x: Tensor) -> Any:
    return torch.round(x + 1, decimals=-1)


@bug(lambda: (torch.tensor([[1, -2, 3], [4, 0, -6]]),), 198155)
def softmax_of_integers_raises(x: Tensor) -> Any:
    return F.softmax(x + 1, -1)
