"""Infinities and NaNs of a compiled program are where eager has them, or where float64 does."""

from __future__ import annotations

import pytest
import torch

from assay.stock.accuracy import Run, compare

INF, NAN = float("inf"), float("nan")

# By case: eager's, the compiled program's and float64's results, and the kind of difference.
CASES: dict[str, tuple[list[float], list[float], list[float] | None, str | None]] = {
    "the same ones": ([1, INF, -INF, NAN], [1, INF, -INF, NAN], [1, INF, -INF, NAN], None),
    "one that is wrong among those that are right": (
        [1, 2, INF, NAN],
        [1, INF, INF, NAN],
        [1, 2, INF, NAN],
        "values",
    ),
    "a NaN that is wrong": ([1, INF], [NAN, INF], [1, INF], "nan"),
    "another sign": ([1, INF], [1, -INF], [1, INF], "values"),
    "a number that is wrong among infinities": ([1, 5, INF], [1, 6, INF], [1, 5, INF], "values"),
    "eager overflows, float64 does not": ([1, INF], [1, 4e4], [1, 4e4], None),
    "eager overflows, the result is wrong too": ([1, INF], [1, 5], [1, 4e4], "values"),
    "without float64": ([1, INF], [1, 4e4], None, "values"),
}


@pytest.mark.parametrize("case", CASES)
def test_special_values(case: str) -> None:
    eager, compiled, wide, kind = CASES[case]
    reference = None if wide is None else Run([torch.tensor(wide, dtype=torch.float64)])
    found = compare(
        Run([torch.tensor(eager, dtype=torch.float32)]),
        Run([torch.tensor(compiled, dtype=torch.float32)]),
        reference,
        tolerance=1e-3,
        ignore_non_fp=False,
    )
    assert (found and found["kind"]) == kind, found


def test_complex_numbers() -> None:
    eager = Run([torch.tensor([complex(1, INF), 2 + 2j])])
    same = compare(eager, eager, None, tolerance=1e-3, ignore_non_fp=False)
    assert same is None
    other = Run([torch.tensor([complex(INF, 1), 2 + 2j])])
    found = compare(eager, other, None, tolerance=1e-3, ignore_non_fp=False)
    assert found is not None and found["kind"] == "values"
