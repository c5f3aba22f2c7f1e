"""Python's operators, builtins and math functions against Python itself, on numbers and tensors."""

from __future__ import annotations

import builtins
import math
import operator
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay import UserError
from conformance.eager import call, check

INTEGERS = st.one_of(st.integers(-9, 9), st.integers(-(2**63), 2**63 - 1), st.booleans())
FLOATS = st.one_of(
    st.sampled_from([0.0, -0.0, 0.5, -2.0, 3.0, math.inf, -math.inf, math.nan]), st.floats()
)
NUMBERS = INTEGERS | FLOATS
BINARY = [
    "add sub mul truediv floordiv mod pow lshift rshift and_ or_ xor",
    "iadd isub imul itruediv ifloordiv imod ipow ilshift irshift iand ior ixor",
    "eq ne lt le gt ge",
]
UNARY = ["neg", "pos", "abs", "invert", "not_", "truth", "index"]
MATH = "sqrt exp expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh fabs"
ROUNDING = ["floor", "ceil", "trunc"]


def agrees(found: Any, expected: Any) -> bool:
    if type(found) is not type(expected):
        return False
    if isinstance(expected, float):
        if math.isnan(expected):
            return math.isnan(found)
        return found == expected and math.copysign(1, found) == math.copysign(1, expected)
    return found == expected


def check_number(name: str, function: Any, *args: Any) -> None:
    """Python's result; an error where Python raises or 64 bits cannot hold it."""
    try:
        expected = function(*args)
    except (ArithmeticError, ValueError, TypeError):
        with pytest.raises(UserError):
            call(name, *args)
        return
    try:
        found = call(name, *args)
    except UserError as error:
        too_large = isinstance(expected, int) and not -(2**63) <= expected < 2**63
        assert too_large or isinstance(expected, complex) or "2**53" in str(error), (args, error)
        return
    assert agrees(found, expected), f"{name}{args}: {found!r}, expected {expected!r}"


@pytest.mark.parametrize("name", " ".join(BINARY).split())
@settings(max_examples=80, deadline=None)
@given(st.data())
def test_binary_operators_on_numbers(name: str, data: st.DataObject) -> None:
    left, right = data.draw(NUMBERS), data.draw(NUMBERS)
    is_power = name in ("pow", "ipow")
    if (is_power or "shift" in name) and isinstance(right, int) and abs(right) > 200:
        right %= 200  # Python would build the number
    check_number(f"operator.{name}", getattr(operator, name), left, right)


@pytest.mark.parametrize("name", UNARY)
@settings(max_examples=40, deadline=None)
@given(NUMBERS)
def test_unary_operators_on_numbers(name: str, number: Any) -> None:
    check_number(f"operator.{name}", getattr(operator, name), number)


@pytest.mark.parametrize("name", [*MATH.split(), *ROUNDING, "isnan", "isinf", "isfinite"])
@settings(max_examples=60, deadline=None)
@given(NUMBERS)
def test_math(name: str, number: Any) -> None:
    check_number(f"math.{name}", getattr(math, name), number)


@pytest.mark.parametrize("name", ["pow", "fmod", "atan2", "copysign", "log"])
@settings(max_examples=60, deadline=None)
@given(NUMBERS, NUMBERS)
def test_math_of_two(name: str, left: Any, right: Any) -> None:
    check_number(f"math.{name}", getattr(math, name), left, right)


@pytest.mark.parametrize("name", ["int", "float", "bool", "abs", "round"])
@settings(max_examples=60, deadline=None)
@given(NUMBERS)
def test_builtins(name: str, number: Any) -> None:
    check_number(name, getattr(builtins, name), number)


@settings(max_examples=100, deadline=None)
@given(st.lists(NUMBERS, min_size=2, max_size=4))
def test_max_min_sum(numbers: list[Any]) -> None:
    check_number("max", max, *numbers)
    check_number("min", min, numbers)
    check_number("torch.sym_max", torch.sym_max, *numbers[:2])
    check_number("torch.sym_min", torch.sym_min, *numbers[:2])
    if all(abs(number) < 2**60 for number in numbers if isinstance(number, int)):
        check_number("sum", sum, numbers)


TENSORS = {
    "float": torch.tensor([0.5, -2.0, 3.25, 0.0]),
    "int": torch.tensor([1, -2, 3, 7]),
    "bool": torch.tensor([True, False, True, True]),
    "half": torch.tensor([0.5, -2.0, 3.25, 1.0], dtype=torch.float16),
    "scalar": torch.tensor(2.0, dtype=torch.float64),
    "complex": torch.tensor([1 + 2j, 3j, -1.0, 0.5]),
}


@pytest.mark.parametrize("name", [*" ".join(BINARY).split(), "matmul", "imatmul"])
@pytest.mark.parametrize("kind", TENSORS)
def test_binary_operators_on_tensors(name: str, kind: str) -> None:
    function = getattr(operator, name)
    for other in [2, -3, 0.7, True, 1 + 1j, *TENSORS.values()]:
        check(f"operator.{name}", function, TENSORS[kind], other)
        check(f"operator.{name}", function, other, TENSORS[kind])


@pytest.mark.parametrize("name", [name for name in UNARY if name not in ("truth", "not_", "index")])
@pytest.mark.parametrize("kind", TENSORS)
def test_unary_operators_on_tensors(name: str, kind: str) -> None:
    check(f"operator.{name}", getattr(operator, name), TENSORS[kind])


REFLECTED = "radd rsub rmul rtruediv rfloordiv rmod rpow rlshift rrshift rand ror rxor".split()


@pytest.mark.parametrize("name", REFLECTED)
def test_reflected_methods(name: str) -> None:
    method = getattr(torch.Tensor, f"__{name}__")
    for kind in ("float", "int"):
        for other in (2, 0.5, TENSORS["float"], TENSORS["int"]):
            if method(TENSORS["int"], 1) is NotImplemented:
                continue
            try:
                method(TENSORS[kind].clone(), other)
            except (RuntimeError, TypeError):
                continue
            check(f".__{name}__", method, TENSORS[kind], other)


def test_sequences() -> None:
    assert call("operator.add", [1, 2], [3]) == [1, 2, 3]
    assert call("operator.add", (1,), (2,)) == (1, 2)
    assert call("operator.mul", [0], 3) == [0, 0, 0]
    assert call("operator.mul", 2, (1, 2)) == (1, 2, 1, 2)
    assert call("operator.eq", (1, 2), (1, 2.0)) is True
    assert call("operator.eq", [1], (1,)) is False
    assert call("operator.ne", "a", "b") is True
    assert call("operator.eq", torch.float32, torch.float32) is True
    assert call("operator.eq", torch.ones(2), None) is False
    assert call("len", [1, 2]) == 2
    assert call("len", torch.ones(3, 2)) == 3
    assert call("tuple", [1, 2]) == (1, 2)
    with pytest.raises(UserError):
        call("operator.iadd", [1], [2])


def test_names_as_fx_writes_them() -> None:
    assert call("math_trunc", 2.7) == 2
    assert call("_operator_abs", -3) == 3
    assert call("math.prod", (2, 3, 4)) == 24
    assert call("torch._sym_sqrt", 9) == 3.0
    assert call(".__round__", 2.5) == 2


@pytest.mark.parametrize(
    "name", "shape dtype device layout ndim T mT real requires_grad is_cuda itemsize nbytes".split()
)
def test_attributes(name: str) -> None:
    check("getattr", getattr, torch.ones(2, 3), name)
