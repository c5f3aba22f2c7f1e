"""Half and bfloat16 are rounded where eager's kernels round them.

Which kernels round what differs from operator to operator: numbers become tensors of the dtype
for `+` and `%`, but not for `*` and `/`; some losses round after each step, others once. So bits
are compared. A logarithm may differ in the last bit of its float, which may turn the rounding of a
few results: these are neighbors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import assay

# Of x, y (tensors), number (0.1, which no such dtype has), scalar (the same in a float tensor).
FORMS: dict[str, Callable[..., Any]] = {
    "numbers": lambda x, y, c, s: (
        *(x + c, x - c, c - x, x * c, x / c, c / x, x // c, x % c, c % x, torch.fmod(x, c)),
        *(x.abs() ** c, c**x, x**3, x**-2, x < c, x == c, x.clamp(c, 0.7), x.masked_fill(x > 0, c)),
        *(torch.div(x, c, rounding_mode=mode) for mode in ("trunc", "floor")),
    ),
    "scalars": lambda x, y, c, s: (
        *(x + s, s + x, x - s, x * s, s * x, x / s, s / x, x // s, s // x, x % s, s % x),
        *(x.abs() ** s, s**x, torch.maximum(x, s), torch.where(x > 0, x, s)),
    ),
    "factors": lambda x, y, c, s: (
        *(torch.add(x, y, alpha=c), torch.sub(x, y, alpha=c), torch.rsub(x, y, alpha=c)),
        *(torch.lerp(x, y, c), torch.addcmul(x, y, y, value=c), torch.addcdiv(x, y, y, value=c)),
    ),
    "quotients": lambda x, y, c, s: (
        *(x / y, x // y, x % y, torch.fmod(x, y), torch.div(x, y, rounding_mode="trunc")),
        torch.nextafter(x, y),
    ),
    "logarithms": lambda x, y, c, s: (
        *(torch.xlogy(x, y.abs()), torch.xlogy(x, c), torch.xlogy(c, y.abs())),
        *(torch.special.xlog1py(x, y.abs()), torch.special.entr(x.abs())),
        *(torch.logit(x.sigmoid()), torch.logit(x.sigmoid(), c), x.log_softmax(-1)),
    ),
    "losses": lambda x, y, c, s: (
        *(F.mse_loss(x, y, reduction=r) for r in ("none", "mean")),
        *(F.smooth_l1_loss(x, y, reduction="none", beta=b) for b in (1.0, 0.3)),
        *(F.huber_loss(x, y, reduction="none", delta=d) for d in (1.0, 0.3)),
        F.soft_margin_loss(x, y.detach().sign(), reduction="none"),
        F.binary_cross_entropy(x.sigmoid(), y.sigmoid(), reduction="none"),
        F.binary_cross_entropy_with_logits(x, y.sigmoid(), reduction="none"),
    ),
    "gradients": lambda x, y, c, s: (
        *(x.sigmoid(), torch.tanh(y), F.glu(x), torch.logit(x.sigmoid()), F.hardshrink(x, c)),
        F.mse_loss(x, y),
        F.huber_loss(x, y, delta=0.3),
        F.soft_margin_loss(x, y.detach().sign()),
        F.binary_cross_entropy(x.sigmoid(), y.detach().sigmoid()),
    ),
    "rows": lambda x, y, c, s: (
        x.index_add(0, torch.tensor([1, 1, 0, 1]), y),
        x.scatter_add(0, torch.tensor([[1], [1], [0], [1]]).expand(4, 64), y),
        F.embedding(torch.tensor([1, 1, 0, 1, 1]), x),
    ),
}


WITH_GRADIENTS = ("losses", "gradients", "rows")


def inputs(dtype: torch.dtype) -> list[Any]:
    torch.manual_seed(3)
    x, y = torch.randn(2, 4, 64, dtype=torch.float64).to(dtype)
    return [x.requires_grad_(), y.requires_grad_(), 0.1, torch.tensor(0.1)]


def results(program: Callable[..., Any], dtype: torch.dtype, gradients: bool) -> list[Tensor]:
    arguments = inputs(dtype)
    if not gradients:
        with torch.no_grad():
            return list(program(*arguments))
    found = list(program(*arguments))
    for result in [one for one in found if one.requires_grad]:
        tangent = torch.linspace(-2, 2, result.numel()).to(result.dtype).view(result.shape)
        leaves = arguments[:2]
        found += torch.autograd.grad(
            result, leaves, tangent, retain_graph=True, allow_unused=True, materialize_grads=True
        )
    return found


def differing(found: Tensor, expected: Tensor) -> tuple[int, bool]:
    """How many elements differ, and whether all of these are neighbors of eager's."""
    one, other = found.detach().double(), expected.detach().double()
    differs = ~((one == other) | (one.isnan() & other.isnan()))
    limits = torch.finfo(expected.dtype) if expected.is_floating_point() else None
    if limits is None:
        return int(differs.sum()), not bool(differs.any())
    unit = (other.abs() * limits.eps).clamp(min=limits.tiny * limits.eps)
    return int(differs.sum()), bool(((one - other).abs() <= unit)[differs].all())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("form", FORMS)
def test_bits_are_eagers(form: str, dtype: torch.dtype) -> None:
    program, gradients = FORMS[form], form in WITH_GRADIENTS
    expected = results(program, dtype, gradients)
    found = results(assay.aot.compile(program, backend="native"), dtype, gradients)
    for number, (one, other) in enumerate(zip(found, expected, strict=True)):
        assert one.dtype == other.dtype
        count, are_neighbors = differing(one, other)
        assert count <= 0.02 * one.numel() and are_neighbors, f"result {number}: {count} elements"
