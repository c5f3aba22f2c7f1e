"""``assay.compare.same`` answers as ``torch._dynamo.utils.same`` does, but for listed differences.

5,000 random pairs. Where the answers differ, the pair must show one of `DIFFERENCES`, each of which
``docs/compare.md`` explains; a small example of each is below.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._dynamo.utils import same as stock_same

import assay
from assay.compare import Comparison
from compare.pairs import Pair, Pairs

logging.getLogger("torch._dynamo.utils").setLevel(logging.CRITICAL)

PAIRS = 5000


def ours(pair: Pair) -> Comparison:
    return assay.compare.same(pair.reference, pair.result, pair.fp64_reference, **pair.options)


def stock(pair: Pair) -> bool | None:
    """Stock's answer; None if it raises."""
    try:
        return bool(
            stock_same(
                pair.reference,
                pair.result,
                pair.fp64_reference,
                log_error=lambda *_: None,
                **pair.options,
            )
        )
    except Exception:
        return None


def parts(pair: Pair) -> list[Pair]:
    """The pairs inside a pair of containers; none if these do not fit or it is no container."""
    left, right, judge = pair.reference, pair.result, pair.fp64_reference
    if isinstance(left, dict) and isinstance(right, dict) and left.keys() == right.keys():
        judge = dict.fromkeys(left) if judge is None else judge
        if judge.keys() != left.keys():
            return []
        triples = [(left[key], right[key], judge[key]) for key in left]
    elif isinstance(left, list | tuple) and isinstance(right, list | tuple):
        judge = [None] * len(left) if judge is None else judge
        if not len(left) == len(right) == len(judge):
            return []
        triples = list(zip(left, right, judge, strict=True))
    else:
        return []
    return [Pair(*triple, pair.options) for triple in triples]


def is_fp(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return value.is_floating_point() or value.is_complex()
    return isinstance(value, float)


def dense(value: Any) -> torch.Tensor:
    tensor = torch.as_tensor(value)
    return tensor.to_dense() if tensor.is_sparse else tensor


def has_nan(value: Any) -> bool:
    return not is_container(value) and bool(dense(value).isnan().any())


def judge_of(pair: Pair) -> Any:
    return pair.reference if pair.fp64_reference is None else pair.fp64_reference


def is_double(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype == torch.float64


def is_container(value: Any) -> bool:
    return isinstance(value, list | tuple | dict)


def raises(pair: Pair, theirs: bool | None, found: Comparison) -> bool:
    """Stock raises where structures differ; Assay says so."""
    return theirs is None and not found.same


def cannot_compare(pair: Pair, theirs: bool | None, found: Comparison) -> bool:
    """Stock raises for what it cannot compare, and Assay can."""
    left = pair.reference
    is_sparse = isinstance(left, torch.Tensor) and left.is_sparse
    return theirs is None and found.same and (is_sparse or isinstance(left, complex | torch.dtype))


def broadcasts(pair: Pair, theirs: bool | None, found: Comparison) -> bool:
    """Stock takes tensors of different sizes for the same if one can be spread over the other."""
    return bool(theirs) and found.kind == "shape"


def ignores_floats(pair: Pair, theirs: bool | None, found: Comparison) -> bool:
    """Under ``ignore_non_fp`` stock ignores floating point too if there is no float64 reference."""
    ignored = pair.options.get("ignore_non_fp", False) and not is_double(judge_of(pair))
    return bool(theirs) and ignored and is_fp(pair.reference) and found.kind in ("values", "nan")


def reference_is_nan(pair: Pair, theirs: bool | None, found: Comparison) -> bool:
    """With NaN in the float64 reference and ``equal_nan`` stock takes everything for the same."""
    return bool(theirs) and found.kind == "reference" and has_nan(judge_of(pair))


def reference_does_not_fit(pair: Pair, theirs: bool | None, found: Comparison) -> bool:
    """Stock cuts lists to the length of the reference's and spreads it over other sizes."""
    return theirs is not None and found.kind == "reference" and not has_nan(judge_of(pair))


def is_not_finite(pair: Pair, theirs: bool | None, found: Comparison) -> bool:
    """One NaN or infinity decides for a whole tensor in stock; in Assay only for its element."""
    values = (pair.reference, pair.result, judge_of(pair))
    return is_double(judge_of(pair)) and any(not dense(v).isfinite().all() for v in values)


def is_complex(pair: Pair, theirs: bool | None, found: Comparison) -> bool:
    """Complex numbers have no float64 reference in stock, and half of them is not looked at."""
    values = (pair.reference, pair.result, judge_of(pair))
    if not any(isinstance(v, torch.Tensor) and v.is_complex() for v in values):
        return False
    has_judge = dense(judge_of(pair)).dtype == torch.complex128
    return has_judge or found.kind == "dtype" or pair.options.get("cos_similarity", False)


def overflows(pair: Pair, theirs: bool | None, found: Comparison) -> bool:
    """Python's floats are compared as float32 in stock, so that 1e300 is 2e300."""
    return bool(theirs) and isinstance(pair.reference, float) and abs(pair.reference) > 1e38


def tolerates_integers(pair: Pair, theirs: bool | None, found: Comparison) -> bool:
    """Integers are equal or not in Assay; in stock they may be off as floating point may."""
    if not isinstance(pair.reference, torch.Tensor) or is_fp(pair.reference):
        return False
    is_ignored = pair.options.get("ignore_non_fp", False) and found.same
    return is_ignored or (bool(theirs) and found.kind == "integers")


Difference = Callable[[Pair, bool | None, Comparison], bool]
OF_CONTAINERS: list[Difference] = [raises, reference_does_not_fit]
DIFFERENCES: list[Difference] = [
    *OF_CONTAINERS,
    cannot_compare,
    broadcasts,
    ignores_floats,
    reference_is_nan,
    is_not_finite,
    is_complex,
    overflows,
    tolerates_integers,
]


def explain(pair: Pair) -> str | None:
    """The difference that a pair shows; None if Assay and stock agree."""
    theirs, found = stock(pair), ours(pair)
    if theirs == found.same:
        return None
    for part in parts(pair):
        if (why := explain(part)) is not None:
            return why
    for difference in OF_CONTAINERS if is_container(pair.reference) else DIFFERENCES:
        if difference(pair, theirs, found):
            return difference.__name__
    return f"unexplained: stock says {theirs}, Assay {found} for {pair}"


@pytest.mark.filterwarnings("ignore:Casting complex values")
def test_random_pairs() -> None:
    pairs = Pairs(seed=0)
    seen = Counter(explain(pairs.pair()) for _ in range(PAIRS))
    assert not [why for why in seen if why is not None and why.startswith("unexplained")]
    assert set(seen) == {None} | {difference.__name__ for difference in DIFFERENCES}
    assert seen[None] > 0.85 * PAIRS, seen


NAN, INFINITY = float("nan"), float("inf")


def row(*numbers: float, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.tensor(numbers, dtype=dtype)


def double(*numbers: float) -> torch.Tensor:
    return row(*numbers, dtype=torch.float64)


# One pair for each difference: the reference, the result, the float64 reference, the options; what
# stock says (None: it raises) and what Assay says (None: they are the same).
EXAMPLES: dict[str, tuple[Pair, bool | None, str | None]] = {
    "raises": (Pair([1], 1, None, {}), None, "structure"),
    "raises for keys": (Pair({"a": 1}, {"b": 1}, None, {}), None, "structure"),
    "raises for sizes": (Pair(row(1, 2), row(1, 2, 3), None, {}), None, "shape"),
    "cannot_compare": (Pair(1 + 2j, 1 + 2j, None, {}), None, None),
    "broadcasts": (Pair(row(1, 1, 1), row(1), None, {}), True, "shape"),
    "ignores_floats": (Pair(row(1), row(2), None, {"ignore_non_fp": True}), True, "values"),
    "reference_is_nan": (
        Pair(row(1, 2), row(3, 4), double(NAN, 2), {"equal_nan": True}),
        True,
        "reference",
    ),
    "reference_does_not_fit": (
        Pair([row(1), row(1)], [row(1), row(2)], [double(1)], {}),
        True,
        "reference",
    ),
    "is_not_finite, and the rest is wrong": (
        Pair(row(NAN, 1), row(NAN, 5), double(7, 1), {"equal_nan": True}),
        True,
        "values",
    ),
    "is_not_finite, and the rest is right": (
        Pair(row(INFINITY, 1.0), row(INFINITY, 1.001), double(INFINITY, 1.0005), {}),
        False,
        None,
    ),
    "is_complex": (
        Pair(torch.tensor([1 + 1j]), torch.tensor([1 - 1j]), None, {"cos_similarity": True}),
        True,
        "values",
    ),
    "overflows": (Pair(1e300, 2e300, None, {}), True, "values"),
    "tolerates_integers": (
        Pair(row(5000, dtype=torch.int64), row(5001, dtype=torch.int64), None, {"tol": 1e-3}),
        True,
        "integers",
    ),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_differences(name: str) -> None:
    pair, theirs, kind = EXAMPLES[name]
    assert stock(pair) is theirs
    assert ours(pair).kind == kind
