"""Gradients asked for with ``create_graph=True`` and differentiated again are those of eager.

A compiled backward graph is not differentiable. The captured graph is run once more instead, by
autograd, on what the call kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import assay
from autograd.compare import SEED
from autograd.expected import MESSAGES
from autograd.test_op_db import EXPECTED
from conformance.op_programs import first_sample, no_seeds_inside, operators  # noqa: F401

BACKENDS = ["aot_eager", "aot_eager_decomp_partition", "native"]

# What a program and its leaves are turned into: tensors that must be equal.
Use = Callable[[Callable[..., Any], Sequence[Tensor]], list[Any]]


def _projected(results: Sequence[Tensor]) -> Tensor:
    """A number that depends on all of the results, differently on each element."""
    total = torch.zeros(())
    for i, result in enumerate(results):
        weights = torch.linspace(0.5, 1.5 + i, result.numel()).view(result.shape)
        total = total + (result.to(torch.float32) * weights).sum()
    return total


def _derivatives(program: Callable[..., Any], leaves: Sequence[Tensor], order: int) -> list[Any]:
    found: list[Any] = []
    results = program(*leaves)
    results = [results] if isinstance(results, Tensor) else list(results)
    for _ in range(order):
        results = [r for r in results if isinstance(r, Tensor) and r.requires_grad]
        if not results:
            break
        results = list(
            torch.autograd.grad(_projected(results), leaves, create_graph=True, allow_unused=True)
        )
        found += [None if r is None else r.detach() for r in results]
        results = [r for r in results if r is not None]
    return found


def _assert_as_eager(
    program: Callable[..., Any],
    make: Callable[[], Sequence[Tensor]],
    use: Use,
    backend: str,
    parameters: Sequence[Tensor] = (),
) -> None:
    outcomes = []
    for version in (program, assay.compile(program, backend=backend)):
        torch.manual_seed(SEED)
        found: list[Any] = []
        for _ in range(3):  # recorded, compiled, called
            for parameter in parameters:
                parameter.grad = None
            found += use(version, [t.clone().requires_grad_() for t in make()])
            found += [None if p.grad is None else p.grad.clone() for p in parameters]
        outcomes.append(found)
    torch.testing.assert_close(outcomes[1], outcomes[0])


def _numbers(*sizes: int) -> Tensor:
    count = int(torch.tensor(sizes).prod())
    return torch.linspace(-1.0, 1.3, count).view(sizes)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("order", [2, 3])
def test_of_views_and_detached_values(backend: str, order: int) -> None:
    def program(x: Tensor) -> tuple[Tensor, ...]:
        with torch.no_grad():
            scale = x.mean()
        return x.t().exp() * x.t().detach(), (x * scale).sin().view(-1)[1:], x.softmax(0)[:, :2]

    _assert_as_eager(
        program, lambda: [_numbers(3, 4)], lambda f, xs: _derivatives(f, xs, order), backend
    )


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_gradient_penalty(backend: str) -> None:
    torch.manual_seed(SEED)
    critic = nn.Sequential(
        nn.Linear(6, 16), nn.LayerNorm(16), nn.Tanh(), nn.Dropout(0.3), nn.Linear(16, 1)
    )

    def use(model: Callable[..., Any], leaves: Sequence[Tensor]) -> list[Any]:
        score = model(leaves[0])
        (gradient,) = torch.autograd.grad(score.sum(), leaves[0], create_graph=True)
        penalty = ((gradient.norm(2, dim=1) - 1) ** 2).mean()
        (score.mean() + penalty).backward()
        return [penalty.detach(), leaves[0].grad]

    _assert_as_eager(critic, lambda: [_numbers(5, 6)], use, backend, list(critic.parameters()))


@pytest.mark.parametrize("backend", BACKENDS)
def test_batch_norm_keeps_its_statistics(backend: str) -> None:
    """The program runs twice, and its buffers are updated once."""

    def outcome(compiled: bool) -> list[Tensor]:
        torch.manual_seed(SEED)
        model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.SiLU(), nn.Flatten())
        version = assay.compile(model, backend=backend) if compiled else model
        for _ in range(3):
            x = torch.randn(5, 1, 6, 6, requires_grad=True)
            (gradient,) = torch.autograd.grad(version(x).sin().sum(), x, create_graph=True)
            gradient.square().sum().backward()
        return [*model.buffers(), *(p.grad for p in model.parameters())]

    torch.testing.assert_close(outcome(True), outcome(False))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_differential_equation(backend: str) -> None:
    """A network's second derivative by its input is part of the loss."""
    torch.manual_seed(SEED)
    net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))

    def solution(x: Tensor, t: Tensor) -> Tensor:
        return net(torch.cat([x, t], 1)).squeeze(-1)

    def use(u: Callable[..., Any], leaves: Sequence[Tensor]) -> list[Any]:
        x, t = leaves
        value = u(x, t)
        (u_t,) = torch.autograd.grad(value.sum(), t, create_graph=True)
        (u_x,) = torch.autograd.grad(value.sum(), x, create_graph=True)
        (u_xx,) = torch.autograd.grad(u_x.sum(), x, create_graph=True)
        (u_t + value[:, None] * u_x - 0.01 * u_xx).square().mean().backward()
        return [u_xx.detach()]

    make = lambda: [_numbers(7, 1), _numbers(7, 1).sin()]
    _assert_as_eager(solution, make, use, backend, list(net.parameters()))


@pytest.mark.parametrize("backend", BACKENDS)
def test_by_the_incoming_gradient(backend: str) -> None:
    def use(f: Callable[..., Any], leaves: Sequence[Tensor]) -> list[Any]:
        y = f(*leaves)
        incoming = torch.ones_like(y, requires_grad=True)
        first = torch.autograd.grad(y, leaves, incoming, create_graph=True)
        return list(torch.autograd.grad(_projected(first), [*leaves, incoming]))

    make = lambda: [_numbers(3, 4), _numbers(3, 4).cos()]
    _assert_as_eager(lambda x, w: F.softmax(x * w, -1) @ w.t(), make, use, backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_input_that_the_program_writes_to(backend: str) -> None:
    def program(x: Tensor, w: Tensor) -> Tensor:
        x.mul_(2)
        return (x * w).exp()

    def use(f: Callable[..., Any], leaves: Sequence[Tensor]) -> list[Any]:
        x, w = leaves[0].detach().clone(), leaves[1]
        return [*_derivatives(lambda w: f(x, w), [w], 2), x]

    make = lambda: [_numbers(3, 4), _numbers(3, 4).cos()]
    _assert_as_eager(program, make, use, backend)


def test_hooks_of_inputs_are_called_once() -> None:
    def use(f: Callable[..., Any], leaves: Sequence[Tensor]) -> list[Any]:
        calls = 0

        def hook(gradient: Tensor) -> Tensor:
            nonlocal calls
            calls += 1
            return gradient * 2

        leaves[0].register_hook(hook)
        (first,) = torch.autograd.grad(f(leaves[0]).sum(), leaves[0], create_graph=True)
        first.square().sum().backward()
        return [first.detach(), leaves[0].grad, torch.tensor(calls)]

    _assert_as_eager(lambda x: x**3, lambda: [_numbers(4)], use, "aot_eager")


def test_an_input_that_was_written_to_since_is_an_error() -> None:
    weight = torch.ones(4, requires_grad=True)
    for version in (lambda x: x * weight * weight, None):
        f = version or assay.compile(lambda x: x * weight * weight, backend="aot_eager")
        x = torch.ones(4, requires_grad=True)
        y = f(x)
        with torch.no_grad():
            weight.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            torch.autograd.grad(y.sum(), x, create_graph=True)


def test_what_is_kept_is_released_by_backward() -> None:
    """A loss that is kept for a log does not keep the inputs of its graph."""
    freed = []

    class Watched:
        def __del__(self) -> None:
            freed.append(True)

    f = assay.compile(lambda x: x.sin().sum(), backend="aot_eager")
    losses = []
    for _ in range(3):
        x = torch.ones(4, requires_grad=True) * 2
        x.watched = Watched()
        losses.append(f(x))
        losses[-1].backward()
    del x
    assert len(freed) == 3


def test_a_program_that_cannot_run_again() -> None:
    def program(x: Tensor, y: Tensor) -> Tensor:
        x.add_(1)
        return (x * y).exp()

    base = torch.zeros(8)
    w = torch.ones(4, requires_grad=True)
    step = assay.aot.compile(lambda x, y, w: program(x, y) * w * w, backend="aot_eager")
    result = step(base[:4], base[2:6], w)
    (gradient,) = torch.autograd.grad(result.sum(), w, create_graph=True)
    with pytest.raises(RuntimeError, match="a second derivative"):
        gradient.sum().backward()


# Eager differentiates the operator once with the sum of what flows into its result, here what flows
# in through the gradient and what flows in directly come one by one, and the operator checks each.
CHECKED_ONE_BY_ONE = {"linalg.eig": "eigenvectors in the complex case"}

OPERATORS = {
    name: op
    for name, op in operators().items()
    if op.supports_autograd
    and op.supports_gradgrad
    and getattr(EXPECTED.get(name), "kind", None) not in MESSAGES
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("no_seeds_inside")
@pytest.mark.parametrize("name", OPERATORS)
def test_first_sample_of_an_operator(name: str) -> None:
    sample = first_sample(OPERATORS[name], torch.float32, requires_grad=True)

    outcomes: list[Any] = []
    for version in (sample.call, assay.aot.compile(sample.call, backend="aot_eager")):
        torch.manual_seed(SEED)
        tensors = sample.make()
        results = sample.process(version(*tensors))
        results = [results] if isinstance(results, Tensor) else list(results)
        leaves = [t for t in tensors if t.requires_grad and t.is_leaf]
        try:
            outcomes.append(_derivatives(lambda *_, r=results: r, leaves, 2))
        except RuntimeError as error:
            outcomes.append(str(error))
    if name in CHECKED_ONE_BY_ONE:
        assert CHECKED_ONE_BY_ONE[name] in outcomes[1]
        return
    torch.testing.assert_close(outcomes[1], outcomes[0], equal_nan=True)
