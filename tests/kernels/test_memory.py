"""The memory of intermediate results: shared by all programs, and never what a caller sees."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import torch
from torch import Tensor

import assay


def resident_megabytes(program: str) -> float:
    """What a process gains while it runs `measured()` of a program."""
    code = textwrap.dedent(program) + textwrap.dedent(
        """
        def resident():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * 4096 / 2**20

        prepare()
        before = resident()
        measured()
        print(resident() - before)
        """
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


def test_many_programs_take_as_much_as_one() -> None:
    # The product keeps the kernels apart: each program has an intermediate result of 32 MB.
    gained = resident_megabytes(
        """
        import torch, assay

        def program(k):
            def f(x, w):
                return ((x * k).sin() @ w).sum(0)
            return assay.aot.compile(f, backend="native")

        x, w = torch.randn(8192, 1024), torch.randn(1024, 8)
        programs = [program(k) for k in range(1, 9)]

        def prepare():
            programs[0](x, w)

        def measured():
            for one in programs[1:] * 2:
                one(x, w)
        """
    )
    assert gained < 100  # not seven times 32


kept: list[Tensor] = []


@torch.library.custom_op("assay_tests::keep", mutates_args=())
def keep(x: Tensor) -> Tensor:
    """An operator that remembers its operand."""
    kept.append(x)
    return x + 1


@keep.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


def test_operators_of_libraries_may_keep_their_operands() -> None:
    def f(x: Tensor) -> Tensor:
        return keep(x.sin() * 2).cos()

    compiled = assay.compile(f, backend="native", fullgraph=True)
    inputs = [torch.full((64,), float(i)) for i in range(4)]
    for x in inputs:
        assert torch.allclose(compiled(x), f(x))
    kept.clear()
    for x in inputs:
        compiled(x)
    for x, operand in zip(inputs, kept, strict=True):
        assert torch.allclose(operand, x.sin() * 2)


def test_calls_inside_calls_do_not_share_memory() -> None:
    @assay.compile(backend="native")
    def inner(x: Tensor) -> Tensor:
        return (x.exp() @ x).tanh() @ x

    @torch.library.custom_op("assay_tests::nested", mutates_args=())
    def nested(x: Tensor) -> Tensor:
        return inner(x).clone()

    @nested.register_fake
    def _(x: Tensor) -> Tensor:
        return torch.empty_like(x)

    def outer(x: Tensor) -> Tensor:
        y = (x.cos() @ x).sigmoid()
        z = nested(x)
        return (y @ z + y).sin() @ y

    compiled = assay.compile(outer, backend="native")
    x = torch.randn(96, 96) / 10
    expected = outer(x)
    for _ in range(3):
        torch.testing.assert_close(compiled(x), expected, rtol=1e-4, atol=1e-4)
