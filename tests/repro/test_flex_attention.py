"""Attention whose scores and masks are subgraphs: equal to what stock PyTorch's eager computes."""

from __future__ import annotations

import math

import pytest
import torch

import assay

GRAPH = """
class Repro(torch.nn.Module):
    def forward(self, q, k, v, table):
        score = self.score
        mask = self.mask
        blocks = (4, 4, mask)
        flex = torch.ops.higher_order.flex_attention(q, k, v, score, blocks, 0.3, {}, (table,), ())
        return (flex[0], flex[1], flex[2])

    class score(torch.nn.Module):
        def forward(self, score, b, h, m, n, table):
            sub = torch.ops.aten.sub.Tensor(m, n)
            mul = torch.ops.aten.mul.Tensor(table[h], sub)
            return torch.ops.aten.add.Tensor(score, mul)

    class mask(torch.nn.Module):
        def forward(self, b, h, m, n):
            return torch.ops.aten.ge.Tensor(m, n)
"""

BACKWARD = """
class Repro(torch.nn.Module):
    def forward(self, q, k, v, out, lse, grad_out):
        score = self.score
        joint = self.joint
        mask = self.mask
        blocks = (4, 4, mask)
        flex = torch.ops.higher_order.flex_attention_backward(q, k, v, out, lse, grad_out, None,
            score, joint, blocks, 0.3, {}, (), ())
        return (flex[0], flex[1], flex[2])

    class score(torch.nn.Module):
        def forward(self, score, b, h, m, n):
            return torch.ops.aten.tanh.default(score)

    class joint(torch.nn.Module):
        def forward(self, score, b, h, m, n, grad):
            tanh = torch.ops.aten.tanh.default(score)
            tanh_backward = torch.ops.aten.tanh_backward.default(grad, tanh)
            return (tanh_backward, None, None, None, None)

    class mask(torch.nn.Module):
        def forward(self, b, h, m, n):
            return torch.ops.aten.ge.Tensor(m, n)
"""


def inputs(dtype: torch.dtype) -> list[torch.Tensor]:
    """Four query heads share two keys; the query is not contiguous."""
    torch.manual_seed(0)
    query = torch.randn(2, 5, 4, 8).transpose(1, 2)
    return [value.to(dtype) for value in (query, torch.randn(2, 2, 5, 8), torch.randn(2, 2, 5, 8))]


def causal(b: object, h: object, m: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    return m >= n


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_forward_is_eagers(dtype: torch.dtype) -> None:
    q, k, v = inputs(dtype)
    table = torch.randn(4, dtype=dtype)

    def score(s: torch.Tensor, b: int, h: int, m: int, n: int, t: torch.Tensor) -> torch.Tensor:
        return s + t[h] * (m - n)

    flex = torch.ops.higher_order.flex_attention
    expected = flex(q, k, v, score, (4, 4, causal), 0.3, {}, (table,), ())
    found = assay.parse(GRAPH)(q, k, v, table)
    for one, other in zip(found, expected, strict=True):
        assert one.stride() == other.stride()
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_backward_is_that_of_the_formula() -> None:
    q, k, v = (value.requires_grad_() for value in inputs(torch.float64))
    keys, values = k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)
    scores = torch.tanh((q @ keys.mT) * 0.3)
    scores = scores.masked_fill(~torch.ones(5, 5).tril().bool(), -math.inf)
    out = scores.softmax(-1) @ values
    grad = torch.randn_like(out)
    expected = torch.autograd.grad(out, (q, k, v), grad)
    lse = scores.logsumexp(-1) / math.log(2)
    with torch.no_grad():
        found = assay.parse(BACKWARD)(q, k, v, out, lse, grad)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


def test_gradients_of_captured_tensors_are_refused() -> None:
    text = BACKWARD.replace("(tanh_backward, None,", "(tanh_backward, tanh,")
    q, k, v = inputs(torch.float32)
    with pytest.raises(assay.Error, match="captures need a Python process"):
        assay.parse(text)(q, k, v, q, q[..., 0], q)
