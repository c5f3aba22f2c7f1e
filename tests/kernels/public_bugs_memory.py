"""More programs after public reports: what is written in place, views, strides and gradients.

Importing this adds them to `public_bugs.BUGS`.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from kernels.public_bugs import bug, leaf, numbers

# ---- what is written in place ----


@bug(lambda: (torch.arange(-12, 12).reshape(4, 6),), 198101)
def read_of_a_dtype_view_before_a_write(x: Tensor) -> Any:
    made = x.view(torch.int32) * 2
    made.sub_(-4)
    x[:, 2:5] = 2
    return made.view(torch.int64)


@bug(lambda: (torch.arange(6, dtype=torch.int32),), 198101)
def dtype_views_of_what_was_written(x: Tensor) -> Any:
    made = x * 2
    before = made.view(torch.int16)
    made.sub_(4)
    return before, made.view(torch.uint8), made.view(torch.int64)


@bug(lambda: (torch.tensor([[-10, -10]]), torch.randn(2, 32)), 138908)
def rows_are_doubled_once(index: Tensor, x: Tensor) -> Any:
    index = index + 10
    x[index] += x[index]
    return x


@bug(lambda: (torch.randn(8, 8),), 196570)
def mask_that_is_written_by_index(x: Tensor) -> Any:
    mask = torch.full((8, 8), -10000.0)
    mask[torch.arange(8).unsqueeze(0), torch.arange(8).unsqueeze(1)] = 0
    return torch.softmax(x + mask, dim=-1)


# ---- strides ----


@bug(lambda: (torch.randn(16, 16)[:, :8],), 130394)
def strides_that_leave_gaps(x: Tensor) -> Any:
    filled = torch.empty_strided(x.size(), x.stride())
    filled[:] = x + x
    cleared = torch.empty_strided(x.size(), x.stride())
    cleared.zero_()
    return filled, cleared, filled + 1


@bug(lambda: (torch.randn(4, 4),), 142118)
def column_that_is_filled(x: Tensor) -> Any:
    column = x.clone()[:, 1]
    column.masked_fill_(torch.ones_like(column, dtype=torch.bool), 0)
    return column


# ---- slices and joins ----


@bug(lambda: (torch.randn(4, 8, 17), torch.randn(4, 8), torch.rand(8)), 185702)
def functions_of_a_slice_side_by_side(x: Tensor, y: Tensor, shift: Tensor) -> Any:
    last = x[..., 16]
    positive = F.softplus(last) + 1e-4
    gamma = torch.special.gammaln(positive + shift.view(1, -1))
    logarithm = torch.special.xlogy(positive, F.softplus(y) + 1e-4)
    return torch.stack([gamma, torch.erf(last * shift.view(1, -1)), logarithm], dim=-1)


@bug(lambda: (torch.randn(2, 1, 16), torch.rand(4, 16)), 159239)
def rotation_of_halves(x: Tensor, cosine: Tensor) -> Any:
    rotated = torch.cat((-x[..., 8:], x[..., :8]), dim=-1)
    return x * cosine + rotated * cosine.flip(-1)


@bug(lambda: (torch.randn(2000),), 113015)
def slices_with_large_steps(x: Tensor) -> Any:
    some = x[-1850::43]
    return torch.max(x[-1850:-1849], -some), some.sum(0)


@bug(lambda: (torch.ones(64, dtype=torch.bool), torch.randn(33)), 178095)
def casts_to_eight_bits(x: Tensor, y: Tensor) -> Any:
    small = [x.to(torch.float8_e4m3fn), y.to(torch.float8_e5m2), (y * 300).to(torch.float8_e4m3fn)]
    return [one.view(torch.uint8) for one in small]


@bug(lambda: (torch.randn(40), numbers(0.1875)), 126848)
def numbers_below_the_normal_ones(x: Tensor, y: Tensor) -> Any:
    return x * 1e-40, (x * 1e-40).abs().sum(), y * 2.0**-124, torch.exp(-90 - x.abs())


# ---- gradients ----


@bug(lambda: (leaf(8, 8), leaf(8)), 182012)
def gradient_beside_a_diagonal(x: Tensor, y: Tensor) -> Any:
    return x.diagonal_scatter(y).sum(), x.select_scatter(y, 0, 2).sin()


@bug(lambda: (leaf(2, 3),), 136662)
def gradient_through_an_updated_column(x: Tensor) -> Any:
    made = x * 1
    made[:, 0] += x[:, 2].abs()
    return made.sum(), made


@bug(lambda: (leaf(4, 5), leaf(4, 5)), 186799)
def gradient_of_the_smallest_angle(x: Tensor, y: Tensor) -> Any:
    return torch.atan2(x, y).amin(1), torch.atan2(x, y).amax(0)


@bug(
    lambda: (
        numbers(1.703125, 1.703125, dtype=torch.bfloat16).requires_grad_(),
        numbers(0, 0, dtype=torch.bfloat16).requires_grad_(),
        numbers(1, 1, dtype=torch.bfloat16),
    ),
    185517,
)
def gradient_on_the_edge_of_a_margin(x: Tensor, y: Tensor, target: Tensor) -> Any:
    return F.margin_ranking_loss(x, y, target, margin=1.7)
