"""Convolutions compute with the channels last, and nobody notices but by the clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kernels.against_eager import Program
from kernels.schedules import steps_of


class Two(nn.Module):
    """Two convolutions with something between them and something behind them."""

    def __init__(
        self,
        between: Callable[[Tensor], Any] = torch.relu,
        behind: Callable[[Tensor], Any] = torch.relu,
        **options: Any,
    ) -> None:
        super().__init__()
        self.first = nn.Conv2d(8, 32, 3, padding=1, **options)
        self.norm = nn.BatchNorm2d(32).eval()
        self.second = nn.Conv2d(32, 32, 3, padding=1, **options)
        self.between, self.behind = between, behind

    def forward(self, x: Tensor) -> Any:
        return self.behind(self.second(self.between(self.norm(self.first(x)))))


def both(x: Tensor) -> Any:
    return x, x.sin()


MODELS: dict[str, Callable[[], nn.Module]] = {
    "plain": Two,
    "grouped": lambda: Two(groups=8),
    "without bias": lambda: Two(bias=False),
    "an output between": lambda: Two(behind=both),
    "a view behind": lambda: Two(behind=lambda x: x.flatten(2).transpose(1, 2)),
    "a slice between": lambda: Two(between=lambda x: x[:, :, 1:, ::2]),
    "a reshape between": lambda: Two(
        between=lambda x: x.view(2, 2, 16, 16, 16).sum(1).repeat(1, 2, 1, 1)
    ),
    "a sum behind": lambda: Two(behind=lambda x: x.mean((2, 3))),
    "max pooling": lambda: Two(between=lambda x: F.max_pool2d(x, 2)),
    "average pooling": lambda: Two(between=lambda x: F.avg_pool2d(x, 3, 2, 1)),
    "upsampling": lambda: Two(between=lambda x: F.interpolate(x, scale_factor=2, mode="bilinear")),
    "nearest": lambda: Two(between=lambda x: F.interpolate(x, scale_factor=2)),
    "joined": lambda: Two(behind=lambda x: torch.cat((x, x + 1), 1)),
    "in place": lambda: Two(between=lambda x: x.mul_(2).relu_()),
    "written to a part": lambda: Two(
        between=lambda x: x.clone().index_fill_(0, torch.tensor([1]), 3)
    ),
    "broadcast": lambda: Two(between=lambda x: x + x.mean((0, 2, 3), keepdim=True)),
    "sorted": lambda: Two(behind=lambda x: x.sort(1)[1]),
    "its own strides": lambda: Two(behind=lambda x: torch.empty_like(x).copy_(x)),
    "one pixel behind": lambda: Two(behind=lambda x: F.adaptive_avg_pool2d(x, 1)),
    "as_strided": lambda: Two(behind=lambda x: torch.as_strided(x, (4, 4), (4, 1), 2)),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("order", ["contiguous_format", "channels_last"])
def test_model(name: str, order: str) -> None:
    torch.manual_seed(0)
    model = MODELS[name]().requires_grad_(False)

    def make() -> list[Any]:
        return [torch.randn(2, 8, 16, 16).to(memory_format=getattr(torch, order))]

    text = Program(model, make).difference()
    assert not text, text


def test_gradients_are_eagers() -> None:
    torch.manual_seed(0)
    text = Program(Two(), lambda: [torch.randn(2, 8, 16, 16, requires_grad=True)]).difference()
    assert not text, text


def test_nothing_is_copied_between(capfd: pytest.CaptureFixture[str]) -> None:
    model = Two().requires_grad_(False)
    steps = steps_of(capfd, model, [torch.randn(2, 8, 16, 16)])
    names = [step.split(":")[0] for step in steps]
    assert names[0].startswith("kernel clone")
    assert sum("clone" in name for name in names[1:-1]) == 0


def test_a_single_convolution_keeps_its_order(capfd: pytest.CaptureFixture[str]) -> None:
    model = nn.Conv2d(8, 16, 3).requires_grad_(False)
    steps = steps_of(capfd, lambda x: model(x).relu(), [torch.randn(2, 8, 32, 32)])
    assert not any("clone" in step for step in steps)


def test_convolutions_between_norms_keep_their_order(capfd: pytest.CaptureFixture[str]) -> None:
    """Group norms view groups of channels: each convolution would be copied into and out of."""
    model = Two(between=lambda x: F.group_norm(x, 8).relu(), behind=lambda x: F.group_norm(x, 8))
    steps = steps_of(capfd, model.requires_grad_(False), [torch.randn(2, 8, 16, 16)])
    assert not any("clone" in step for step in steps)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear"])
def test_strides_of_one_pixel(mode: str) -> None:
    def make() -> list[Tensor]:
        image = torch.randn(2, 3, 6, 5).contiguous(memory_format=torch.channels_last)
        return [image.requires_grad_()]

    text = Program(lambda x: F.interpolate(x, size=(1, 1), mode=mode), make).difference()
    assert not text, text
