"""Programs that change tensors in place, return views and get tensors that share memory."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from autograd.compare import computed, indices, leaf, plain
from autograd.program import Programs, program

MEMORY: Programs = {}


# --- Changed inputs -------------------------------------------------------------------------------


@program(MEMORY, lambda: (plain(3, 4),))
def change_input_without_grad(x: Tensor) -> Tensor:
    x.mul_(2).add_(1)
    return x.sin()


@program(MEMORY, lambda: (computed(3, 4),))
def change_input_with_grad(x: Tensor) -> Tensor:
    y = x + 1
    x.mul_(3).sigmoid_()
    return x.sin() + y


@program(MEMORY, lambda: (computed(3, 4),))
def change_input_and_return_nothing_else(x: Tensor) -> None:
    x.exp_()


@program(MEMORY, lambda: (leaf(3, 4),))
def change_leaf_under_no_grad(x: Tensor) -> Tensor:
    y = x * 3
    with torch.no_grad():
        x.sub_(0.5)
    return y + x.sin()


@program(MEMORY, lambda: (computed(3, 4),))
def change_computed_under_no_grad(x: Tensor) -> Tensor:
    with torch.no_grad():
        x.sub_(0.5)
    return x * 2


@program(MEMORY, lambda: (leaf(3, 4),))
def change_data_of_leaf(x: Tensor) -> Tensor:
    x.data.mul_(0.5)
    return x * x


@program(MEMORY, lambda: (plain(3, 4), leaf(3, 4)))
def input_gets_a_history(x: Tensor, w: Tensor) -> Tensor:
    x.add_(w * 2)
    return x.cos()


@program(MEMORY, lambda: (plain(3, 4), leaf(3, 4)))
def input_overwritten(x: Tensor, w: Tensor) -> Tensor:
    x.copy_(w)
    return x * 2


@program(MEMORY, lambda: (computed(3, 4),))
def input_zeroed_and_filled(x: Tensor) -> Tensor:
    y = x * 2
    x.zero_()
    x[0].fill_(3)
    return y + x


@program(MEMORY, lambda: (computed(3, 4), computed(3, 4)))
def change_two_inputs(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    x.sub_(y)
    y.add_(x)
    return x - y, y * 2


@program(MEMORY, lambda: (computed(3, 4), leaf(3, 4)))
def saved_then_changed(x: Tensor, w: Tensor) -> Tensor:
    # The product's derivative needs x as it was; multiplying makes a copy first.
    y = x.clone() * w
    x.mul_(3)
    return y + x


@program(MEMORY, lambda: (computed(4, 4).t(),))
def change_transposed_input(x: Tensor) -> Tensor:
    x.mul_(2)
    return x @ x


@program(MEMORY, lambda: (plain(3, 4, dtype=torch.float64),))
def change_counter(x: Tensor) -> Tensor:
    x += 1
    return x


# --- Inputs as results ----------------------------------------------------------------------------


@program(MEMORY, lambda: (leaf(3, 4),))
def return_input(x: Tensor) -> Tensor:
    return x


@program(MEMORY, lambda: (computed(3, 4), plain(2)))
def return_inputs_and_more(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    return x, x * 2, y, x


@program(MEMORY, lambda: (computed(3, 4),))
def return_changed_input(x: Tensor) -> tuple[Tensor, Tensor]:
    x.mul_(2)
    return x, x + 1


@program(MEMORY, lambda: (leaf(3, 4),))
def return_view_of_input(x: Tensor) -> Tensor:
    return x.t()[1:]


@program(MEMORY, lambda: (computed(3, 4),))
def return_views_of_input(x: Tensor) -> tuple[Tensor, ...]:
    return x.view(4, 3), x[:, 1], x.unsqueeze(0).expand(2, 3, 4), x.view(-1)


# Two gradients of one value are added in another order than in eager.
@program(MEMORY, lambda: (computed(3, 4),), tolerance=1e-6)
def return_view_of_changed_input(x: Tensor) -> tuple[Tensor, Tensor]:
    x.mul_(2)
    y = x.view(12)
    return y, y.sin()


@program(MEMORY, lambda: (computed(3, 4),))
def change_input_through_view(x: Tensor) -> Tensor:
    x.view(12)[2:5].mul_(10)
    return x.sum(0)


@program(MEMORY, lambda: (computed(3, 4),), tolerance=1e-6)
def return_view_made_before_change(x: Tensor) -> tuple[Tensor, Tensor]:
    row = x[1]
    x.mul_(2)
    return row, row * x[0]


@program(MEMORY, lambda: (plain(3, 4),))
def return_view_of_plain_input(x: Tensor) -> Tensor:
    return x.permute(1, 0)


@program(MEMORY, lambda: (leaf(3, 4),))
def return_detached_input(x: Tensor) -> tuple[Tensor, Tensor]:
    return x.detach(), x * 2


@program(MEMORY, lambda: (leaf(3, 4),))
def return_alias_of_input(x: Tensor) -> Tensor:
    return x.view_as(x)


# --- Views of intermediates -----------------------------------------------------------------------


@program(MEMORY, lambda: (leaf(3, 4),))
def return_view_of_intermediate(x: Tensor) -> Tensor:
    return x.sin().t()


@program(MEMORY, lambda: (leaf(3, 4),))
def return_intermediate_and_its_views(x: Tensor) -> tuple[Tensor, ...]:
    y = x.sin()
    return y, y.t(), y[0], y.view(-1)


@program(MEMORY, lambda: (leaf(3, 4),))
def return_view_before_its_base(x: Tensor) -> tuple[Tensor, Tensor]:
    y = x.sin()
    return y.unsqueeze(1), y


@program(MEMORY, lambda: (plain(1, 1, 4).expand(1, 3, 4).requires_grad_(),))
def take_expanded_leaf(x: Tensor) -> Tensor:
    return x.unsqueeze(1)


@program(MEMORY, lambda: (leaf(3, 4),))
def return_two_views_without_base(x: Tensor) -> tuple[Tensor, Tensor]:
    y = x.sin()
    return y.t(), y[1:]


@program(MEMORY, lambda: (leaf(3, 4),))
def return_detached_intermediate(x: Tensor) -> tuple[Tensor, Tensor]:
    y = x.exp()
    return y.detach(), y


@program(MEMORY, lambda: (leaf(4, 6),))
def chunks(x: Tensor) -> tuple[Tensor, ...]:
    return (x * 2).chunk(3, dim=1)


@program(MEMORY, lambda: (leaf(4, 6),))
def splits_of_input(x: Tensor) -> tuple[Tensor, ...]:
    return x.split([1, 3], dim=0)


@program(MEMORY, lambda: (leaf(3, 4),))
def unbound_rows(x: Tensor) -> tuple[Tensor, ...]:
    return x.cos().unbind(0)


@program(MEMORY, lambda: (leaf(4, 6),))
def split_used_and_returned(x: Tensor) -> Tensor:
    a, b = x.split(3, dim=1)
    return a * b + b.sin()


@program(MEMORY, lambda: (leaf(3, 4),))
def real_as_view(x: Tensor) -> Tensor:
    return x.diagonal().view(-1, 1)


# --- Changes inside -------------------------------------------------------------------------------


@program(MEMORY, lambda: (leaf(3, 4),))
def change_view_of_intermediate(x: Tensor) -> Tensor:
    y = x * 2
    y[0].mul_(3)
    y[:, 1:3].sigmoid_()
    return y


@program(MEMORY, lambda: (leaf(3, 4),))
def change_base_then_read_view(x: Tensor) -> Tensor:
    y = x * 2
    row = y[1]
    y.add_(1)
    return row * 3


@program(MEMORY, lambda: (leaf(4, 6),))
def change_one_chunk(x: Tensor) -> Tensor:
    y = x.clone()
    first, second = y[:2], y[2:]
    first.add_(second)
    return y * 2


@program(MEMORY, lambda: (leaf(5, 3), indices(5, 4)))
def index_put(x: Tensor, index: Tensor) -> Tensor:
    y = x.clone()
    y[index] = 1.5
    y[index, 0] += x[0, 1]
    return y.index_put((index,), x[:4], accumulate=True)


@program(MEMORY, lambda: (computed(5, 3), leaf(5, 3), indices(5, 5, 3)))
def scatter_into_input(x: Tensor, values: Tensor, index: Tensor) -> Tensor:
    x.scatter_(0, index, values)
    return x.scatter_add(0, index, values * 2)


@program(MEMORY, lambda: (leaf(3, 4), plain(3, 4)))
def masked_fill_in_place(x: Tensor, y: Tensor) -> Tensor:
    z = x * 2
    z.masked_fill_(y > 0, -1.0)
    return z


@program(MEMORY, lambda: (computed(3, 4), plain(3, 4)))
def masked_assignment_to_input(x: Tensor, y: Tensor) -> Tensor:
    x[y > 0] = 0.0
    return x * y


@program(MEMORY, lambda: (leaf(3, 4),))
def filled_step_by_step(x: Tensor) -> Tensor:
    out = torch.zeros(3, 4)
    for i in range(3):
        out[i] = x[i] * i
    return out


@program(MEMORY, lambda: (leaf(3, 4),))
def into_new_empty(x: Tensor) -> Tensor:
    out = torch.empty(4, 3)
    out.copy_(x.t())
    return out * 2


@program(MEMORY, lambda: (plain(3, 4), plain(3, 4)))
def out_argument(x: Tensor, y: Tensor) -> Tensor:
    torch.mul(x, y, out=y)
    return y + 1


@program(MEMORY, lambda: (leaf(4, 3),))
def transposed_in_place_inside(x: Tensor) -> Tensor:
    y = x * 2
    y.t_()
    y.unsqueeze_(0)
    return y


# --- Inputs that share memory ---------------------------------------------------------------------


def _same_twice() -> tuple[Any, ...]:
    x = leaf(3, 4)
    return x, x


@program(MEMORY, _same_twice)
def same_input_twice(x: Tensor, y: Tensor) -> Tensor:
    return x * y.sin()


def _same_computed_twice() -> tuple[Any, ...]:
    x = computed(3, 4)
    return x, x


@program(MEMORY, _same_computed_twice)
def same_input_twice_changed(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    x.mul_(2)
    return y + 1, x


def _overlapping() -> tuple[Any, ...]:
    base = plain(5, 4)
    return base[:3], base[1:4]


@program(MEMORY, _overlapping)
def inputs_that_overlap(x: Tensor, y: Tensor) -> Tensor:
    return x * y


@program(MEMORY, _overlapping)
def change_input_that_overlaps(x: Tensor, y: Tensor) -> Tensor:
    x.mul_(2)
    return x + y


def _halves_with_grad() -> tuple[Any, ...]:
    base = computed(6, 4)
    return base[:3], base[3:]


@program(MEMORY, _halves_with_grad)
def two_halves(x: Tensor, y: Tensor) -> Tensor:
    return x * y


@program(MEMORY, lambda: (leaf(1, 4).expand(3, 4), plain(1).expand(4)))
def expanded_inputs(x: Tensor, y: Tensor) -> Tensor:
    return (x * y).cumsum(0)


@program(MEMORY, lambda: (leaf(3, 1),))
def expand_and_return(x: Tensor) -> Tensor:
    return x.expand(3, 5)
