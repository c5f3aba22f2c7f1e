"""`x[...]` and `x[...] = v` against eager: values, strides and whether the result is a view."""

from __future__ import annotations

import operator
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.eager import Outcome, call, check

SIZES = (3, 4, 2)


def make() -> torch.Tensor:
    return torch.arange(24.0).view(SIZES)


BOUNDS = st.none() | st.integers(-5, 5)
SLICES = st.builds(slice, BOUNDS, BOUNDS, st.none() | st.integers(1, 3))


def positions(size: int) -> st.SearchStrategy[Any]:
    return st.integers(-size, size - 1)


def tensor_indices(size: int) -> st.SearchStrategy[Any]:
    lists = st.lists(positions(size), min_size=1, max_size=4)
    return st.one_of(
        lists.map(torch.tensor),
        lists.map(lambda items: torch.tensor(items, dtype=torch.int32)),
        lists,
        st.lists(st.booleans(), min_size=size, max_size=size).map(torch.tensor),
        positions(size).map(torch.tensor),
    )


@st.composite
def indices(draw: st.DrawFn) -> Any:
    """A tuple of what Python allows between the brackets, for a tensor of SIZES."""
    parts: list[Any] = []
    ellipsis_used = False
    for size in SIZES[: draw(st.integers(0, 3))]:
        if draw(st.integers(0, 6)) == 0:
            parts.append(draw(st.sampled_from([None, True, None])))
        if not ellipsis_used and draw(st.integers(0, 6)) == 0:
            parts.append(...)
            ellipsis_used = True
        kind = draw(st.integers(0, 3))
        parts.append(
            draw(positions(size) if kind == 0 else tensor_indices(size) if kind == 1 else SLICES)
        )
    if len(parts) == 1 and draw(st.booleans()):
        return parts[0]
    return tuple(parts)


@settings(max_examples=400, deadline=None)
@given(indices())
@pytest.mark.filterwarnings("ignore")
def test_getitem(index: Any) -> None:
    x = make()
    try:
        expected = x[index]
    except (IndexError, RuntimeError, TypeError):
        check("operator.getitem", operator.getitem, x, index)
        return
    check("operator.getitem", operator.getitem, x, index)
    found = call("operator.getitem", x, index)
    assert (found.data_ptr() == x.data_ptr()) == (expected.data_ptr() == x.data_ptr())
    assert (found._base is None) == (expected._base is None)


@settings(max_examples=400, deadline=None)
@given(indices(), st.sampled_from([2.5, 3, True, "same", "one", "row"]))
@pytest.mark.filterwarnings("ignore")
def test_setitem(index: Any, value: Any) -> None:
    x = make()
    if isinstance(value, str):
        try:
            shape = x[index].shape
        except (IndexError, RuntimeError, TypeError):
            return
        full = torch.arange(shape.numel(), dtype=torch.float32).reshape(shape)
        value = {"same": full, "one": torch.tensor(5.0), "row": full[:1] if shape else full}[value]
    eager = Outcome(operator.setitem, (x, index, value), {})
    found = Outcome(lambda *a: call("operator.setitem", *a), (x, index, value), {})
    assert (eager.error is None) == (found.error is None), (eager.error, found.error)
    assert torch.equal(eager.args[0], found.args[0])


@pytest.mark.parametrize(
    "index",
    [
        [[0, 1], [1, 2]],
        [0, slice(None)],
        [None, 0],
        [..., 0],
        [],
        ([0, 2], [1, 1]),
        [torch.tensor([0, 1]), torch.tensor([1, 2])],
        False,
        (0, True),
        slice(torch.tensor(1), None),
        (slice(None), [[0, 1], [1, 2]]),
        torch.ones(3, 4, dtype=torch.bool),
        torch.ones(3, dtype=torch.uint8),
        list(range(3)) * 12,
        slice(None, None, -1),
        (0, 0, 0, 0),
        9,
        "a",
        0.5,
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore")
def test_unusual_indices(index: Any) -> None:
    check("operator.getitem", operator.getitem, make(), index)


@pytest.mark.parametrize("sequence", [[1, 2, 3], (4, 5, 6, 7), ()], ids=str)
@pytest.mark.parametrize(
    "index", [0, -1, 2, 7, -9, slice(None), slice(1, -1), slice(None, None, -1), slice(9, 0, -2)]
)
def test_items_of_sequences(sequence: Any, index: Any) -> None:
    check("operator.getitem", operator.getitem, sequence, index)


def test_items_of_results_and_dicts() -> None:
    parts = call(".split", torch.arange(6.0), 2)
    assert torch.equal(call("operator.getitem", parts, -1), torch.tensor([4.0, 5.0]))
    assert call("operator.getitem", {"a": 1, "b": 2}, "b") == 2
