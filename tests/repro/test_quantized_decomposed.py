"""Quantization by scales that are computed from the values: bit for bit what stock computes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.ao.quantization.fx._decomposed  # registers the operators of stock

import assay

NAMES = {"Q": "torch.ops.quantized_decomposed", "I8": "torch.int8", "F32": "torch.float32"}
PROGRAM = """
class Repro(torch.nn.Module):
    def forward(self, x, w, s, z):
        by_tensor = Q.choose_qparams.tensor(x, -128, 127, 0.0001, I8)
        symmetric = Q.choose_qparams_symmetric.tensor(x, -127, 127, 0.0001, I8)
        unsigned = Q.choose_qparams_symmetric.tensor(x, 0, 255, 0.0001, torch.uint8)
        by_token = Q.choose_qparams_per_token.default(x, I8)
        affine = Q.choose_qparams_per_token_asymmetric.default(x, I8)
        scale = affine[0]
        zero = affine[1]
        tokens = Q.quantize_per_token.default(x, scale, zero, -128, 127, I8)
        floats = Q.dequantize_per_token.default(tokens, scale, zero, -128, 127, I8, F32)
        groups = Q.quantize_per_channel_group.default(w, s, z, -8, 7, I8, 4)
        weights = Q.dequantize_per_channel_group.default(groups, s, z, -8, 7, I8, 4, F32)
        return (by_tensor, symmetric, unsigned, by_token, affine, tokens, floats, groups, weights)
"""
for short, name in NAMES.items():
    PROGRAM = PROGRAM.replace(short, name)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_as_stock(dtype: torch.dtype) -> None:
    scope: dict[str, Any] = {"torch": torch}
    exec(PROGRAM, scope)
    stock, graph = scope["Repro"](), assay.parse(PROGRAM)
    for seed in range(8):
        torch.manual_seed(seed)
        x = (torch.randn(4, 8) * 10 ** (seed % 4 - 1) + seed % 3).to(dtype)
        zeros = torch.randint(-3, 3, (8, 2), dtype=torch.int32)
        inputs = (x, torch.randn(8, 8), torch.rand(8, 2) + 0.01, zeros)
        expected = torch.utils._pytree.tree_leaves(stock(*inputs))
        found = torch.utils._pytree.tree_leaves(graph(*inputs))
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=0)
