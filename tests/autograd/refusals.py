"""Programs that no graph can hold: each with words of the error that says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from autograd.compare import Make, computed, indices, leaf, plain


@dataclass(frozen=True)
class Refusal:
    """A program, a recipe for its inputs, and a pattern that the error's message matches."""

    program: Callable[..., Any]
    make: Make
    words: str


REFUSALS: dict[str, Refusal] = {}


def refused(words: str, make: Make) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enters the decorated function in `REFUSALS`."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        assert function.__name__ not in REFUSALS
        REFUSALS[function.__name__] = Refusal(function, make, words)
        return function

    return enter


# --- Values ---------------------------------------------------------------------------------------

READS = "reads the value"
SIZES = "depends on the values of its arguments"


@refused(READS, lambda: (leaf(3, 4),))
def item(x: Tensor) -> Tensor:
    return x * x.sum().item()


@refused(READS, lambda: (leaf(3, 4),))
def number_of_tensor(x: Tensor) -> Tensor:
    return x * float(x.detach().max())


@refused(READS, lambda: (leaf(3, 4),))
def branch(x: Tensor) -> Tensor:
    return x * 2 if x.sum() > 0 else x * 3


@refused(READS, lambda: (leaf(3, 4),))
def branch_in_try(x: Tensor) -> Tensor:
    try:
        return x * x.sum().item()
    except ValueError:
        return x


@refused(READS, lambda: (leaf(3, 4),))
def equal(x: Tensor) -> Tensor:
    return x * 2 if torch.equal(x, x) else x


@refused(READS, lambda: (leaf(3, 4),))
def allclose(x: Tensor) -> Tensor:
    return x * 2 if torch.allclose(x, x) else x


@refused(READS, lambda: (leaf(3, 4),))
def to_list(x: Tensor) -> Tensor:
    return x * x.detach().tolist()[0][0]


@refused(READS, lambda: (leaf(3, 4),))
def to_numpy(x: Tensor) -> Tensor:
    return x * float(x.detach().numpy().max())


@refused(READS, lambda: (leaf(3, 4),))
def address(x: Tensor) -> Tensor:
    return x * (2 if x.data_ptr() else 3)


@refused(READS, lambda: (leaf(3, 4), indices(3, 2)))
def index_as_number(x: Tensor, index: Tensor) -> Tensor:
    return x[int(index[0]) :]


@refused(READS, lambda: (leaf(6, 4), torch.tensor([1, 3])))
def split_by_tensor(x: Tensor, index: Tensor) -> Any:
    return torch.tensor_split(x, index)


@refused(f"{READS}|{SIZES}", lambda: (plain(3, 4),))
def print_tensor(x: Tensor) -> Tensor:
    str(x)
    return x * 2


@refused(SIZES, lambda: (plain(3, 4),))
def nonzero(x: Tensor) -> Tensor:
    return torch.nonzero(x > 0)


@refused(SIZES, lambda: (leaf(3, 4),))
def indexed_by_mask(x: Tensor) -> Tensor:
    return x[x > 0] * 2


@refused(SIZES, lambda: (leaf(3, 4),))
def masked_select(x: Tensor) -> Tensor:
    return x.masked_select(x > 0)


@refused(SIZES, lambda: (indices(3, 8),))
def unique(x: Tensor) -> Tensor:
    return torch.unique(x)


@refused(SIZES, lambda: (plain(3, 4), indices(3, 3)))
def repeat_by_tensor(x: Tensor, times: Tensor) -> Tensor:
    return x.repeat_interleave(times, dim=0)


# --- Gradients ------------------------------------------------------------------------------------


@refused("backward", lambda: (leaf(3, 4),))
def backward_inside(x: Tensor) -> Tensor:
    loss = (x * x).sum()
    loss.backward()
    return loss.detach()


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad * 5


@refused("custom autograd function", lambda: (leaf(3, 4),))
def custom_function(x: Tensor) -> Tensor:
    return Doubled.apply(x) + 1


@refused("custom autograd function", lambda: (computed(3, 4),))
def custom_function_into_changed_input(x: Tensor) -> None:
    x.copy_(Doubled.apply(x.clone()))


@refused(r"requires_grad_\(\)", lambda: (plain(3, 4),))
def requires_grad_inside(x: Tensor) -> Tensor:
    return x.detach().requires_grad_() * 2


@refused("requires_grad", lambda: (plain(3, 4),))
def requires_grad_assigned(x: Tensor) -> Tensor:
    y = x.detach()
    y.requires_grad = True
    return y * 2


@refused("hook", lambda: (leaf(3, 4),))
def hook_on_intermediate(x: Tensor) -> Tensor:
    y = x * 2
    y.register_hook(lambda grad: grad * 3)
    return y.sin()


@refused("gradient of an intermediate", lambda: (leaf(3, 4),))
def retained_gradient(x: Tensor) -> Tensor:
    y = x * 2
    y.retain_grad()
    return y.sin()


@refused("replaces the data", lambda: (plain(3, 4),))
def data_assigned(x: Tensor) -> Tensor:
    y = x.clone()
    y.data = torch.ones(2)
    return y * 2


@refused("sets the gradient", lambda: (leaf(3, 4),))
def gradient_assigned(x: Tensor) -> Tensor:
    x.grad = torch.ones(3, 4)
    return x * 2


@refused("changes grad mode", lambda: (leaf(3, 4),))
def gradients_left_off(x: Tensor) -> Tensor:
    torch.set_grad_enabled(False)
    return x * 2


@refused("torch.func transform", lambda: (plain(3, 4),))
def vmap_inside(x: Tensor) -> Tensor:
    return torch.vmap(lambda row: row.sin().sum())(x)


@refused(r"torch.func transform|requires_grad_\(\)", lambda: (plain(3, 4),))
def func_grad_inside(x: Tensor) -> Tensor:
    return torch.func.grad(lambda y: y.sin().sum())(x)


@refused("sparse", lambda: (indices(5, 3), leaf(5, 4)))
def sparse_gradient(index: Tensor, weight: Tensor) -> Tensor:
    return F.embedding(index, weight, sparse=True)


# --- Random numbers -------------------------------------------------------------------------------


@refused("seeds the random generator", lambda: (leaf(3, 4),))
def seed_inside(x: Tensor) -> Tensor:
    torch.manual_seed(3)
    return x * torch.rand(4)


@refused("enerator", lambda: (leaf(3, 4),))
def own_generator(x: Tensor) -> Tensor:
    return x * torch.rand(4, generator=torch.Generator().manual_seed(3))


# --- Inputs and results ---------------------------------------------------------------------------


@refused("sparse", lambda: (plain(3, 4).to_sparse(),))
def sparse_input(x: Tensor) -> Tensor:
    return x.to_dense() * 2


@refused("sparse", lambda: (plain(3, 4),))
def sparse_result(x: Tensor) -> Tensor:
    return x.to_sparse()


@refused("complex", lambda: (torch.complex(plain(3), plain(3)),))
def complex_input(x: Tensor) -> Tensor:
    return x.abs()


@refused("nested", lambda: (torch.nested.nested_tensor([plain(2), plain(3)]),))
def nested_input(x: Tensor) -> Tensor:
    return torch.nested.to_padded_tensor(x, 0.0)


@refused("meta", lambda: (torch.empty(3, device="meta"),))
def meta_input(x: Tensor) -> Tensor:
    return torch.ones(x.shape)


@refused("quantized", lambda: (torch.quantize_per_tensor(plain(3), 0.1, 0, torch.qint8),))
def quantized_input(x: Tensor) -> Tensor:
    return x.dequantize()


class Wrapped(torch.Tensor):
    """A tensor that holds another."""

    @staticmethod
    def __new__(cls, inner: Tensor) -> Any:
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner: Tensor) -> None:
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        inner = [arg.inner if isinstance(arg, Wrapped) else arg for arg in args]
        return func(*inner, **(kwargs or {}))


@refused("subclass", lambda: (Wrapped(plain(3)),))
def subclass_input(x: Tensor) -> Tensor:
    return x * 2


@refused("lazy", lambda: (torch.complex(plain(3), plain(3)).conj().imag,))
def lazy_negative_input(x: Tensor) -> Tensor:
    return x * 2


@refused("size, strides or storage of input", lambda: (plain(3, 4),))
def input_transposed_in_place(x: Tensor) -> Tensor:
    x.t_()
    return x * 2


@refused("size, strides or storage of input", lambda: (plain(3, 4),))
def input_resized(x: Tensor) -> Tensor:
    x.resize_(2, 2)
    return x * 2


class Answer:
    """No tensor, number or container."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Answer)


@refused("cannot return|returns a", lambda: (plain(3),))
def object_as_result(x: Tensor) -> Any:
    return x * 2, Answer()


# --- Memory that inputs share ---------------------------------------------------------------------


def _halves() -> tuple[Any, ...]:
    base = computed(6, 4)
    return base[:3], base[3:]


@refused("share memory that the program changes", _halves)
def change_one_half(x: Tensor, y: Tensor) -> Tensor:
    x.mul_(2)
    return x * y


def _base_and_view() -> tuple[Any, ...]:
    base = computed(3, 4)
    return base, base[0]


@refused("share memory that the program changes", _base_and_view)
def change_base_read_view(x: Tensor, row: Tensor) -> Tensor:
    x.add_(1)
    return row * 2
