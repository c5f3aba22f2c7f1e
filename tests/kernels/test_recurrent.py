"""Recurrent layers: a call of oneDNN's kernel where no gradient is needed, operators elsewhere."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from kernels.against_eager import Program
from kernels.schedules import steps_of

LAYERS = {
    "lstm": lambda: nn.LSTM(6, 5, 2, batch_first=True, bidirectional=True),
    "lstm with projection": lambda: nn.LSTM(6, 5, proj_size=3),
    "gru": lambda: nn.GRU(6, 5, 2),
    "rnn": lambda: nn.RNN(6, 5, bias=False),
}


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_inference(name: str, dtype: torch.dtype) -> None:
    layer = LAYERS[name]().to(dtype).eval().requires_grad_(False)
    text = Program(layer, lambda: [torch.randn(3, 7, 6).to(dtype)]).difference()
    assert not text, text


@pytest.mark.parametrize("name", LAYERS)
def test_gradients(name: str) -> None:
    text = Program(LAYERS[name](), lambda: [torch.randn(3, 7, 6).requires_grad_()]).difference()
    assert not text, text


def test_gradients_of_the_input_only() -> None:
    layer = nn.LSTM(6, 5).requires_grad_(False)
    text = Program(layer, lambda: [torch.randn(3, 7, 6).requires_grad_()]).difference()
    assert not text, text


def test_inference_is_one_call_per_layer(capfd: pytest.CaptureFixture[str]) -> None:
    layer = nn.LSTM(6, 5, 2).eval().requires_grad_(False)

    def program(x: Tensor) -> Tensor:
        return layer(x)[0]

    steps = steps_of(capfd, program, [torch.randn(30, 7, 6)])
    assert sum("mkldnn_rnn_layer" in step for step in steps) == 2
    assert len(steps) < 12
