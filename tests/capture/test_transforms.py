"""Functions of torch that take functions: transforms of torch.func, control flow, checkpoints.

A transform is one call in the graph, made as in eager every time; what it calls back is followed,
to see that it only computes.
"""

from __future__ import annotations

import functools

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import assay
from capture.harness import call, data, program

FACTOR = 3.0


def scaled_sine(x, factor):
    return (x.sin() * factor).sum()


@program(call(data(3, 4)), call(data(3, 4)), call(data(2, 5)), graphs=1, breaks=0,
         backends=("eager",))  # fmt: skip
def test_vmap(x):
    y = x * 2
    return torch.vmap(lambda row: row * row.sum())(y) + 1


@program(call(data(3, 4), data(4)), call(data(3, 4), data(4)), call(data(3, 4), data(4)))
def test_vmap_with_a_tensor_of_the_graph_in_its_closure(x, y):
    z = y.exp()
    return torch.vmap(lambda row: (row * z).sum())(x), torch.func.vmap(torch.dot, (0, None))(x, z)


@program(call(data(4), 2.0), call(data(4), 2.0), call(data(4), 3.0))
def test_grad(x, factor):
    gradient = torch.func.grad(lambda v: scaled_sine(v, factor))(x)
    both = torch.func.grad_and_value(functools.partial(scaled_sine, factor=factor))(x)
    return gradient, both


@program(call(data(3)), call(data(3)), call(data(3)))
def test_nested(x):
    jacobian = torch.func.jacrev(lambda v: v.sin() * v.sum())(x)
    forward = torch.func.jacfwd(torch.sin)(x)
    hessian = torch.func.hessian(lambda v: (v**3).sum())(x)
    per_sample = torch.vmap(torch.func.grad(lambda v: v.cos().sum()))(x[None] * x[:, None])
    value, tangent = torch.func.jvp(lambda v: {"a": v.exp()}, (x,), (x,))
    return jacobian, forward, hessian, per_sample, value, tangent["a"]


@program
def test_what_they_read_is_guarded():
    global FACTOR
    FACTOR = 3.0
    layer = nn.Linear(4, 2)

    def compute(x):
        return torch.vmap(lambda row: layer(row) * FACTOR)(x)

    yield compute
    x = data(3, 4, grad=True)
    yield call(x)
    FACTOR = 4.0
    yield call(x)
    layer.weight.data.mul_(2)
    yield call(x)
    layer.forward = lambda row: row[:1]
    yield call(x)


@program
def test_what_they_change_is_changed():
    seen = []

    def compute(x):
        count = 0

        def row_sum(row):
            nonlocal count
            count += 1
            seen.append(count)
            return row.sum()

        return torch.vmap(row_sum)(x) + count

    yield compute
    for _ in range(3):
        yield call(data(2, 3))


@program
def test_variables_that_change_after_the_call():
    def compute(x):
        factor = 2.0
        scale = lambda row: row * factor
        first = torch.vmap(scale)(x)
        factor = 5.0
        return first, torch.vmap(scale)(x)

    yield compute
    for _ in range(3):
        yield call(data(2, 3))


@program(call(data(3)), call(data(3)), call(-data(3).abs()), call(data(3).abs()))
def test_cond(x):
    y = x + 1
    chosen = torch.cond(y.sum() > 1, lambda v: v.sin() * y, lambda v: v.cos(), (x,))
    return chosen, torch.cond(x.shape[0] > 2, torch.sin, torch.cos, (x,))


@program(call(torch.tensor(3)), call(torch.tensor(5)), call(torch.tensor(0)))
def test_while_loop(n):
    from torch._higher_order_ops.while_loop import while_loop

    return while_loop(lambda i, s: i > 0, lambda i, s: (i - 1, s + i), (n, torch.tensor(0)))


@program(call(data(3, 2)), call(data(3, 2)), call(data(3, 2)))
def test_map_and_scan(x):
    from functorch.experimental.control_flow import map
    from torch._higher_order_ops.scan import scan

    last, sums = scan(lambda carry, row: (carry + row, carry * row), torch.zeros(2), x)
    return map(lambda row, y: row + y, x, x[0].clone()), last, sums


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.calls = 0

    def forward(self, x, counts=False):
        if counts:
            self.calls += 1
        return torch.nn.functional.dropout(self.linear(x).relu(), 0.5, self.training)


@program
def test_checkpoint():
    block = Block()

    def compute(x):
        return checkpoint(block, x * 2, use_reentrant=False).sin()

    yield compute
    for _ in range(3):
        yield call(data(3, 4, grad=True))


@program
def test_checkpoint_of_what_has_effects():
    block = Block()

    def compute(x):
        return checkpoint(block, x, True, use_reentrant=False)

    yield compute
    for _ in range(3):
        yield call(data(3, 4, grad=True))


def test_a_checkpoint_is_no_break() -> None:
    block = Block().eval()
    compiled = assay.compile(
        lambda x: checkpoint(block, x, use_reentrant=False) + 1, backend="eager", fullgraph=True
    )
    x = torch.randn(2, 4, requires_grad=True)
    torch.testing.assert_close(compiled(x), block(x) + 1)


def test_a_break_inside_names_the_line() -> None:
    def prints(row):
        print(row)  # breaks here
        return row

    compiled = assay.compile(lambda x: torch.vmap(prints)(x), backend="eager", fullgraph=True)
    with pytest.raises(assay.Unsupported, match="breaks here"):
        compiled(torch.randn(2, 3))


@program
def test_gradients_with_other_parameters_of_a_module():
    layer = nn.Linear(4, 2)

    def loss(parameters, row):
        return torch.func.functional_call(layer, parameters, (row,)).square().sum()

    def compute(x):
        parameters = {name: value.detach() for name, value in layer.named_parameters()}
        per_sample = torch.vmap(torch.func.grad(loss), in_dims=(None, 0))(parameters, x)
        return torch.func.grad(loss)(parameters, x), per_sample

    yield compute
    for _ in range(3):
        yield call(data(3, 4))


@program(call(data(3, 4)), call(data(3, 4)), call(data(3, 4)))
def test_random_numbers(x):
    dropped = torch.vmap(torch.nn.functional.dropout, randomness="different")(x)
    return dropped, torch.vmap(lambda row: row * torch.rand(()), randomness="same")(x)


def test_paranoid_runs_compare_calls_of_python() -> None:
    with assay.config.patch(paranoid=True):
        compiled = assay.compile(lambda x: torch.vmap(lambda row: row * 2)(x), backend="eager")
        for _ in range(3):
            assert compiled(torch.ones(2, 2)).sum().item() == 8
