"""When a program is compiled again, when it is not, and what is said about it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import assay
from autograd.calls import MODES
from autograd.compare import leaf, plain


def _sharing() -> tuple[Any, ...]:
    x = plain(3, 4)
    return x, x


CHANGES: dict[str, Callable[[], tuple[Any, ...]]] = {
    "dtype": lambda: (plain(3, 4, dtype=torch.float64), plain(3, 4)),
    "sizes": lambda: (plain(1, 4), plain(3, 4)),
    "number of dimensions": lambda: (plain(2, 3, 4), plain(3, 4)),
    "strides": lambda: (plain(4, 3).t(), plain(3, 4)),
    "requires_grad": lambda: (leaf(3, 4), plain(3, 4)),
    "number": lambda: (plain(3, 4), 2.5),
    "shared memory": _sharing,
}


@pytest.mark.parametrize("change", CHANGES)
def test_compiles_again_for_another(change: str) -> None:
    compiled = assay.aot.compile(torch.mul)
    first: tuple[Any, ...] = (plain(3, 4), plain(3, 4))
    second = CHANGES[change]()
    for _ in range(2):
        for args in (first, second):
            assert torch.equal(compiled(*args), torch.mul(*args))
    assert len(compiled.graphs) == 2


@pytest.mark.parametrize(
    ("first", "second"), [(1, 2), (1, 1.0), (1, True), ("sum", "mean"), (None, 1), ((1, 2), (2, 1))]
)
def test_compiles_again_for_another_value(first: Any, second: Any) -> None:
    compiled = assay.aot.compile(lambda x, value: (x * 2, value))
    x = plain(3)
    for _ in range(2):
        for value in (first, second):
            result = compiled(x, value)[1]
            assert result == value and type(result) is type(value)
    assert len(compiled.graphs) == 2


def test_compiles_again_in_another_mode() -> None:
    compiled = assay.aot.compile(F.linear)
    x, w = leaf(3, 4), leaf(2, 4)
    modes = [nullcontext, *list(MODES.values())[:4]]
    for _ in range(2):
        for mode in modes:
            with mode():
                found, expected = compiled(x, w), F.linear(x, w)
            assert found.dtype == expected.dtype and found.requires_grad == expected.requires_grad
    assert len(compiled.graphs) == len(modes)


def test_compiles_again_for_another_default_dtype() -> None:
    compiled = assay.aot.compile(lambda x: x * torch.ones(4))
    x = torch.arange(4)
    try:
        for dtype in (torch.float32, torch.float64, torch.float32):
            torch.set_default_dtype(dtype)
            assert compiled(x).dtype == dtype
    finally:
        torch.set_default_dtype(torch.float32)
    assert len(compiled.graphs) == 2


def test_does_not_compile_again_for_other_values() -> None:
    compiled = assay.aot.compile(lambda x, y: x * y)
    base = plain(8, 4)
    for x, y in [
        (plain(3, 4), plain(3, 4)),
        (base[:3], plain(3, 4)),
        (base[2:5], plain(3, 4)),
        (plain(3, 4).detach(), torch.empty(3, 4).fill_(2)),
    ]:
        assert torch.equal(compiled(x, y), x * y)
    assert len(compiled.graphs) == 1


def test_the_recompiles_log_says_why(capfd: pytest.CaptureFixture[str]) -> None:
    assay.set_logs("recompiles")
    try:
        compiled = assay.aot.compile(torch.sin)
        compiled(plain(3))
        compiled(plain(4))
    finally:
        assay.set_logs("")
    text = capfd.readouterr().err
    assert "recompiling 'sin'" in text
    assert "size" in text


def test_past_the_limit_it_runs_eagerly_with_one_warning(
    capfd: pytest.CaptureFixture[str],
) -> None:
    compiled = assay.aot.compile(torch.sin, cache_size_limit=2, backend="aot_eager")
    for size in (1, 2, 3, 4, 3, 1):
        x = leaf(size)
        y = compiled(x)
        assert torch.equal(y, x.sin())
        assert torch.equal(torch.autograd.grad(y.sum(), x)[0], x.cos())
    assert len(compiled.graphs) == 2
    warnings = [
        line for line in capfd.readouterr().err.splitlines() if "which is its limit" in line
    ]
    assert len(warnings) == 1
    assert "'sin' was compiled 2 times" in warnings[0]


def test_the_limit_is_a_setting() -> None:
    compiled = assay.aot.compile(lambda x: x + 1, backend="eager")
    with assay.config.patch(cache_size_limit=2):
        for dim in range(1, 5):
            assert torch.equal(compiled(torch.zeros([2] * dim)), torch.ones([2] * dim))
    assert len(compiled.graphs) == 2


def test_other_sizes_have_a_limit_of_their_own() -> None:
    compiled = assay.aot.compile(lambda x: x + 1, backend="eager")
    with assay.config.patch(cache_size_limit=2, accumulated_cache_size_limit=6):
        for size in range(1, 9):
            assert torch.equal(compiled(torch.zeros(size)), torch.ones(size))
    assert len(compiled.graphs) == 6
