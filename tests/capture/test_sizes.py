"""What was captured for two sizes or numbers is captured once more, for all of them."""

from __future__ import annotations

import random
import types
from typing import Any

import pytest
import torch

import assay
from capture.random_sizes import generate


def same(left: Any, right: Any) -> bool:
    if type(left) is not type(right):
        return False
    if isinstance(left, torch.Tensor):
        return (
            left.shape == right.shape
            and left.stride() == right.stride()
            and left.dtype == right.dtype
            and torch.allclose(left, right, rtol=1e-4, atol=1e-5, equal_nan=True)
        )
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[k], right[k]) for k in left)
    return bool(left == right)


def outcome(function: Any, module: Any, x: torch.Tensor, y: torch.Tensor, *numbers: Any) -> Any:
    try:
        data = [[numbers[0], 2], {"k": numbers[0]}]
        result = function(x, y, *numbers, data, 7, key=numbers[0])
    except Exception as error:
        return type(error), str(error).splitlines()[:1]
    return result, x, module.box.kept, module.box.count, module.G


class Counting:
    """Backend `eager`, and how often it was asked to compile."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, gm: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
        self.count += 1
        return gm.forward


def recordings(function: Any, inputs: list[tuple[Any, ...]], **settings: Any) -> int:
    """How often a function is recorded for these calls, all of which must give eager's results."""
    compiled = assay.compile(function, backend="eager", **settings)
    for args in inputs:
        assert same(function(*args), compiled(*args)), args
    return len(assay._C.capture_records(compiled))


def rows(*sizes: int) -> list[tuple[torch.Tensor]]:
    return [(torch.randn(size, 4),) for size in sizes]


SIZES = rows(3, 5, 7, 9, 2, 1, 0, 5, 7, 11)


def heads(x: torch.Tensor) -> torch.Tensor:
    batch, width = x.shape
    q = x.view(batch, 1, 2, width // 2).transpose(1, 2)
    return torch.nn.functional.scaled_dot_product_attention(q, q, q).flatten(1)


def joined(x: torch.Tensor) -> Any:
    y = torch.cat([x, x]).relu()
    return y.view(x.shape[0], 2, y.shape[1]), y.shape[0] // 2, [y.shape, (y.numel(), "text")]


def from_sizes(x: torch.Tensor) -> Any:
    return torch.arange(len(x)), torch.zeros(x.shape), x.new_ones(x.size(0), 2), x[: x.size(0) - 1]


def halves(x: torch.Tensor) -> torch.Tensor:
    left, right = x.chunk(2, dim=1)
    return left * right


@pytest.mark.parametrize("function", [heads, joined, from_sizes, halves])
def test_one_recording_fits_all_further_sizes(function: Any) -> None:
    assert recordings(function, SIZES) == 2
    assert recordings(function, SIZES, dynamic=True) == 1
    assert recordings(function, SIZES, dynamic=False) == 8


def test_a_size_that_decides_has_one_recording_for_each_way() -> None:
    def by_input(x: torch.Tensor) -> torch.Tensor:
        return x + 1 if x.shape[0] > 4 else x - 1

    def by_result(x: torch.Tensor) -> torch.Tensor:
        y = torch.cat([x, x]).relu()
        return y + 1 if y.shape[0] > 10 else y - 1

    assert recordings(by_input, SIZES, dynamic=True) == 2
    assert recordings(by_result, SIZES, dynamic=True) == 2


def test_a_size_that_is_looked_at_is_fixed() -> None:
    def loop(x: torch.Tensor) -> torch.Tensor:
        total = torch.zeros(4)
        for i in range(x.shape[0]):
            total = total + x[i]
        return total

    def text(x: torch.Tensor) -> Any:
        return x + 1, f"{x.shape[0]} rows"

    for function in (loop, text):
        assert recordings(function, SIZES, dynamic=True) == 8


def test_numbers_that_are_kept_are_those_of_the_call() -> None:
    class Box:
        kept: Any = None

    box = Box()

    def function(x: torch.Tensor) -> torch.Tensor:
        box.kept = {"size": x.shape[0], "sizes": [*x.shape]}
        return x * x.shape[0]

    compiled = assay.compile(function, backend="eager", dynamic=True)
    for (x,) in SIZES:
        compiled(x)
        assert box.kept == {"size": len(x), "sizes": [len(x), 4]}
        assert type(box.kept["size"]) is int


def test_inputs_that_are_mutated() -> None:
    def function(x: torch.Tensor) -> int:
        x.add_(x.shape[0])
        return x.shape[0] * 2

    compiled = assay.compile(function, backend="aot_eager")
    for size in (2, 3, 4, 5, 4):
        x = torch.zeros(size)
        assert compiled(x) == 2 * size
        assert x.tolist() == [size] * size


def test_sizes_that_come_again_are_compiled_for_themselves() -> None:
    counting = Counting()
    compiled = assay.compile(lambda x: x * 2 + x.shape[0], backend=counting)
    for size in (2, 3, 4, 5, 6):
        compiled(torch.ones(size))
    assert counting.count == 2
    for _ in range(3):
        assert compiled(torch.ones(6)).tolist() == [8.0] * 6
    assert counting.count == 3


def test_more_sizes_in_turns_than_may_be_kept_are_not_compiled_again_and_again() -> None:
    counting = Counting()
    with assay.config.patch(accumulated_cache_size_limit=4):
        compiled = assay.compile(lambda x: x * 2, backend=counting)
        for _ in range(20):
            for size in range(2, 9):
                assert compiled(torch.ones(size)).tolist() == [2.0] * size
        assert counting.count == 5  # the first size, and four of those that came again
        for _ in range(40):
            compiled(torch.ones(20))
        assert counting.count == 6  # the others have not come for long


def test_gradients_of_sizes_that_come_once_and_again() -> None:
    linear = torch.nn.Linear(4, 3)

    def function(x: torch.Tensor) -> torch.Tensor:
        return (linear(x).relu() / x.shape[0]).sum()

    compiled = assay.compile(function, backend="native")
    for (x,) in rows(2, 3, 5, 7, 5, 5):
        found = []
        for run in (function, compiled):
            linear.zero_grad()
            leaf = x.clone().requires_grad_()
            run(leaf).backward()
            assert leaf.grad is not None and linear.weight.grad is not None
            found.append((leaf.grad, linear.weight.grad.clone()))
        torch.testing.assert_close(found[0], found[1])


def test_mark_dynamic_opens_a_dimension_from_the_first_call_on() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x.reshape(-1, x.shape[0]) + 1

    compiled = assay.compile(function, backend="eager")
    for size in (3, 4, 5):
        x = torch.randn(size, 2)
        assay.mark_dynamic(x, 0)
        assert torch.equal(compiled(x), function(x))
    assert len(assay._C.capture_records(compiled)) == 1


def test_the_setting_turns_it_off() -> None:
    with assay.config.patch(automatic_dynamic_shapes=False):
        assert recordings(heads, SIZES[:5]) == 5


X = torch.ones(2, 2)


def with_kinds(x: torch.Tensor, n: int) -> Any:
    return x * n, torch.full((2,), n), [n, {"next": n + 1}], -n


def scaled(x: torch.Tensor, factor: float) -> Any:
    return x * factor, factor


def of_dict(x: torch.Tensor, numbers: dict[str, int]) -> Any:
    return x + numbers["n"], numbers["n"] // 2


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "native"])
def test_one_recording_fits_all_further_numbers(backend: str) -> None:
    for function, arguments in (
        (with_kinds, list(range(12))),
        (scaled, [0.5 * i for i in range(12)]),
        (of_dict, [{"n": i} for i in range(12)]),
    ):
        compiled = assay.compile(function, backend=backend)
        for argument in [*arguments, *arguments]:
            assert same(function(X, argument), compiled(X, argument))
        assert len(assay._C.capture_records(compiled)) == 2


def test_a_number_that_decides_has_one_recording_for_each_way() -> None:
    def function(x: torch.Tensor, n: int) -> torch.Tensor:
        return x + n if n > 5 else x - n

    assert recordings(function, [(X, n) for n in range(12)]) == 3


def test_a_float_that_is_compared_is_fixed() -> None:
    def function(x: torch.Tensor, factor: float) -> torch.Tensor:
        return x * factor if factor > 0.5 else x + factor

    assert recordings(function, [(X, 0.1 * n) for n in range(6)]) == 6


def test_a_number_of_more_than_64_bits_is_recorded_for_itself() -> None:
    def function(x: torch.Tensor, n: int) -> Any:
        return x + 1, n - 1

    numbers = [1, 2, 3, 2**40, 2**63, 2**64, 2**62, 2**63]
    assert recordings(function, [(X, n) for n in numbers]) == 4


def test_identity_of_numbers() -> None:
    two = 2

    def function(x: torch.Tensor, numbers: list[int], other: int) -> Any:
        first = numbers[0]
        return x + first, first is numbers[1], first is other, first - 998 is two

    calls = [(X, [n, n], other) for n in range(1000, 1004) for other in (n, 5)]
    recordings(function, calls)


class Stepping(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.step = 0
        self.linear = torch.nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.step += 1
        return self.linear(x)


def test_a_counter_is_no_reason_to_compile_anew() -> None:
    counting = Counting()
    model = Stepping()
    compiled = assay.compile(model, backend=counting)
    for _ in range(20):
        assert torch.equal(compiled(X), model.linear(X))
    assert model.step == 20
    assert counting.count == 2


def test_counters_of_enclosing_functions_and_globals() -> None:
    def make() -> Any:
        count = 0

        def function(x: torch.Tensor) -> torch.Tensor:
            nonlocal count
            global CALLS
            count += 1
            CALLS += 2
            return x * count + CALLS

        return function

    compiled = assay.compile(make(), backend="eager")
    for i in range(1, 13):
        assert torch.equal(compiled(X), X * i + CALLS)
        assert CALLS == 2 * i
    assert len(assay._C.capture_records(compiled)) == 2


CALLS = 0


def test_a_cache_that_grows() -> None:
    """As when a language model generates: each step sees keys of another length."""

    def step(x: torch.Tensor, keys: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        keys = torch.cat([keys, x], dim=1)
        length = keys.shape[1]
        mask = torch.arange(length)[None, :] <= length
        return torch.nn.functional.scaled_dot_product_attention(x, keys, keys, mask), keys

    compiled = assay.compile(step)
    keys = torch.randn(1, 1, 8)
    for _ in range(100):
        x = torch.randn(1, 1, 8)
        expected = step(x, keys)
        found = compiled(x, keys)
        torch.testing.assert_close(found, expected)
        keys = found[1]
    assert len(assay._C.capture_records(compiled)) == 2


def world(seed: int) -> types.ModuleType:
    module = types.ModuleType("sizes_program")
    exec(compile(generate(seed), f"<sizes {seed}>", "exec"), module.__dict__)
    return module


def check_seed(seed: int) -> None:
    eager, subject = world(seed), world(seed)
    backend = ("eager", "aot_eager", "native")[seed % 3]
    dynamic = True if seed % 5 == 0 else None
    compiled = assay.compile(subject.f, backend=backend, dynamic=dynamic)
    choices = random.Random(seed)
    generator = torch.Generator().manual_seed(seed)
    for call in range(9):
        n, m = choices.choice((1, 2, 3, 4, 5, 6, 7, 9)), choices.choice((2, 3, 4, 5, 8))
        numbers = choices.choice((0, 1, 2, 3, 5, 300)), choices.choice((0.5, 1.0, 1.5, 2.25))
        x = torch.randn(n, m, generator=generator)
        y = torch.randn(n, 3, generator=generator)
        expected = outcome(eager.f, eager, x.clone(), y.clone(), *numbers)
        found = outcome(compiled, subject, x.clone(), y.clone(), *numbers)
        assert same(expected, found), (
            f"seed {seed}, {backend}, call {call}: {expected}\n{found}\n{generate(seed)}"
        )


def test_random_programs_seldom_raise() -> None:
    raised = 0
    for seed in range(40):
        module = world(seed)
        found = outcome(module.f, module, torch.ones(4, 3), torch.ones(4, 3), 2, 0.5)
        raised += isinstance(found[0], type)
    assert raised <= 10


@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed: int) -> None:
    check_seed(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60, 1060))
def test_more_random_programs(seed: int) -> None:
    check_seed(seed)
