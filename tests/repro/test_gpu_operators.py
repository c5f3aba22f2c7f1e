"""Operators that only GPUs have, as functions of the CPU: held against what users call."""

from __future__ import annotations

import torch

import assay


def test_cells_and_their_gradients() -> None:
    """Against autograd; a workspace passes what the backward operators need."""
    assay_graph = assay.parse("""
class Repro(torch.nn.Module):
    def forward(self, gates, hidden_gates, state, gradient):
        cell = torch.ops.aten._thnn_fused_gru_cell.default(gates, hidden_gates, state)
        hidden = cell[0]
        workspace = cell[1]
        back = torch.ops.aten._thnn_fused_gru_cell_backward.default(gradient, workspace, False)
        of_gates = back[0]
        of_hidden_gates = back[1]
        of_state = back[2]
        return (hidden, of_gates, of_hidden_gates, of_state)
""")
    sizes = [(3, 12), (3, 12), (3, 4)]
    gates, hidden_gates, state = (torch.randn(size, requires_grad=True) for size in sizes)
    gradient = torch.randn(3, 4)
    reset, update, candidate = gates.chunk(3, 1)
    hidden_reset, hidden_update, hidden_candidate = hidden_gates.chunk(3, 1)
    new = torch.tanh(candidate + torch.sigmoid(reset + hidden_reset) * hidden_candidate)
    hidden = new + torch.sigmoid(update + hidden_update) * (state - new)
    expected = [hidden, *torch.autograd.grad(hidden, (gates, hidden_gates, state), gradient)]
    with torch.no_grad():
        results = assay_graph(gates, hidden_gates, state, gradient)
    for result, right in zip(results, expected, strict=True):
        torch.testing.assert_close(result, right)


def test_layers_of_cudnn() -> None:
    graph = assay.parse("""
class Repro(torch.nn.Module):
    def forward(self, x, w, u, b, c, h, m):
        rnn = torch.ops.aten._cudnn_rnn.default(
            x, [w, u, b, c], 4, None, h, m, 2, 4, 0, 1, True, 0.0, False, False, [], None)
        output = rnn[0]
        hidden = rnn[1]
        memory = rnn[2]
        return (output, hidden, memory)
""")
    layer = torch.nn.LSTM(5, 4, batch_first=True)
    x, h, m = torch.randn(2, 3, 5), torch.randn(1, 2, 4), torch.randn(1, 2, 4)
    with torch.no_grad():
        results = graph(x, *layer.parameters(), h, m)
        output, (hidden, memory) = layer(x, (h, m))
    for result, right in zip(results, (output, hidden, memory), strict=True):
        torch.testing.assert_close(result, right)


def test_synchronized_batch_norm() -> None:
    """Two processes' halves of a batch, forward and backward, against the whole batch at once."""
    graph = assay.parse("""
class Repro(torch.nn.Module):
    def forward(self, x, y, weight, bias, counts, gx, gy):
        first = torch.ops.aten.batch_norm_stats.default(x, 1e-05)
        mean_x = first[0]
        invstd_x = first[1]
        second = torch.ops.aten.batch_norm_stats.default(y, 1e-05)
        mean_y = second[0]
        invstd_y = second[1]
        means = torch.stack([mean_x, mean_y])
        invstds = torch.stack([invstd_x, invstd_y])
        both = torch.ops.aten.batch_norm_gather_stats_with_counts.default(
            x, means, invstds, None, None, 0.1, 1e-05, counts)
        mean = both[0]
        invstd = both[1]
        out = torch.ops.aten.batch_norm_elemt.default(x, weight, bias, mean, invstd, 1e-05)
        reduced = torch.ops.aten.batch_norm_backward_reduce.default(
            gx, x, mean, invstd, weight, True, True, True)
        reduced_y = torch.ops.aten.batch_norm_backward_reduce.default(
            gy, y, mean, invstd, weight, True, True, True)
        sum_dy = reduced[0] + reduced_y[0]
        sum_dy_xmu = reduced[1] + reduced_y[1]
        of_weight = reduced[2] + reduced_y[2]
        of_x = torch.ops.aten.batch_norm_backward_elemt.default(
            gx, x, mean, invstd, weight, sum_dy, sum_dy_xmu, counts.to(torch.int32))
        return (out, of_weight, of_x)
""")
    x, y = torch.randn(2, 3, 4), torch.randn(5, 3, 4)
    weight, bias = torch.randn(3, requires_grad=True), torch.randn(3)
    gradient = torch.randn(7, 3, 4)
    whole = torch.cat([x, y]).requires_grad_()
    expected = torch.nn.functional.batch_norm(whole, None, None, weight, bias, training=True)
    of_weight, of_x = torch.autograd.grad(expected, (weight, whole), gradient)
    counts = torch.tensor([8.0, 20.0])
    with torch.no_grad():
        results = graph(x, y, weight, bias, counts, gradient[:2], gradient[2:])
    for result, right in zip(results, (expected[:2], of_weight, of_x[:2]), strict=True):
        torch.testing.assert_close(result, right.detach(), rtol=1e-4, atol=1e-5)


def test_gradient_of_an_attention_bias() -> None:
    graph = assay.parse("""
class Repro(torch.nn.Module):
    def forward(self, q, k, v, bias, gradient):
        attended = torch.ops.aten._scaled_dot_product_efficient_attention.default(
            q, k, v, bias, True)
        out = attended[0]
        sums = attended[1]
        back = torch.ops.aten._scaled_dot_product_efficient_attention_backward.default(
            gradient, q, k, v, bias, out, sums, None, None, 0.0, [True, True, True, True])
        of_q = back[0]
        of_bias = back[3]
        return (out, of_q, of_bias)
""")
    q, k, v = (torch.randn(2, 3, 5, 4, requires_grad=True) for _ in range(3))
    bias = torch.randn(1, 3, 5, 5, requires_grad=True)
    gradient = torch.randn(2, 3, 5, 4)
    out = torch.nn.functional.scaled_dot_product_attention(q, k, v, bias)
    expected = (out, *torch.autograd.grad(out, (q, bias), gradient))
    with torch.no_grad():
        results = graph(q, k, v, bias, gradient)
    for result, right in zip(results, expected, strict=True):
        torch.testing.assert_close(result, right, rtol=1e-4, atol=1e-5)
