"""Which loop is made of vectors: what these programs do was several times slower than eager."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import assay
from kernels.against_eager import Program
from kernels.schedules import steps_of


def rows_and_columns(x: Tensor, y: Tensor) -> Tensor:
    return (x * y).sum(0) + (x * y.cos()).sum(1)


def test_sums_over_rows_and_over_columns_are_two_loops(capfd: pytest.CaptureFixture[str]) -> None:
    inputs = [torch.randn(512, 512), torch.randn(512, 512)]
    steps = steps_of(capfd, rows_and_columns, inputs)
    assert ["outer" in step for step in steps] == [True, False]


def test_small_sums_of_both_kinds_share_a_loop(capfd: pytest.CaptureFixture[str]) -> None:
    assert len(steps_of(capfd, rows_and_columns, [torch.randn(32, 32), torch.randn(32, 32)])) == 1


def add_rows(x: Tensor, i: Tensor, y: Tensor) -> Tensor:
    return x.index_add(0, i, y)


def add_columns(x: Tensor, i: Tensor, y: Tensor) -> Tensor:
    return x.t().index_add(1, i, y.t())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.int8])
@pytest.mark.parametrize("columns", [8, 13, 16, 64, 100])
@pytest.mark.parametrize("function", [add_rows, add_columns])
def test_added_rows(function: Callable[..., Tensor], columns: int, dtype: torch.dtype) -> None:
    """Several rows go to one place, in eager's order."""

    def make() -> list[Tensor]:
        x, y = (torch.randn(rows, columns).mul(9).to(dtype) for rows in (5, 40))
        return [x, torch.randint(0, 5, (40,)), y]

    text = Program(function, make).difference()
    assert not text, text


def test_rows_are_written_as_vectors(capfd: pytest.CaptureFixture[str]) -> None:
    inputs = [torch.randn(50, 64), torch.randint(0, 50, (400,)), torch.randn(400, 64)]
    steps = steps_of(capfd, add_rows, inputs)
    assert "vectors of inner loops" in steps[-1]


def test_elements_that_may_meet_are_written_one_by_one(capfd: pytest.CaptureFixture[str]) -> None:
    def count(x: Tensor, i: Tensor, y: Tensor) -> Tensor:
        return x.scatter_add(0, i, y)

    inputs = [torch.zeros(50), torch.randint(0, 50, (400,)), torch.ones(400)]
    assert "vectors" not in steps_of(capfd, count, inputs)[-1]


def test_rows_that_are_looked_up_are_added_along_them(capfd: pytest.CaptureFixture[str]) -> None:
    def bags(table: Tensor, i: Tensor) -> Tensor:
        return table[i].sum(1)

    inputs = [torch.randn(1000, 64), torch.randint(0, 1000, (50, 10))]
    assert "vectors of outer loops" in steps_of(capfd, bags, inputs)[-1]
    torch.testing.assert_close(assay.aot.compile(bags)(*inputs), bags(*inputs))


DIVISIONS: dict[str, Callable[[Tensor, int], Tensor]] = {
    "//": lambda x, n: x // n,
    "%": lambda x, n: x % n,
    "trunc": lambda x, n: torch.div(x, n, rounding_mode="trunc"),
    "fmod": torch.fmod,
    "**": lambda x, n: x ** abs(n),
    "<<": lambda x, n: x << n,
    ">>": lambda x, n: x >> n,
}


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8])
@pytest.mark.parametrize("name", DIVISIONS)
def test_integers_and_a_constant(name: str, dtype: torch.dtype) -> None:
    """The compiler multiplies instead of dividing by a constant, and all of them have extremes."""
    bits = torch.iinfo(dtype)
    ends = [bits.min, bits.min + 1, bits.max, bits.max - 1]
    x = torch.cat([torch.tensor(ends, dtype=dtype), torch.arange(-30, 31).to(dtype)])
    function = DIVISIONS[name]
    for number in (1, 2, 3, 7, 8, 100, -1, -2, -7):
        if number < 0 and (dtype == torch.uint8 or name in ("<<", ">>")):
            continue

        def run(x: Tensor, number: int = number) -> Tensor:
            return function(x, number) + 1

        # The smallest number by -1 kills the process in eager.
        inputs = x[1:] if number == -1 else x
        result = assay.aot.compile(run, backend="native")(inputs)
        assert torch.equal(result, run(inputs)), number


COMPARISONS = [torch.eq, torch.ne, torch.lt, torch.le, torch.gt, torch.ge]


@pytest.mark.parametrize("step", [1, 3, -2])
@pytest.mark.parametrize("is_first", [True, False])
def test_indices_and_a_number_of_each_row(is_first: bool, step: int) -> None:
    """Compared by their distance, which may not fit into 64 bits."""

    def run(numbers: Tensor) -> Tensor:
        indices = torch.arange(0, 100, abs(step)) * (1 if step > 0 else -1)
        found = [
            compare(indices, numbers) if is_first else compare(numbers, indices)
            for compare in COMPARISONS
        ]
        return torch.stack(found).float().cumsum(0)

    ends = [-(2**63), -(2**63) + 5, -(2**31), -1, 0, 1, 7, 30, 99, 2**31, 2**32, 2**63 - 1]
    numbers = torch.tensor(ends)[:, None]
    assert torch.equal(assay.aot.compile(run, backend="native")(numbers), run(numbers))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8, torch.bool])
@pytest.mark.parametrize("columns", [5, 16, 33, 100])
def test_edges_of_padding(columns: int, dtype: torch.dtype) -> None:
    def run(x: Tensor) -> list[Tensor]:
        padded = torch.nn.functional.pad(x, (3, 2, 1, 0))
        return [padded, padded.flip(-1), torch.nn.functional.pad(x.flip(-1), (1, 40))]

    x = torch.randn(3, columns).mul(9).to(dtype)
    for result, expected in zip(assay.aot.compile(run)(x), run(x), strict=True):
        assert torch.equal(result, expected)


HALF_PROGRAMS: list[Callable[[Tensor], Tensor]] = [
    lambda x: -x.abs().relu() - 1,
    lambda x: torch.where(x > 0, x, 0.1) + 1,
    lambda x: torch.maximum(x, -x * 3).neg() * 1.1,
    lambda x: (x * 3).clamp(-1.5, 2.25) * (x * 5),
]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("function", HALF_PROGRAMS)
def test_halves_are_rounded_where_eager_rounds(
    function: Callable[[Tensor], Tensor], dtype: torch.dtype
) -> None:
    x = torch.randn(1000).to(dtype)
    assert torch.equal(assay.aot.compile(function, backend="native")(x), function(x))
