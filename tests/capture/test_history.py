"""Inputs that take part in autograd and are changed in place: values, gradients and history."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import assay

Inputs = tuple[Tensor, ...]


def a_result(x: Tensor, w: Tensor) -> Inputs:
    return x * 1, w


def a_result_and_its_row(x: Tensor, w: Tensor) -> Inputs:
    h = x * 1
    return h, w, h[0]


def a_row_and_its_base(x: Tensor, w: Tensor) -> Inputs:
    h = x * 1
    return h[1], w, h


def a_flat_view(x: Tensor, w: Tensor) -> Inputs:
    h = x * 1
    return h, w, h.view(-1)


def a_transposed_view(x: Tensor, w: Tensor) -> Inputs:
    return (x * 1).t(), w


def one_of_many_views(x: Tensor, w: Tensor) -> Inputs:
    return x.unbind(0)[0], w


def a_buffer(x: Tensor, w: Tensor) -> Inputs:
    return torch.zeros_like(x), w


def half_precision(x: Tensor, w: Tensor) -> Inputs:
    return x.bfloat16() * 1, w


def adds(h: Tensor, w: Tensor) -> Tensor:
    return h.add_(w * 2).sin()


def multiplies_by_itself(h: Tensor, w: Tensor) -> Tensor:
    return h.mul_(w).mul_(h)


def changes_a_row(h: Tensor, w: Tensor) -> Tensor:
    h[0].mul_(w)
    return h * w


def changes_many_places(h: Tensor, w: Tensor) -> Tensor:
    for i in range(3):
        h[i].add_(w)
    h[:, 1].sigmoid_()
    return h


def reads_a_view_made_before(h: Tensor, w: Tensor) -> Tensor:
    v = h.view(3, 4)
    h.add_(1)
    v.mul_(w[0])
    return v


def changes_and_returns_nothing_else(h: Tensor, w: Tensor) -> Tensor:
    h.relu_()
    return w * 1


def without_history(h: Tensor, w: Tensor) -> Tensor:
    with torch.no_grad():
        h.mul_(2)
    return h * w


def with_and_without_history(h: Tensor, w: Tensor) -> Tensor:
    h.add_(w)
    with torch.no_grad():
        h.mul_(2)
    return h * 3


def overwrites(h: Tensor, w: Tensor) -> Tensor:
    h.copy_(w)
    return h * 2


def accumulates(h: Tensor, w: Tensor) -> Tensor:
    h.index_add_(0, torch.tensor([0, 1]), w.expand(2, 3))
    return h.sin()


def fills_by_value(h: Tensor, w: Tensor) -> Tensor:
    h.masked_fill_(h > 0, 1.0)
    return h.clamp_(min=-0.5) * w


def drops_out(h: Tensor, w: Tensor) -> Tensor:
    return F.dropout(h, 0.5, True, True) * w


def needs_what_was_overwritten(h: Tensor, w: Tensor) -> Tensor:
    before = h.sin()
    h.add_(w)
    return before * h


def detaches(h: Tensor, w: Tensor) -> Tensor:
    h.detach_()
    return h * w


def changes_the_first(h: Tensor, w: Tensor, alias: Tensor) -> Tensor:
    h.mul_(w)
    return alias * 2


def changes_the_other(h: Tensor, w: Tensor, alias: Tensor) -> Tensor:
    alias.mul_(2)
    h.add_(1)
    return alias.sin()


CASES = [
    (a_result, adds),
    (a_result, multiplies_by_itself),
    (a_result, changes_a_row),
    (a_result, changes_many_places),
    (a_result, reads_a_view_made_before),
    (a_result, changes_and_returns_nothing_else),
    (a_result, without_history),
    (a_result, with_and_without_history),
    (a_result, overwrites),
    (a_result, fills_by_value),
    (a_result, drops_out),
    (a_result, needs_what_was_overwritten),
    (a_result, detaches),
    (a_result_and_its_row, changes_the_first),
    (a_result_and_its_row, changes_the_other),
    (a_row_and_its_base, changes_the_first),
    (a_row_and_its_base, changes_the_other),
    (a_flat_view, changes_the_first),
    (a_flat_view, changes_the_other),
    (a_transposed_view, fills_by_value),
    (one_of_many_views, adds),
    (a_buffer, accumulates),
    (a_buffer, adds),
    (half_precision, adds),
]


def outcome(make: Callable[..., Inputs], function: Callable[..., Tensor]) -> Any:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(4, 3, generator=generator, requires_grad=True)
    w = torch.randn(3, generator=generator, requires_grad=True)
    torch.manual_seed(0)
    inputs = make(x, w)
    try:
        result = function(*inputs)
        loss = result.float().sum() + sum((t.float().sin().sum() for t in inputs), x.sum())
        loss.backward()
    except RuntimeError as error:
        return str(error)[:40]
    states = [(t.requires_grad, t.is_leaf, t._is_view(), t.stride()) for t in (*inputs, result)]
    return [loss.detach(), x.grad, w.grad], states


def names(case: tuple[Any, ...]) -> str:
    return "-".join(part.__name__ for part in case)


@pytest.mark.parametrize("backend", ["aot_eager", "native"])
@pytest.mark.parametrize("case", CASES, ids=names)
def test_changed_inputs_have_eagers_history(case: tuple[Any, ...], backend: str) -> None:
    make, function = case
    compiled = assay.compile(function, backend=backend)
    expected = outcome(make, function)
    for _ in range(3):
        found = outcome(make, compiled)
        if isinstance(expected, str):
            assert found == expected
            continue
        assert found[1] == expected[1]
        torch.testing.assert_close(found[0], expected[0])


def test_they_are_differentiated_ahead_of_time() -> None:
    for make, function in ((a_result, adds), (a_buffer, accumulates), (a_result, drops_out)):
        inputs = make(torch.randn(4, 3, requires_grad=True), torch.randn(3, requires_grad=True))
        found = assay.explain(assay.compile(function, backend="aot_eager"))(*inputs)
        assert found.eager_reasons == []
