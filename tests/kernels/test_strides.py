"""Results of operators that are made of several have eager's strides, whatever the inputs' are."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import assay
from kernels.against_eager import Program

OPERATORS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "xlogy": torch.xlogy,
    "xlog1py": torch.special.xlog1py,
    "lerp, near the start": lambda x, y: torch.lerp(x, y, 0.3),
    "lerp, near the end": lambda x, y: torch.lerp(x, y, 0.7),
    "lerp by a tensor": lambda x, y: torch.lerp(x, y, y.abs()),
    "smooth_l1_loss": lambda x, y: F.smooth_l1_loss(x, y, reduction="none"),
    "soft_margin_loss": lambda x, y: F.soft_margin_loss(x, y, reduction="none"),
    "addcdiv": lambda x, y: torch.addcdiv(x, y, y.abs() + 1, value=2),
    "fmax": torch.fmax,
    "logaddexp": torch.logaddexp,
    "clamp": lambda x, y: torch.clamp(x, y, y + 1),
}
INPUTS: dict[str, Callable[[], list[Tensor]]] = {
    "permuted, plain": lambda: [torch.randn(4, 3, 5).permute(2, 0, 1), torch.randn(5, 4, 3)],
    "plain, permuted": lambda: [torch.randn(5, 4, 3), torch.randn(4, 3, 5).permute(2, 0, 1)],
    "permuted": lambda: [
        torch.randn(4, 3, 5).permute(2, 0, 1),
        torch.randn(3, 5, 4).permute(1, 2, 0),
    ],
    "expanded, plain": lambda: [torch.randn(5, 4, 1).expand(5, 4, 3), torch.randn(5, 4, 3)],
    "broadcast, permuted": lambda: [torch.randn(1, 4, 3), torch.randn(4, 3, 5).permute(2, 0, 1)],
    "permuted, broadcast": lambda: [torch.randn(4, 3, 5).permute(2, 0, 1), torch.randn(5, 1, 3)],
}


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("inputs", INPUTS)
@pytest.mark.parametrize("operator", OPERATORS)
def test_strides_of_two_layouts(operator: str, inputs: str) -> None:
    text = Program(OPERATORS[operator], INPUTS[inputs]).difference(idle_strides=False)
    assert not text, text


@pytest.mark.parametrize("window", [slice(None, None, 2), slice(1, 5)])
def test_a_window_of_a_computed_tensor_may_be_changed(window: slice) -> None:
    """A graph cannot say that what lies between stays; the function runs eagerly then."""

    def program(x: Tensor) -> Tensor:
        x.add_(1.0)
        return x * 2

    def run(function: Callable[[Tensor], Tensor]) -> list[Tensor]:
        start = torch.arange(8.0, requires_grad=True)
        base = start.clone()
        result = function(base[window])
        (gradient,) = torch.autograd.grad(result.sum() + base.sum(), start)
        return [result.detach(), base.detach(), gradient]

    expected = run(program)
    torch._dynamo.reset()
    for compiled in (
        assay.compile(program, backend="native"),
        torch.compile(program, backend="assay"),
    ):
        for _ in range(2):
            assert all(map(torch.equal, run(compiled), expected))


LAYOUTS: dict[str, Callable[[], Tensor]] = {
    "plain": lambda: torch.randn(4, 6, 5, 3),
    "permuted": lambda: torch.randn(3, 5, 6, 4).permute(3, 2, 0, 1),
    "channels last": lambda: torch.randn(4, 6, 5, 3).contiguous(memory_format=torch.channels_last),
    "gaps": lambda: torch.randn(4, 6, 5, 6)[..., ::2],
    "permuted, gaps": lambda: torch.randn(4, 6, 5, 6)[..., ::2].permute(3, 1, 0, 2),
}
DRAWS: dict[str, Callable[[Tensor], Tensor]] = {
    "bernoulli_": lambda x: (x * 1).bernoulli_(0.3),
    "bernoulli": lambda x: torch.bernoulli(x, 0.3),
    "bernoulli_ of tensors": lambda x: (x * 1).bernoulli_(x.sigmoid()),
    "bernoulli_ of an empty tensor": lambda x: torch.empty_like(x).bernoulli_(0.5) * x,
    "alpha_dropout": lambda x: F.alpha_dropout(x, 0.4, training=True),
    "feature_alpha_dropout": lambda x: F.feature_alpha_dropout(x, 0.4, training=True),
    "dropout": lambda x: F.dropout(x, 0.4),
    "dropout2d": lambda x: F.dropout2d(x, 0.4),
    "normal_": lambda x: (x + 0).normal_(),
    "rand_like": torch.rand_like,
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("draw", DRAWS)
def test_random_numbers_are_drawn_in_the_order_of_memory(draw: str, layout: str) -> None:
    program = Program(lambda x: (DRAWS[draw](x), torch.rand(2)), lambda: [LAYOUTS[layout]()])
    text = program.difference(idle_strides=False)
    assert not text, text
