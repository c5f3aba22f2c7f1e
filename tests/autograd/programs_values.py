"""Programs about what is computed and returned: structures, constants, dtypes, random numbers."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from autograd.compare import indices, leaf, plain
from autograd.program import Programs, program

VALUES: Programs = {}


# --- Structures of results ------------------------------------------------------------------------


@program(VALUES, lambda: (leaf(3, 4),))
def nested_results(x: Tensor) -> Any:
    y = x.sin()
    return [y, (x + 1, None, {"a": y * 2, "b": [3, 2.5, True, "text"]})], ()


@program(VALUES, lambda: (leaf(3, 4),))
def same_result_twice(x: Tensor) -> tuple[Tensor, ...]:
    y = x.sin()
    return y, y, y + 1


@program(VALUES, lambda: (leaf(3, 4),))
def integer_results(x: Tensor) -> tuple[Tensor, ...]:
    return x.argmax(1), (x > 0), x.sort(1)[1], x * 2


@program(VALUES, lambda: (leaf(3, 4), plain(3, 4)))
def result_without_grad(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    return y * 2, x * y, y.detach(), torch.ones(2)


@program(VALUES, lambda: (plain(3, 4),))
def nothing_requires_grad(x: Tensor) -> Tensor:
    return x.softmax(-1)


@program(VALUES, lambda: (leaf(3, 4),))
def only_detached(x: Tensor) -> Tensor:
    return x.detach() * 2


@program(VALUES, lambda: (leaf(3, 4), leaf(5)))
def unused_input(x: Tensor, y: Tensor) -> Tensor:
    return x * 2


@program(VALUES, lambda: (leaf(3, 4),))
def returns_nothing(x: Tensor) -> None:
    x * 2


@program(VALUES, lambda: (leaf(3, 4),))
def empty_tuple(x: Tensor) -> tuple[()]:
    return ()


@program(VALUES, lambda: (leaf(3, 4), 2, 0.5, True, "mean", None, [1, 3], (4, 3)))
def arguments_that_are_no_tensors(
    x: Tensor, n: int, f: float, flag: bool, how: str, nothing: None, order: Any, sizes: Any
) -> Tensor:
    assert flag and nothing is None and how == "mean"
    return (x * n + f).reshape(sizes)[:, order[0] :]


# --- Constants ------------------------------------------------------------------------------------


@program(VALUES, lambda: (leaf(3, 4),))
def tensor_constants(x: Tensor) -> Tensor:
    return x * torch.tensor([1.0, 2.0, 3.0, 4.0]) + torch.tensor(0.5)


@program(VALUES, lambda: (leaf(3, 4),))
def tensor_constant_returned_and_changed(x: Tensor) -> tuple[Tensor, Tensor]:
    c = torch.tensor([1.0, 2.0, 3.0, 4.0])
    c.add_(1)
    return c, x * c


@program(VALUES, lambda: (leaf(3, 4),))
def arange_and_friends(x: Tensor) -> Tensor:
    steps = torch.arange(4, dtype=torch.float32)
    return x * steps + torch.linspace(0, 1, 4) - torch.full((3, 1), 2.0) + torch.eye(3, 4)


@program(VALUES, lambda: (leaf(3, 4),))
def like_and_new(x: Tensor) -> Tensor:
    return torch.zeros_like(x) + x.new_ones(4) * x + x.new_full((3, 1), 2.0)


OUTSIDE = torch.linspace(-1, 1, 4)


@program(VALUES, lambda: (leaf(3, 4),))
def tensor_from_outside(x: Tensor) -> tuple[Tensor, Tensor]:
    return x * OUTSIDE, OUTSIDE


# --- Operators ------------------------------------------------------------------------------------


@program(VALUES, lambda: (leaf(3, 4), leaf(3, 4)))
def where_and_clamp(x: Tensor, y: Tensor) -> Tensor:
    return torch.where(x > y, x.clamp(-0.5, 0.5), y.clamp(min=0.0)) + torch.minimum(x, y)


@program(VALUES, lambda: (leaf(2, 3, 4), leaf(2, 4, 5), leaf(5)))
def einsum(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    return torch.einsum("bij,bjk,k->bi", x, y, z)


@program(VALUES, lambda: (leaf(4, 4), leaf(4, 4)))
def products(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    return x @ y, torch.dot(x[0], y[1]), torch.outer(x[0], y[0]), torch.addmm(x, x, y), x.mv(y[0])


@program(VALUES, lambda: (leaf(3, 4),))
def cumulative(x: Tensor) -> Tensor:
    return x.cumsum(1) * x.cumprod(0) + x.logcumsumexp(1) + x.cummax(0)[0]


@program(VALUES, lambda: (leaf(3, 8),))
def complex_inside(x: Tensor) -> Tensor:
    spectrum = torch.fft.rfft(x)
    return torch.fft.irfft(spectrum * spectrum.conj(), n=8) + spectrum.abs().sum()


@program(VALUES, lambda: (leaf(3, 8),))
def conjugate_and_parts(x: Tensor) -> Tensor:
    z = torch.complex(x, x.sin())
    w = z.conj() * z.exp()
    return w.real + w.imag + torch.view_as_real(w).sum(-1)


@program(VALUES, lambda: (leaf(3, 8),))
def complex_result(x: Tensor) -> Tensor:
    return torch.fft.fft(x)


@program(VALUES, lambda: (leaf(4, 5), indices(4, 3), indices(5, 4, 2)))
def gathers(x: Tensor, rows: Tensor, columns: Tensor) -> tuple[Tensor, ...]:
    return x[rows], x.gather(1, columns), x.index_select(0, rows), x.take_along_dim(columns, 1)


# Not to the last bit: eagerly, the derivative of prod looks for zeros first.
@program(VALUES, lambda: (leaf(4, 5),), tolerance=1e-5)
def reductions(x: Tensor) -> tuple[Tensor, ...]:
    top, where = x.topk(2)
    return x.var(0), x.std(1), x.norm(), x.logsumexp(1), x.prod(1), top, where, x.median()


@program(VALUES, lambda: (leaf(4, 4),))
def linear_algebra(x: Tensor) -> tuple[Tensor, ...]:
    square = x @ x.t() + torch.eye(4)
    return torch.linalg.cholesky(square), torch.linalg.solve(square, x), torch.linalg.det(square)


@program(VALUES, lambda: (leaf(2, 6), leaf(3, 6)))
def cat_stack_pad_flip(x: Tensor, y: Tensor) -> Tensor:
    z = torch.cat([x, y.flip(1)], 0)
    return F.pad(torch.stack([z, z.roll(1, 0)]), (1, 2))


@program(VALUES, lambda: (leaf(2, 6),))
def repeat_and_tile(x: Tensor) -> Tensor:
    return x.repeat(2, 1) + x.repeat_interleave(2, dim=0) + x.tile((2, 1))


@program(VALUES, lambda: (leaf(3, 4),))
def gradients_stopped_inside(x: Tensor) -> Tensor:
    with torch.no_grad():
        scale = x.abs().max()
    return x / scale


@program(VALUES, lambda: (leaf(3, 4),))
def gradients_switched_on_inside_no_grad(x: Tensor) -> Tensor:
    with torch.no_grad():
        a = x * 2
        with torch.enable_grad():
            b = x * 3
    return a + b


# --- Dtypes and sizes -----------------------------------------------------------------------------


@program(VALUES, lambda: (leaf(3, 4, dtype=torch.float64), leaf(4, 2, dtype=torch.float64)))
def float64(x: Tensor, y: Tensor) -> Tensor:
    return (x @ y).tanh()


@program(VALUES, lambda: (leaf(3, 4, dtype=torch.bfloat16), leaf(4, dtype=torch.float32)))
def bfloat16_and_float32(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    z = F.layer_norm(x, (4,))
    return z * y, x.softmax(-1).to(torch.float16)


@program(VALUES, lambda: (leaf(3, 4), leaf(2, 4), leaf(2)))
def autocast_inside(x: Tensor, w: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = F.linear(x, w, b)
        z = y.softmax(-1)
    return y, F.linear(x, w, b) + z


@program(VALUES, lambda: (leaf(0, 4), leaf(4, 3)))
def empty_tensors(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    return x @ y, x.sum(0), torch.cat([x, y.t()]), x[:, 1:]


@program(VALUES, lambda: (leaf(), plain(), leaf(3)))
def zero_dimensional(x: Tensor, y: Tensor, z: Tensor) -> tuple[Tensor, ...]:
    return x * y, x * z, z.sum() * x, (x + 1).view(1)


@program(VALUES, lambda: (plain(), leaf(3, dtype=torch.bfloat16)))
def zero_dimensional_does_not_promote(x: Tensor, y: Tensor) -> Tensor:
    return x * y


@program(VALUES, lambda: (torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last),))
def channels_last_without_grad(x: Tensor) -> Tensor:
    return x.relu() + 1


def _channels_last() -> tuple[Tensor, ...]:
    return torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last).requires_grad_(), leaf(3)


@program(VALUES, _channels_last)
def channels_last(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    y = F.batch_norm(x, None, None, w, None, training=True)
    return y, F.max_pool2d(y, 2), y.mean((2, 3)), y.contiguous(), y.permute(0, 2, 3, 1)


@program(VALUES, lambda: (torch.randn(4, 6).t()[::2].requires_grad_(), leaf(4, 3)))
def inputs_with_gaps(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    return x * 2, x @ y, x.contiguous(), x + y.t()


@program(VALUES, lambda: (leaf(2, 3),))
def result_with_gaps(x: Tensor) -> tuple[Tensor, ...]:
    y = (x * 2).repeat(1, 2)
    return y[:, ::2], (y * 2).t(), y.as_strided((2, 2), (6, 3))


# --- Random numbers -------------------------------------------------------------------------------


@program(VALUES, lambda: (leaf(8, 8),))
def dropout(x: Tensor) -> Tensor:
    return F.dropout(x, 0.3) * F.dropout(x, 0.5, training=False)


@program(VALUES, lambda: (leaf(8, 8),))
def dropout_three_kinds(x: Tensor) -> Tensor:
    y = F.dropout(x, 0.5)
    y = F.alpha_dropout(y, 0.2)
    return F.dropout1d(y, 0.4) + F.feature_alpha_dropout(y, 0.1)


@program(VALUES, lambda: (leaf(8, 8),))
def dropout_in_place(x: Tensor) -> Tensor:
    return F.dropout(x * 2, 0.5, inplace=True) + 1


@program(VALUES, lambda: (leaf(4, 4),))
def random_numbers(x: Tensor) -> tuple[Tensor, ...]:
    return (
        x + torch.rand_like(x),
        x * torch.randn(4),
        torch.bernoulli(torch.full_like(x, 0.5)) * x,
        torch.randint(0, 9, (3,)),
        torch.randperm(5),
        torch.normal(x, 1.0),
        torch.multinomial(x.softmax(-1), 2),
    )


@program(VALUES, lambda: (leaf(4, 4),))
def random_numbers_in_place(x: Tensor) -> Tensor:
    noise = torch.empty(4, 4).normal_() + torch.empty(4, 4).uniform_(-1, 1)
    return x * noise + torch.empty(4).exponential_() + torch.zeros(4).bernoulli_(0.5)


@program(VALUES, lambda: (leaf(4, 4),))
def random_relu(x: Tensor) -> Tensor:
    return F.rrelu(x, training=True) + F.gumbel_softmax(x, dim=-1)


@program(VALUES, lambda: (leaf(4, 4),))
def same_noise_twice(x: Tensor) -> Tensor:
    # Equal calls of a random operator are two calls.
    return torch.rand(4, 4) * x - torch.rand(4, 4) * x


@program(VALUES, lambda: (leaf(4, 4),))
def gelu_by_hand(x: Tensor) -> Tensor:
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
