"""Graphs with a gradient that is written in Python: what lies around it is compiled.

PYTEST_DONT_REWRITE: the programs' assertions are to be plain ones."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import assay
from capture.harness import call, data, program


class Rounded(torch.autograd.Function):
    """Straight through: as quantized models are trained."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, steps: float) -> torch.Tensor:
        ctx.save_for_backward(x)
        return torch.round(x * steps) / steps

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return gradient * (x.abs() < 1), None


class Halves(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> Any:
        return x[:1] * 2, x[1:] * 3

    @staticmethod
    def backward(ctx: Any, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        return torch.cat([first * 20, second * 30])


BACKENDS = ("aot_eager", "native")


@program(*[call(data(4, 3, grad=True)) for _ in range(4)], backends=BACKENDS, tolerance=True)
def test_between_operators(x):
    y = Rounded.apply(x.sin() * 2, 4.0)
    return Rounded.apply(y.cos() + x, 8.0).tanh()


@program(*[call(data(4, 3, grad=True)) for _ in range(4)], backends=BACKENDS, tolerance=True)
def test_several_results(x):
    first, second = Halves.apply(x.exp())
    return first.sin(), second.cos() + first, x.sin()


@program(*[call(data(4, 3, grad=True)) for _ in range(4)], backends=BACKENDS, tolerance=True)
def test_views_and_writes_on_both_sides(x):
    y = x * 2
    view = y.view(-1)
    z = Rounded.apply(y + 1, 4.0)
    view.mul_(3)
    return y + z, view


@program(*[call(data(4, 3, grad=True)) for _ in range(4)], backends=BACKENDS, tolerance=True)
def test_without_gradients_before(x):
    with torch.no_grad():
        scale = x.abs().mean()
    y = Rounded.apply(x / scale, 4.0)
    with torch.no_grad():
        error = (y - x).norm()
    return y * scale, error


@program(*[call(data(4, 3, grad=True)) for _ in range(3)], backends=BACKENDS, tolerance=True)
def test_random_numbers_on_both_sides(x):
    y = torch.nn.functional.dropout(x, 0.5)
    return torch.rand_like(Rounded.apply(y, 4.0)) + y


@program(*[call(data(n, 3, grad=True)) for n in (4, 2, 5, 5, 4)], backends=BACKENDS, tolerance=True)
def test_other_sizes(x):
    return Rounded.apply(x.sin() * x.shape[0], 4.0).cos()


def model(x: torch.Tensor) -> torch.Tensor:
    return Rounded.apply(torch.nn.functional.gelu(x.sin()) * 2, 4.0).exp().sum()


def test_kernels_are_made(capfd: pytest.CaptureFixture[str]) -> None:
    assay.reset()
    compiled = assay.compile(model, backend="native")
    assay.set_logs("schedule")
    try:
        for _ in range(2):
            compiled(torch.randn(8, 8, requires_grad=True)).backward()
    finally:
        assay.set_logs("")
    text = capfd.readouterr().err
    assert text.count("kernel fused") >= 3
    assert "runs with backend eager" not in text


def under_no_grad(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    with torch.no_grad():
        z = Rounded.apply(y, 4.0)
    return Rounded.apply(y, 2.0) + z.cos()


def test_a_call_in_another_mode_keeps_the_graph_whole() -> None:
    assay.reset()
    compiled = assay.compile(under_no_grad, backend="aot_eager")
    for _ in range(3):
        x = torch.randn(3, requires_grad=True)
        y = x.detach().clone().requires_grad_()
        compiled(x).sum().backward()
        under_no_grad(y).sum().backward()
        assert torch.equal(x.grad, y.grad)


# A graph that ends at a break is cut behind tensors that the program still has. What an operator
# returns as a tuple is taken apart before the cut.


@program(*[call(data(4, 6, grad=True)) for _ in range(4)], backends=BACKENDS, tolerance=True)
def test_parts_of_a_tuple_on_both_sides_of_a_cut(x):
    first, second, third = (x * 2).chunk(3, 1)
    total = first.sin().sum()
    assay.graph_break()
    return total * second.cos() + first + third


@program(*[call(data(4, 6, grad=True)) for _ in range(4)], backends=BACKENDS, tolerance=True)
def test_values_and_indices_on_both_sides_of_a_cut(x):
    values, indices = x.sin().max(1)
    total = values.exp()
    assay.graph_break()
    return total + values, indices


@program(*[call(data(4, 6, grad=True)) for _ in range(4)], backends=BACKENDS, tolerance=True)
def test_nested_tuples_on_both_sides_of_a_cut(x):
    torch.manual_seed(0)
    lstm = torch.nn.LSTM(6, 6)
    assay.graph_break()
    y, (h, c) = lstm(x.tanh())
    z = y.sin() * h
    assay.graph_break()
    return z + y + c, h


@program(
    *[call(data(4, 6, grad=True), float(k)) for k in (1, 2, 3, 4, 3)],
    backends=BACKENDS,
    tolerance=True,
)
def test_numbers_on_both_sides_of_a_cut(x, k):
    first, second = (x * k).split([2, 4], 1)
    total = first.sin().sum() * k
    assay.graph_break()
    return total * second + first.sum() + k


@program(
    call(data(3).abs()), call(data(3).abs()), call(-data(3).abs()), call(data(3).abs()), breaks=0
)
def test_an_assertion_about_values(x):
    assert (x >= 0).all(), "negative"
    return x.sqrt()


@program(call(data(3).abs()), call(data(3).abs()), call(-data(3).abs()), breaks=0)
def test_an_assertion_that_is_handled(x):
    try:
        assert (x >= 0).all()
    except AssertionError:
        return x - 1
    return x + 1
