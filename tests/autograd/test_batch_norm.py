"""Batch norm decomposes in every mode, and its running statistics are updated as in eager."""

from __future__ import annotations

import copy

import pytest
import torch

import assay


@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize("tracks", [True, False])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_decomposed_batch_norm(train: bool, tracks: bool, layout: torch.memory_format) -> None:
    torch.manual_seed(0)
    module = torch.nn.BatchNorm2d(3, track_running_stats=tracks).train(train)
    if module.running_mean is not None and module.running_var is not None:
        module.running_mean.uniform_()
        module.running_var.uniform_(0.5, 2)
    eager = copy.deepcopy(module)
    x = torch.randn(4, 3, 5, 5).contiguous(memory_format=layout).requires_grad_()
    y = x.detach().clone().requires_grad_()
    graph = assay.aot.trace(module, (x,), decompose=True).forward
    assert "batch_norm.default" not in graph and "batch_norm_legit" not in graph

    compiled = assay.aot.compile(module, backend="aot_eager_decomp_partition")
    weights = torch.randn(4, 3, 5, 5)
    for _ in range(2):
        ours = compiled(x)
        theirs = eager(y)
        (ours * weights).sum().backward()
        (theirs * weights).sum().backward()
    torch.testing.assert_close(ours, theirs)
    assert ours.stride() == theirs.stride()
    torch.testing.assert_close(x.grad, y.grad)
    torch.testing.assert_close(module.weight.grad, eager.weight.grad)
    for buffer, expected in zip(module.buffers(), eager.buffers(), strict=True):
        torch.testing.assert_close(buffer, expected)
