"""Sizes that depend on values: with fullgraph=True they are in the graph, and nothing may be known
of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import assay
from capture import engine


def positions(x: torch.Tensor) -> torch.Tensor:
    return x.nonzero() + 1


def masked(x: torch.Tensor) -> torch.Tensor:
    return x[x > 0] * 2


def selected(x: torch.Tensor) -> torch.Tensor:
    return torch.masked_select(x, x > 0).sum()


def different(x: torch.Tensor) -> torch.Tensor:
    return torch.unique((x * 2).int()) * 3


def different_with_inverse(x: torch.Tensor) -> Any:
    values, inverse = torch.unique((x * 2).int(), return_inverse=True)
    return values[inverse] + inverse


def by_condition(x: torch.Tensor) -> Any:
    rows, columns = torch.where(x > 0)
    return rows * 2, x[rows, columns]


def counted(x: torch.Tensor) -> torch.Tensor:
    return torch.bincount((x > 0).int().view(-1)).float().mean()


def squeezed(x: torch.Tensor) -> torch.Tensor:
    return (x.sum(0) > 0).nonzero().squeeze() * 2


def sorted_mask(x: torch.Tensor) -> Any:
    values, order = x[x > 0].sort(descending=True)
    return values + 1, order


def like_it(x: torch.Tensor) -> Any:
    y = x[x > 0]
    return torch.ones_like(y) + y, y.dtype == torch.float32, y.requires_grad


def concatenated(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([x[x > 0], x[x <= 0], x.view(-1)])


def written_back(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[y > 0] = x[x > 0] * 5
    return y + 1


def one_hot(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.one_hot((x > 0).long()).sum()


def from_values(x: torch.Tensor) -> torch.Tensor:
    return torch.tensor([x.detach().sum(), 2.0]) * 3


def repeated(x: torch.Tensor) -> torch.Tensor:
    return x.view(-1).repeat_interleave((x > 0).long().view(-1)) + 1


def inputs() -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    made = [torch.randn(3, 4, generator=generator) for _ in range(4)]
    return [*made, torch.ones(3, 4), -torch.ones(3, 4)]


FUNCTIONS: list[Callable[[torch.Tensor], Any]] = [
    positions,
    masked,
    selected,
    different,
    different_with_inverse,
    by_condition,
    counted,
    squeezed,
    sorted_mask,
    like_it,
    concatenated,
    written_back,
    one_hot,
    repeated,
    from_values,
]


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_as_eager(function: Callable[[torch.Tensor], Any], backend: str, grad: bool) -> None:
    engine.reset()
    compiled = assay.compile(function, backend=backend, fullgraph=True)
    for x in inputs():
        x.requires_grad_(grad)
        y = x.detach().clone().requires_grad_(grad)
        expected, actual = function(x), compiled(y)
        torch.testing.assert_close(actual, expected)
        for one, other in ((expected, x), (actual, y)):
            first = one[0] if isinstance(one, tuple) else one
            if first.requires_grad:
                first.sum().backward()
            del other
        assert (x.grad is None) == (y.grad is None)
        if x.grad is not None:
            torch.testing.assert_close(y.grad, x.grad)


def reads_shape(x: torch.Tensor) -> Any:
    return x + x[x > 0].shape[0]


def reads_size(x: torch.Tensor) -> Any:
    return x + x.nonzero().size(0)


def reads_length(x: torch.Tensor) -> Any:
    return x + len(x[x > 0])


def reads_numel(x: torch.Tensor) -> Any:
    return x + x[x > 0].numel()


def reads_dimensions(x: torch.Tensor) -> Any:
    return x + x.nonzero().squeeze().ndim


def loops(x: torch.Tensor) -> Any:
    return sum(row.sum() for row in x.nonzero())


def unpacks(x: torch.Tensor) -> Any:
    return list((x[x > 0] * 2).unbind())


def splits(x: torch.Tensor) -> Any:
    return x[x > 0].split(2)


def sized_by_values(x: torch.Tensor) -> torch.Tensor:
    count = (x > 0).sum()
    return x.view(-1)[:count] * 2


def counted_range(x: torch.Tensor) -> torch.Tensor:
    return torch.arange((x > 0).sum()) * 2


def splits_by_values(x: torch.Tensor) -> Any:
    return x.view(-1).tensor_split((x > 0).sum().view(1).clamp(1, 5).repeat(2))


def splits_into(x: torch.Tensor) -> Any:
    return x.view(-1).tensor_split((x > 0).sum().clamp(1, 3))


def makes_list(x: torch.Tensor) -> Any:
    return x[x > 0].tolist()


def is_contiguous(x: torch.Tensor) -> Any:
    return x.nonzero().t().is_contiguous()


def writes_to_out(x: torch.Tensor) -> Any:
    out = torch.empty(0)
    torch.mul(x[x > 0], 2, out=out)
    return out.shape


READERS = [
    reads_shape,
    reads_size,
    reads_length,
    reads_numel,
    reads_dimensions,
    loops,
    unpacks,
    splits,
    splits_by_values,
    splits_into,
    sized_by_values,
    counted_range,
    makes_list,
    is_contiguous,
    writes_to_out,
]


@pytest.mark.parametrize("function", READERS)
def test_who_looks_at_the_size_breaks(function: Callable[[torch.Tensor], Any]) -> None:
    with pytest.raises(assay.Unsupported):
        assay.compile(function, backend="eager", fullgraph=True)(inputs()[0])
    compiled = assay.compile(function, backend="eager")
    for x in inputs():
        torch.testing.assert_close(compiled(x.clone()), function(x))


def test_a_graph_that_may_break_does() -> None:
    assert assay.explain(positions)(inputs()[0]).graph_break_count == 1
