"""What raises in eager raises in compiled programs: the first time, and when kernels exist."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import assay

ROWS = torch.arange(20.0).view(5, 4)
COMPILERS: dict[str, Callable[[Any], Any]] = {
    "assay": lambda program: assay.compile(program, backend="native"),
    "plug-in": lambda program: torch.compile(program, backend="assay"),
}
# Each is good with the first argument, and raises with the second one.
VALUES: dict[str, tuple[Callable[[Tensor], Any], Tensor, Tensor]] = {
    name: (program, torch.tensor([good]), torch.tensor([bad]))
    for name, program, good, bad in (
        ("embedding", lambda i: F.embedding(i, ROWS), 1, -1),
        ("index_select", lambda i: ROWS.index_select(0, i), 1, -1),
        ("index_select beyond", lambda i: ROWS.index_select(0, i), 1, 5),
        ("index_add", lambda i: ROWS.index_add(0, i, ROWS[:1]), 1, -1),
        ("index_copy", lambda i: ROWS.index_copy(0, i, ROWS[:1]), 1, -1),
        ("gather", lambda i: ROWS.gather(1, i.view(1, 1)), 1, -1),
        ("scatter", lambda i: ROWS.scatter(1, i.view(1, 1), 1.0), 1, 4),
        ("index", lambda i: ROWS[i + 0], -5, -6),
        ("take", lambda i: ROWS.take(i), 1, 20),
        ("nll_loss", lambda i: F.nll_loss(ROWS[:1], i), 1, 4),
        ("division", lambda i: 7 // i, 1, 0),
        ("cross entropy", lambda x: F.binary_cross_entropy(x, x.detach() * 0), 0.5, 1.5),
        ("cross entropy with", lambda y: F.binary_cross_entropy(torch.ones(1), y), 0.5, 1.5),
        ("cross entropy of nan", lambda x: F.binary_cross_entropy(x, x * 0), 0.5, float("nan")),
    )
}
# Operators that have no kernel for integers, or do not write floats to them.
INTEGERS: dict[str, Callable[[Tensor], Any]] = {
    "gelu": F.gelu,
    "softmax": lambda x: x.softmax(0),
    "log_softmax": lambda x: x.log_softmax(0),
    "hardshrink": F.hardshrink,
    "huber_loss": lambda x: F.huber_loss(x, x),
    "lerp": lambda x: torch.lerp(x, x, 0.5),
    "logaddexp": lambda x: torch.logaddexp(x, x),
    "mul_": lambda x: x.mul_(1.5),
    "mul_ of a copy": lambda x: x.clone().mul_(1.5),
}

# Numbers that the operators refuse.
NUMBERS: dict[str, Callable[[Tensor], Any]] = {
    "smooth_l1_loss": lambda x: F.smooth_l1_loss(x, x, beta=-1.0),
    "huber_loss": lambda x: F.huber_loss(x, x, delta=-1.0),
    "celu": lambda x: F.celu(x, 0.0),
    "softshrink": lambda x: F.softshrink(x, -1.0),
    "dropout": lambda x: F.dropout(x, 1.5),
}


def outcome(program: Callable[[Tensor], Any], argument: Tensor) -> Any:
    try:
        return program(argument.clone())
    except Exception as error:
        return error


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("name", VALUES)
def test_values_that_raise(name: str, compiler: str) -> None:
    program, good, bad = VALUES[name]
    expected = outcome(program, bad)
    assert isinstance(expected, Exception)
    for earlier in ([], [good]):
        torch._dynamo.reset()
        compiled = COMPILERS[compiler](program)
        for argument in earlier:
            torch.testing.assert_close(compiled(argument), program(argument))
        found = outcome(compiled, bad)
        assert type(found) is type(expected)
        assert str(found).splitlines()[0] == str(expected).splitlines()[0]
        torch.testing.assert_close(compiled(good), program(good))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("name", INTEGERS)
def test_integers_that_raise(name: str, compiler: str) -> None:
    program, integers = INTEGERS[name], torch.tensor([1, 0, 2])
    expected = outcome(program, integers)
    assert isinstance(expected, RuntimeError)
    torch._dynamo.reset()
    compiled = COMPILERS[compiler](program)
    for _ in range(2):
        found = outcome(compiled, integers)
        assert isinstance(found, RuntimeError)
        assert str(expected).splitlines()[0] in str(found)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_that_raise(name: str, compiler: str) -> None:
    argument = torch.tensor([0.5, -1.0])
    assert isinstance(outcome(NUMBERS[name], argument), (RuntimeError, ValueError))
    torch._dynamo.reset()
    assert isinstance(outcome(COMPILERS[compiler](NUMBERS[name]), argument), Exception)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_program_without_a_derivative_runs_forward(compiler: str) -> None:
    def program(x: Tensor) -> Tensor:
        return x // 1.1

    torch._dynamo.reset()
    compiled = COMPILERS[compiler](program)
    argument = torch.tensor([1.0, 5.0, -3.0], requires_grad=True)
    result = compiled(argument)
    assert torch.equal(result, program(argument))
    with pytest.raises(RuntimeError, match="derivative for aten::floor_divide is not implemented"):
        result.sum().backward()
