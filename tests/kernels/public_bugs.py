"""Programs after public reports about PyTorch's own kernel compiler (pytorch/pytorch, by number).

Written for these tests. Each computes something that Inductor on the CPU got, or gets, wrong:
values, dtypes, strides, exceptions, or that it could not compile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

__all__ = ["BUGS", "Bug"]

INF, NAN = float("inf"), float("nan")


@dataclass(frozen=True)
class Bug:
    """A program, and the reports it was written after."""

    call: Callable[..., Any]
    make: Callable[[], Sequence[Any]]
    reports: tuple[int, ...]


BUGS: dict[str, Bug] = {}


def bug(make: Callable[[], Sequence[Any]], *reports: int) -> Callable[[Any], Any]:
    def add(call: Any) -> Any:
        assert call.__name__ not in BUGS
        BUGS[call.__name__] = Bug(call, make, reports)
        return call

    return add


def numbers(*values: float, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.tensor(values, dtype=dtype)


def leaf(*sizes: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(sizes, dtype=torch.float64).to(dtype).requires_grad_()


def channels_last(tensor: Tensor) -> Tensor:
    made = tensor.detach().contiguous(memory_format=torch.channels_last)
    return made.requires_grad_(tensor.requires_grad)


# ---- integers wrap around as their dtype does ----


@bug(lambda: (torch.arange(256).to(torch.uint8),), 105264)
def widen_after_uint8_addition(x: Tensor) -> Any:
    return (x + x).to(torch.int16), (x * 3).to(torch.float32)


@bug(lambda: (torch.arange(-128, 128).to(torch.int8),), 109105)
def int8_products_overflow(x: Tensor) -> Any:
    return x * 6 + x * 5, (x + 100) * (x - 100), -x


@bug(lambda: (numbers(2**31 - 1, -(2**31), 7, dtype=torch.int32),), 109105)
def int32_overflow_in_a_chain(x: Tensor) -> Any:
    return (x + 1) // 2, (x * 2) >> 1, x.abs(), (x - 2).to(torch.int64)


@bug(lambda: (torch.full((1000,), 200, dtype=torch.uint8),), 191543, 105264)
def sum_of_uint8_is_int64(x: Tensor) -> Any:
    return x.sum(), x.sum(dtype=torch.uint8), x.prod(), x.to(torch.float32).mean()


@bug(lambda: (torch.randint(5, 250, (67,)).to(torch.uint8),), 191499, 191543)
def extremes_of_uint8_lanes(x: Tensor) -> Any:
    return x.amin(), x.amax(), x.min(), x.view(-1, 67).amin(1), x.argmin()


@bug(lambda: (torch.randint(-120, -3, (5, 67)).to(torch.int8),), 191499)
def extremes_of_negative_int8(x: Tensor) -> Any:
    return x.amax(), x.amax(1), x.amax(0), x.amin(0), x.max(1)


@bug(lambda: (torch.tensor([True, False, True, True]), torch.rand(3, 19) > 0.5), 184893)
def argmin_of_booleans(x: Tensor, y: Tensor) -> Any:
    return x.int().argmin(), y.min(1), y.max(1), y.all(0), y.any(1)


@bug(lambda: (torch.arange(1, 9, dtype=torch.uint8), torch.arange(8, dtype=torch.uint8)), 194706)
def shifts_of_bytes(x: Tensor, by: Tensor) -> Any:
    return x << by, x >> by, x.to(torch.int8) << 3, x.to(torch.int32) << by.to(torch.int32)


@bug(lambda: (numbers(0, -3, 5, dtype=torch.int64), numbers(0, 2, 3, dtype=torch.int64)), 109105)
def integer_powers(x: Tensor, y: Tensor) -> Any:
    return x**2, x.pow(y), x.to(torch.int8).pow(7), 2**y


# ---- division and remainder ----


@bug(lambda: (numbers(1, 0.5, 6, 1, -1), numbers(0.1, 0.1, 0.2, 1 / 3, 0.1)), 197895)
def floor_division_below_an_integer(x: Tensor, y: Tensor) -> Any:
    return x // y, torch.div(x, y, rounding_mode="floor"), x.double() // y.double()


@bug(lambda: (numbers(NAN, INF, -INF, 1, -1, 0.0), numbers(1, 1, 1, INF, INF, -1.0)), 188048)
def floor_division_of_infinities(x: Tensor, y: Tensor) -> Any:
    return x // y, y // x, torch.div(x, y, rounding_mode="trunc")


@bug(lambda: (numbers(14.999999, 26.999999, 148, 1073, 2112), numbers(3, 3, 37, 37, 33)), 184408)
def truncated_division(x: Tensor, y: Tensor) -> Any:
    return torch.div(x, y, rounding_mode="trunc"), torch.trunc(x / y)


@bug(
    lambda: (numbers(-4, -1.5, -0.0, 0.0, 0.1, 1, 3.140625, 8, dtype=torch.float16),),
    183083,
    97758,
)
def remainder_by_a_number_in_half(x: Tensor) -> Any:
    return torch.remainder(x, 3.14), x % 0.25, torch.fmod(x, 3.14), torch.signbit(x % 3.14)


@bug(lambda: (numbers(1e10, 65504, 3.4e38, -7), numbers(1e-20, 6e-8, 1.4e-45, 3)), 194345)
def remainder_of_a_large_ratio(x: Tensor, y: Tensor) -> Any:
    return torch.remainder(x, y), torch.fmod(x, y)


@bug(lambda: (numbers(5, 3, dtype=torch.int64), numbers(2, 0, dtype=torch.int64)), 178013)
def integer_division_by_zero_raises(x: Tensor, y: Tensor) -> Any:
    return (x + 1) // y


@bug(
    lambda: (
        numbers(7, -7, 7, -7, dtype=torch.int64),
        torch.tensor(-3),
        numbers(2, 2, -2, -2, dtype=torch.int8),
    ),
    186164,
)
def integer_division_of_mixed_signs(x: Tensor, y: Tensor, z: Tensor) -> Any:
    return x // y, x % y, torch.fmod(x, y), x // z, x % z, torch.div(x, z, rounding_mode="trunc")


# ---- NaN, infinity, signs ----


@bug(lambda: (numbers(NAN, 4.6, 1, NAN), numbers(3, NAN, 9, 1)), 118266, 118358)
def nan_is_the_extreme(x: Tensor, y: Tensor) -> Any:
    both = torch.stack([x, y])
    return x.argmax(), x.argmin(), both.max(1), both.amin(0), torch.maximum(x, y), x.clamp(min=2)


@bug(lambda: (numbers(NAN, 1, -INF, INF),), 186018)
def nan_through_inverse_functions(x: Tensor) -> Any:
    return torch.sin(torch.atan(x)), torch.cos(torch.atan(x)), torch.exp(torch.log(x))


@bug(lambda: (torch.randn(33),), 101695)
def constants_that_are_not_finite(x: Tensor) -> Any:
    low = torch.clamp(torch.clamp(x, -0.5, INF), -INF, 0.5)
    return low, torch.where(x > 0, x, NAN), x.masked_fill(x < 0, -INF), torch.full_like(x, NAN)


@bug(lambda: (numbers(-0.0, 0.0, -1, 1),), 183083)
def signs_of_zero(x: Tensor) -> Any:
    return torch.relu(x).signbit(), (-x).signbit(), x.round().signbit(), (x * 0).signbit()


@bug(lambda: (torch.randn(4),), 195675)
def bound_that_overflows_raises(x: Tensor) -> Any:
    return torch.clamp(x + 1, min=-3.4e39, max=3.4e39)


@bug(lambda: (numbers(3.7, -2.9, 1e20, 300.5),), 105264)
def casts_of_floats(x: Tensor) -> Any:
    small = x[:2]
    return small.to(torch.int8), small.to(torch.int64), x.bool(), small.trunc().to(torch.int32)


# ---- ties, sorted order, indices ----


@bug(lambda: (torch.randint(0, 3, (7, 40)).float(),), 99879, 100573)
def first_of_equal_extremes(x: Tensor) -> Any:
    return x.argmax(), x.argmax(0), x.argmin(1), x.max(0), x.min(1)


@bug(lambda: (torch.randn(4, 9), torch.tensor([[0, 8, -9], [3, -1, 2]])), 97127)
def negative_indices(x: Tensor, index: Tensor) -> Any:
    return x[:, index], x[1, index].float(), x.argmax(1).float()


@bug(lambda: (torch.randn(4, 9), torch.tensor([0, 4])), 131659)
def index_out_of_range_raises(x: Tensor, index: Tensor) -> Any:
    return x.relu()[index] + 1


@bug(lambda: (torch.zeros(6, 3), torch.tensor([1, 1, 4, 1]), leaf(4, 3)), 168358)
def repeated_indices_accumulate(x: Tensor, index: Tensor, y: Tensor) -> Any:
    put = x.index_put((index,), y * 2, accumulate=True)
    return put, x.index_add(0, index, y), x.scatter_add(0, index.view(-1, 1).expand(4, 3), y)


# ---- cumulative operators ----


@bug(lambda: (torch.rand(2, 4, 4) > 0.3,), 189518, 189533)
def cumulative_sum_with_dtype(x: Tensor) -> Any:
    ones = torch.ones_like(x)
    return ones.cumsum(1, dtype=torch.bfloat16), x.cumsum(0), x.cumsum(2, dtype=torch.float16)


@bug(lambda: (torch.tensor(5.0), torch.tensor(True)), 193265, 184089)
def zero_dimensional_along_a_dimension(x: Tensor, y: Tensor) -> Any:
    return x.cumsum(0), y.cumsum(-1), x.flip(0), x.cumprod(0), x.softmax(0), x.sum(0), x.argmax()


@bug(lambda: (torch.tensor(0, dtype=torch.uint8),), 197807)
def logcumsumexp_of_bytes_raises(x: Tensor) -> Any:
    return torch.logcumsumexp(x, 0)


@bug(lambda: (torch.randint(1, 4, (3, 9), dtype=torch.int16),), 117623)
def cumulative_integers(x: Tensor) -> Any:
    return x.cumsum(1), x.cumprod(1), x.cumsum(0, dtype=torch.int8), x.cummax(1), x.cummin(0)


@bug(lambda: (leaf(3, 11),), 172062, 136263)
def gradient_of_cumulative_products(x: Tensor) -> Any:
    return x.cumprod(1), x.cumsum(0).exp(), x.logcumsumexp(1)


# ---- tiles, tails, layouts ----


@bug(lambda: (channels_last(torch.randn(1, 8, 66, 66)),), 196681, 196882)
def reduction_with_a_tail_in_two_tiles(x: Tensor) -> Any:
    v = F.gelu(x)
    padded = F.pad(v.permute(3, 2, 1, 0), (0, 0, 0, 3), value=0.5)
    return padded.sum(2), (v.transpose(1, 3) + 1).amax(1)


@bug(lambda: (torch.randn(67, 35), torch.randn(35, 67)), 103651, 97626)
def transposed_sum_with_tails(x: Tensor, y: Tensor) -> Any:
    return x.t() + y, (x.t() * y).contiguous(), x.bfloat16().t().contiguous(), (x + y.t()).sum(0)


@bug(lambda: (channels_last(leaf(1, 2, 7, 6)),), 187173, 103111)
def pooling_of_channels_last(x: Tensor) -> Any:
    pooled, index = F.max_pool2d(x, 3, padding=1, return_indices=True)
    return pooled, F.max_unpool2d(pooled, index, 3, 3, 1, output_size=(7, 6)), F.avg_pool2d(x, 2)


@bug(lambda: (leaf(1, 1, 6, 7),), 94775)
def pooling_with_ceiling(x: Tensor) -> Any:
    return F.max_pool2d(x, 1, stride=2, ceil_mode=True), F.avg_pool2d(x, 3, 2, ceil_mode=True)


@bug(lambda: (leaf(2, 3, 9, 11),), 131659)
def backward_of_overlapping_pooling(x: Tensor) -> Any:
    return F.max_pool2d(x, 3, stride=2, padding=1), F.adaptive_avg_pool2d(x, 4)


@bug(lambda: (channels_last(leaf(2, 3, 5, 4)),), 148859)
def upsampling_of_channels_last(x: Tensor) -> Any:
    return (
        F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True),
        F.interpolate(x, size=(7, 3), mode="nearest"),
        F.interpolate(x, scale_factor=1.5, mode="bicubic"),
    )


@bug(lambda: (torch.randn(1, 2, 0, 4),), 197095)
def interpolation_of_nothing_raises(x: Tensor) -> Any:
    return F.interpolate(x * 2, size=(3, 3))


@bug(
    lambda: (
        channels_last(torch.randn(24, 4, 6, 5)).view(2, 12, 4, 6, 5),
        torch.arange(2).unsqueeze(-1),
        torch.tensor([[3, 1, 7], [0, 11, 2]]),
    ),
    144717,
    144736,
)
def indexing_keeps_strides_of_eager(x: Tensor, first: Tensor, second: Tensor) -> Any:
    taken = x[first, second]
    return taken, taken * 2, taken.permute(0, 2, 1, 3, 4).reshape(2, 4, -1)


@bug(lambda: (channels_last(torch.randn(2, 64, 7, 7)), torch.randn(64, 64, 1, 1)), 136837, 95693)
def convolution_keeps_strides_of_eager(x: Tensor, weight: Tensor) -> Any:
    made = F.conv2d(x, weight)
    return made, F.relu(made), made.flatten(2).transpose(1, 2), made.sum(1)


@bug(lambda: (leaf(1, 3, 4, 5), torch.randn(8, 1, 4, 1)), 122239, 145219)
def strides_of_single_elements(x: Tensor, y: Tensor) -> Any:
    joined = torch.cat((y, y[:1]), 0).view(-1, 1)
    return x.transpose(0, 1) * 2, x.sum(2, keepdim=True), joined.unsqueeze(0) + 1


# ---- empty and complex tensors, memory ----


@bug(lambda: (torch.randn(2, 0), torch.randn(0, 3)), 183721, 107066)
def empty_tensors(x: Tensor, y: Tensor) -> Any:
    joined = torch.cat([x, torch.ones(2, 1)], 1)
    return x @ y, x.sum(1), x.prod(), joined + 1, y.relu().t(), x.softmax(1), x.cumsum(1)


@bug(lambda: (torch.randn(3, 0),), 107066)
def extreme_of_nothing_raises(x: Tensor) -> Any:
    return (x + 1).amax(1)


@bug(lambda: (torch.randn(1, 1, 0), torch.randn(4, 0), torch.randn(4)), 104937, 113026)
def linear_without_features(x: Tensor, weight: Tensor, bias: Tensor) -> Any:
    return F.linear(x, weight, bias), F.linear(x, weight).relu()


@bug(lambda: (torch.randn(2, 2), torch.randn(2, 1)), 174891, 115071, 172073)
def complex_numbers_inside(x: Tensor, y: Tensor) -> Any:
    z = torch.complex(x, x + 1) + torch.complex(y, y)
    total = torch.view_as_real(z + z)
    point = torch.complex(x.sum(), x.prod())
    return total, (point + point).abs(), torch.polar(x.abs(), x).imag


@bug(lambda: (torch.randn(3, 2), torch.randn(3, 2)), 197376, 197094)
def lists_of_complex_tensors(x: Tensor, y: Tensor) -> Any:
    both = [torch.complex(x, y), torch.complex(y, x)]
    divided = torch._foreach_div(both, 1j)
    torch._foreach_add_(divided, both, alpha=-0.5)
    return [torch.view_as_real(value) for value in divided]


@bug(lambda: (torch.randn(41),), 115071)
def inputs_stay_what_they_were(x: Tensor) -> Any:
    doubled = torch.add(x, x)
    return doubled, doubled.add_(1), x + 1


@bug(lambda: (torch.randn(2, 3, 4, dtype=torch.float16), torch.randn(4, 5)), 177630)
def matmul_of_two_dtypes_raises(x: Tensor, y: Tensor) -> Any:
    return torch.matmul(x + 1, y)


@bug(lambda: (torch.randn(7),), 150114)
def shared_subexpressions_are_computed_once(x: Tensor) -> Any:
    for _ in range(60):  # a tree of 2**60 operations, if nothing is shared
        x = torch.sin(x) + torch.cos(x) * x
        x = x / (x.abs() + 1)
    return x


@bug(lambda: (torch.randn(1, 3, 256, 256) + 40,), 142839)
def variance_of_a_large_image(x: Tensor) -> Any:
    return F.instance_norm(x), x.var((2, 3)), x.std(3), F.group_norm(x, 3)


@bug(lambda: (torch.randn(32, 32, dtype=torch.float16),), 145466)
def rounding_after_half_precision(x: Tensor) -> Any:
    return torch.floor(x * 3), torch.round(x + x), torch.ceil(x - 0.25)


@bug(lambda: (leaf(1, 1, 10, 10), torch.tensor([[[0.3, 0.6]]])), 172071, 183249, 141538)
def fractional_pooling(x: Tensor, samples: Tensor) -> Any:
    pooled = F.fractional_max_pool2d(x, 2, output_size=(5, 5), _random_samples=samples)
    return pooled, F.fractional_max_pool2d(x, 2, output_size=(4, 4))


# ---- checks that a decomposition does not make ----


@bug(lambda: (torch.randn(5, 4), torch.tensor([2, -2, 4])), 151918, 183608)
def embedding_of_a_negative_index_raises(weight: Tensor, index: Tensor) -> Any:
    return F.embedding(index, weight) + 1


@bug(lambda: (torch.randn(5, 4), torch.tensor([-1])), 169779)
def selection_of_a_negative_index_raises(x: Tensor, index: Tensor) -> Any:
    return x.index_select(0, index) * 2


@bug(lambda: (torch.zeros(4, 3), torch.tensor([0, -1]), torch.ones(2, 3)), 185885)
def sum_at_a_negative_index_raises(x: Tensor, index: Tensor, source: Tensor) -> Any:
    return x.index_add(0, index, source).clamp_max(1.0)


@bug(lambda: (torch.zeros(4, 3), torch.tensor([-1]), torch.ones(1, 3)), 197554)
def copy_to_a_negative_index_raises(x: Tensor, index: Tensor, source: Tensor) -> Any:
    return x.index_copy(0, index, source)


@bug(lambda: (numbers(1.5, 0.2), numbers(1, 0)), 197554)
def cross_entropy_of_more_than_one_raises(x: Tensor, target: Tensor) -> Any:
    return F.binary_cross_entropy(x, target)


@bug(lambda: (torch.ones(4, 4), torch.full((4, 4), 1.5)), 193757)
def cross_entropy_with_more_than_one_raises(x: Tensor, target: Tensor) -> Any:
    return F.binary_cross_entropy(x, target)


@bug(lambda: (numbers(4, 6, dtype=torch.int64),), 143717)
def floats_in_place_of_integers_raises(x: Tensor) -> Any:
    return (x * 2).div_(4)


# ---- dtypes and roundings of half precision, large numbers ----


@bug(lambda: (leaf(6, dtype=torch.float16), torch.rand(6)), 171282)
def cross_entropy_of_two_dtypes(x: Tensor, target: Tensor) -> Any:
    return F.binary_cross_entropy_with_logits(x, target), F.mse_loss(x, target)


@bug(lambda: (numbers(3e22, 7e25, -8e23, 1e10, 0, 0, 0, -10000.1),), 183767, 142345, 183768)
def inverse_hyperbolic_functions_of_large_numbers(x: Tensor) -> Any:
    return x.asinh(), x.abs().acosh(), x.double().asinh()
