"""Hooks on tensors, and tensors whose own dimensions move in place."""

from __future__ import annotations

import pytest
import torch

import assay
from capture.harness import call, data, program


def doubled(grad):
    return grad * 2


@program(call(data(3, grad=True)), call(data(3, grad=True)), call(data(3, grad=True)))
def test_hooks_of_new_tensors(x):
    y = x * 2
    y.register_hook(lambda grad: grad * 3)
    z = y.sin()
    z.register_hook(doubled)
    return z


@program(call(data(3, grad=True)), call(data(3, grad=True)), call(data(3, grad=True)))
def test_hooks_of_inputs(x):
    x.register_hook(doubled)
    return x.sin()


@program(call(data(3, grad=True)), call(data(3, grad=True)), call(data(3, grad=True)))
def test_hooks_that_share_variables(x):
    seen = []
    factor = 2
    y = x * 2
    y.register_hook(lambda grad: seen.append(1) or grad * factor)
    factor = 5
    return y.sin(), seen


@program(call(data(3, grad=True)), call(data(3, grad=True)), call(data(3, grad=True)))
def test_hooks_that_are_removed(x):
    y = x * 2
    first = y.register_hook(doubled)
    first.remove()
    handle = x.register_hook(doubled)
    return y.sin(), handle.id > 0


def test_a_hook_is_no_break() -> None:
    def compute(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        y.register_hook(doubled)
        return y.sum()

    compiled = assay.compile(compute, backend="eager", fullgraph=True)
    for _ in range(2):
        x = torch.ones(2, requires_grad=True)
        compiled(x).backward()
        assert x.grad is not None and x.grad.tolist() == [4, 4]


@program(call(data(3, 4)), call(data(3, 4)), call(data(1, 4)), call(data(2, 4)))
def test_dimensions_that_move_in_place(x):
    y = x + 1
    z = y.view(-1)
    y.unsqueeze_(0).transpose_(0, 1)
    z.mul_(2)
    x.squeeze_() if x.shape[0] == 1 else None
    return y, y.shape, z, x.t_() if x.dim() == 2 else x


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "native"])
@pytest.mark.parametrize("breaks_before", [False, True])
@pytest.mark.parametrize("keeps", [False, True])
def test_gradients_that_are_seen_inside(backend: str, breaks_before: bool, keeps: bool) -> None:
    """A hook gets the gradient of all that was computed from its tensor, before and after."""

    def f(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x * 2
        z = y.sin()
        if breaks_before:
            assay.graph_break()
        if keeps:
            y.retain_grad()
        y.register_hook(lambda gradient: gradient * 10)
        return z + y, y

    compiled = assay.compile(f, backend=backend)
    for _ in range(3):
        x = torch.randn(3, requires_grad=True)
        expected = x.detach().clone().requires_grad_()
        (result, y), (wanted, hooked) = compiled(x), f(expected)
        result.sum().backward()
        wanted.sum().backward()
        torch.testing.assert_close(x.grad, expected.grad)
        if keeps:
            torch.testing.assert_close(y.grad, hooked.grad)
