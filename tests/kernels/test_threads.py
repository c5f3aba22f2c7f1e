"""Kernels that do not need each other run side by side; the number of threads changes no bit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

import assay

THREADS = (1, 2, 3, 5)


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def update(*tensors: Tensor) -> list[Tensor]:
    """What an optimizer does: as many kernels as there are parameters."""
    made = []
    for i in range(0, len(tensors), 2):
        value, gradient = tensors[i : i + 2]
        made += [value - 0.1 * gradient / (gradient * gradient + 1e-3).sqrt(), gradient * 0.9]
    return made


def rows_and_columns(x: Tensor, y: Tensor, z: Tensor) -> list[Tensor]:
    return [x.softmax(1), y.sum(0), (z - z.mean(1, keepdim=True)).exp(), x.t() + y]


def chains(x: Tensor, y: Tensor, z: Tensor) -> list[Tensor]:
    """Intermediates whose places in the arena are used again and again."""
    for _ in range(4):
        x, y, z = x.softmax(1) * y.mean(0), y.softmax(0) + x.mean(1), z.cumsum(1) * 0.01 - x
    return [x, y, z]


def many(count: int) -> list[Tensor]:
    sizes = [(300, 200), (7,), (64, 64), (1000,), (513, 77)] * 3
    return [torch.randn(size) for size in sizes[:count] for _ in range(2)]


PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[[], list[Tensor]]]] = {
    "update": (update, lambda: many(15)),
    "two": (update, lambda: many(2)),
    "rows and columns": (rows_and_columns, lambda: [torch.randn(256, 256) for _ in range(3)]),
    "chains": (chains, lambda: [torch.randn(256, 256) for _ in range(3)]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_threads_change_no_bit(name: str) -> None:
    torch.manual_seed(0)
    call, make = PROGRAMS[name]
    inputs = make()
    compiled = assay.aot.compile(call, backend="native")
    found = []
    for count in THREADS:
        torch.set_num_threads(count)
        found.append(compiled(*inputs))
    torch.testing.assert_close(list(found[0]), call(*inputs), rtol=1e-4, atol=1e-4)
    for other in found[1:]:
        torch.testing.assert_close(list(other), list(found[0]), rtol=0, atol=0)


def test_an_index_out_of_range_raises_beside_other_kernels() -> None:
    def run(table: Tensor, ids: Tensor, x: Tensor, y: Tensor) -> Any:
        return x.sin(), table[ids].cos(), y.exp()

    inputs = [torch.randn(10, 300), torch.randint(0, 10, (400,)), *many(1)]
    compiled = assay.aot.compile(run, backend="native")
    torch.set_num_threads(2)
    torch.testing.assert_close(compiled(*inputs), run(*inputs))
    inputs[1][3] = 10
    with pytest.raises(assay.OperatorError, match="out of bounds"):
        compiled(*inputs)
