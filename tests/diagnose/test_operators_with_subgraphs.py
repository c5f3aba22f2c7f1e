"""Programs whose graphs Dynamo cannot trace a second time: cond, scan, torch.func, checkpoint."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnose.diagnosing import diagnose

SCRIPT = """
import sys
import torch
import torch.utils.checkpoint
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

def f(x):
    y = torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))
    return y * 2

def g(x):
    i, z = while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (torch.tensor(0), x))
    return z, scan(lambda a, b: (a + b, a * b), torch.zeros(4), x)

def h(x):
    return torch.vmap(torch.func.grad(lambda y: (y ** 3).sum()))(x)

class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.saved_tensors[0] * 2

region = torch.compiler.nested_compile_region(lambda x: (x @ x).sin())

def k(x):
    y = torch.utils.checkpoint.checkpoint(lambda y: y.sin() @ y, x, use_reentrant=False)
    return region(region(Square.apply(x))) + y

def wrong(gm, inputs):
    def run(*arguments):
        return tuple(result + 1 for result in gm(*arguments))
    return run

x = torch.ones(4, 4, requires_grad=True)
torch.compile(f, backend="aot_eager")(x).sum().backward()
torch.compile(k, backend="aot_eager")(x).sum().backward()
print(x.grad)
for function in (g, h):
    torch.compile(function, backend="aot_eager")(x.detach())
if len(sys.argv) > 1:
    torch.compile(f, backend=wrong)(x.detach())
"""


@pytest.mark.slow
def test_nothing_fails(tmp_path: Path) -> None:
    """Eager runs compile the bodies of such operators, and graphs are compared as they are."""
    found = diagnose(tmp_path, SCRIPT)
    assert found.code == 0, found.verdict
    assert "all 4 graphs compute what eager computes" in found.verdict["summary"]
    assert not found.verdict["notes"]


@pytest.mark.slow
def test_a_wrong_result_is_found(tmp_path: Path) -> None:
    found = diagnose(tmp_path, SCRIPT, "wrong")
    assert found.code == 1
    assert found.verdict["stage"] == "backend wrong"
    assert len(found.verdict["calls"]) == 1
