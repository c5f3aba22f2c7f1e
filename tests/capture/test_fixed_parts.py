"""Sizes that never come again run mostly compiled: once, for what does not depend on them."""

from __future__ import annotations

import re

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import assay


class Layer(nn.Module):
    """Attention over a cache that grows with every call."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.project = nn.Linear(width, 3 * width)
        self.join = nn.Linear(width, width)
        self.feed = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, x: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        query, key, value = self.project(self.norm(x)).chunk(3, -1)
        keys, values = torch.cat([keys, key], 1), torch.cat([values, value], 1)
        x = x + self.join(F.scaled_dot_product_attention(query, keys, values))
        return x + self.feed(x), keys, values


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Layer() for _ in range(3)])

    def forward(
        self, x: Tensor, cache: list[tuple[Tensor, Tensor]]
    ) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        grown = []
        for layer, (keys, values) in zip(self.layers, cache, strict=True):
            x, keys, values = layer(x, keys, values)
            grown.append((keys, values))
        return x, grown


def _start(batch: int, length: int) -> list[tuple[Tensor, Tensor]]:
    return [(torch.randn(batch, length, 16), torch.randn(batch, length, 16)) for _ in range(3)]


def _generate(model: nn.Module, version: object, batches: list[int], grad: bool) -> list[Tensor]:
    torch.manual_seed(3)
    found: list[Tensor] = []
    for number, batch in enumerate(batches):
        cache = _start(batch, 2 + number)
        for _ in range(7):
            x = torch.randn(batch, 1, 16, requires_grad=grad)
            y, cache = version(x, cache)  # type: ignore[operator]
            found.append(y.detach())
            if grad:
                y.square().sum().backward()
                found.append(x.grad)  # type: ignore[arg-type]
                found += [p.grad.clone() for p in model.parameters() if p.grad is not None]
                model.zero_grad()
                cache = [(k.detach(), v.detach()) for k, v in cache]
        found += [t.detach() for pair in cache for t in pair]
    return found


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("backend", ["aot_eager", "native"])
def test_a_growing_cache(backend: str, grad: bool, capfd: pytest.CaptureFixture[str]) -> None:
    """In the second round the batch is larger, which the compiled parts do not fit."""
    torch.manual_seed(0)
    model = Model()
    assay.reset()
    assay.set_logs("dynamic")
    try:
        with torch.set_grad_enabled(grad):
            found = _generate(model, assay.compile(model, backend=backend), [1, 1, 2, 3, 1], grad)
            expected = _generate(model, model, [1, 1, 2, 3, 1], grad)
    finally:
        assay.set_logs("")
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    numbers = re.search(
        r"(\d+) of (\d+) operators do not depend on sizes: they are compiled",
        capfd.readouterr().err,
    )
    assert numbers is not None
    assert int(numbers[1]) > 0.7 * int(numbers[2])


def test_what_depends_on_a_number_is_none_of_them() -> None:
    """The numbers of a call, and not those of the call for which parts were compiled."""

    def program(x: Tensor, cache: Tensor, scale: float) -> tuple[Tensor, Tensor, float]:
        y = x
        for _ in range(4):
            y = (y * scale).sin() @ x
            y = F.gelu(y.tanh() + x).softmax(-1) + scale
        return y, torch.cat([cache, y]), scale + 1

    compiled = assay.compile(program, backend="native")
    cache = expected_cache = torch.randn(3, 5)
    for i in range(12):
        x = torch.randn(5, 5)
        y, cache, n = compiled(x, cache, 0.5 + i)
        expected, expected_cache, expected_n = program(x, expected_cache, 0.5 + i)
        assert n == expected_n
        torch.testing.assert_close(y, expected, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(cache, expected_cache, rtol=1e-4, atol=1e-5)


def test_modes_inside_of_the_graph() -> None:
    def program(x: Tensor, cache: Tensor) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            scale = (x.sin() * cache.sum()).exp().mean()
        y = (x * scale).tanh() @ x
        with torch.autocast("cpu", dtype=torch.bfloat16):
            z = (y @ x).relu() @ x
        y = F.layer_norm(z.float() + y, (5,)).sigmoid() @ x
        return y, torch.cat([cache, y.detach()])

    compiled = assay.compile(program, backend="native")
    cache = expected_cache = torch.randn(3, 5)
    for _ in range(9):
        x, same = torch.randn(5, 5, requires_grad=True), None
        same = x.detach().clone().requires_grad_()
        y, cache = compiled(x, cache)
        expected, expected_cache = program(same, expected_cache)
        y.sum().backward()
        expected.sum().backward()
        torch.testing.assert_close(y, expected, rtol=2e-2, atol=2e-2)
        torch.testing.assert_close(x.grad, same.grad, rtol=5e-2, atol=5e-2)
        cache = expected_cache = expected_cache[:8]


def test_graphs_that_write_to_tensors_run_as_they_are() -> None:
    def program(x: Tensor, buffer: Tensor) -> Tensor:
        y = x.sin().cos().tanh().exp()
        y.mul_(2)
        z = y.sigmoid().relu().sqrt().log1p()
        return z * buffer.sum()

    compiled = assay.compile(program, backend="native")
    for length in range(2, 11):
        x, buffer = torch.randn(4, 4), torch.randn(length)
        torch.testing.assert_close(compiled(x, buffer), program(x, buffer))


def test_inputs_of_a_part_that_are_one_tensor_in_some_calls_only() -> None:
    """What a call of Python returns is one of its arguments, or another tensor."""

    class Choice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: object, x: Tensor, y: Tensor) -> Tensor:
            return x.view_as(x) if x.sum() > 0 else y.clone()

        @staticmethod
        def backward(ctx: object, gradient: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
            return gradient, None

    def program(x: Tensor, y: Tensor) -> Tensor:
        a, b = x.sin() + 3, y.cos() - 3
        chosen = Choice.apply(a, b)
        return (chosen * a.exp()).tanh() + b

    compiled = assay.compile(program, backend="aot_eager")
    for sign in (1, 1, -1, 1, -1):
        x = (torch.rand(3) * sign - 5 * (sign < 0)).requires_grad_()
        y = torch.rand(3)
        torch.testing.assert_close(compiled(x, y), program(x, y))
