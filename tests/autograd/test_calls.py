"""What callers do with compiled programs: hooks, several backwards, changed results, threads."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import assay
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from autograd.compare import SEED, computed, leaf, plain


def network() -> nn.Sequential:
    torch.manual_seed(SEED)
    return nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 2))


def both(program: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    """The program itself, then compiled; the generator is seeded before each."""
    for version in (program, assay.aot.compile(program, backend="aot_eager")):
        torch.manual_seed(SEED)
        yield version


def assert_same(found: Sequence[Tensor | None], expected: Sequence[Tensor | None]) -> None:
    assert len(found) == len(expected)
    for left, right in zip(found, expected, strict=True):
        if left is None or right is None:
            assert left is right
        else:
            torch.testing.assert_close(left, right, rtol=0, atol=0)


# --- Backward -------------------------------------------------------------------------------------


def test_hooks_on_inputs_results_and_parameters() -> None:
    outcomes = []
    for version in both(network()):
        x = computed(3, 4)
        seen: list[Tensor] = []
        x.register_hook(lambda grad: seen.append(grad.clone()))
        y = version(x)
        y.register_hook(lambda grad: grad * 3)
        y.retain_grad()
        y.sin().sum().backward()
        assert y.grad is not None
        outcomes.append([*seen, y.grad])
    assert_same(outcomes[1], outcomes[0])


def test_backward_twice_with_retain_graph() -> None:
    outcomes = []
    for version in both(lambda x: (x.exp() * x.sigmoid()).sum()):
        x = leaf(3, 4)
        loss = version(x)
        loss.backward(retain_graph=True)
        once = x.grad.clone()
        loss.backward()
        outcomes.append([once, x.grad])
    assert_same(outcomes[1], outcomes[0])


def test_backward_twice_without_retain_graph_is_pytorchs_error() -> None:
    for version in both(lambda x: (x.exp() * x.sigmoid()).sum()):
        loss = version(leaf(3, 4))
        loss.backward()
        with pytest.raises(RuntimeError, match="a second time"):
            loss.backward()


def test_gradients_of_gradients_are_an_error() -> None:
    x = leaf(3, 4)
    y = assay.aot.compile(lambda x: x.exp() * x)(x)
    (grad,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    assert torch.equal(grad.detach(), (x.exp() * x + x.exp()).detach())
    with pytest.raises(RuntimeError, match=r"twice|second|higher|double"):
        torch.autograd.grad(grad.sum(), x)


def test_changing_a_saved_input_before_backward_is_pytorchs_error() -> None:
    for version in both(lambda x: x * x):
        x = computed(3, 4)
        y = version(x)
        x.detach().add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()


def test_gradients_of_some_results_only() -> None:
    outcomes = []
    for version in both(lambda x, w: (x * w, x.sin(), (w + 1).prod())):
        x, w = leaf(3, 4), leaf(3, 4)
        results = version(x, w)
        outcomes.append(
            [
                *torch.autograd.grad(
                    results[1].sum(), (x, w), retain_graph=True, allow_unused=True
                ),
                *torch.autograd.grad(results[2], (w,), retain_graph=True),
                *torch.autograd.grad([results[0].sum(), results[1].sum()], (x, w)),
            ]
        )
    expected, found = outcomes
    # A compiled program is one function: what a result does not depend on has gradient zero.
    expected = [torch.zeros(3, 4) if gradient is None else gradient for gradient in expected]
    found = [torch.zeros(3, 4) if gradient is None else gradient for gradient in found]
    assert_same(found, expected)


TANGENTS: dict[str, Callable[[], Tensor]] = {
    "expanded": lambda: plain(1, 1).expand(6, 4),
    "rows expanded": lambda: plain(1, 4).expand(6, 4),
    "transposed": lambda: plain(4, 6).t(),
    "with gaps": lambda: plain(12, 8)[::2, ::2],
    "zero": lambda: torch.zeros(()).expand(6, 4),
}


@pytest.mark.parametrize("name", TANGENTS)
def test_tangents_of_all_strides(name: str) -> None:
    outcomes = []
    for version in both(lambda x, w: F.layer_norm((x @ w).view(6, 4), (4,))):
        x, w = leaf(6, 3), leaf(3, 4)
        outcomes.append(torch.autograd.grad(version(x, w), (x, w), TANGENTS[name]()))
    torch.testing.assert_close(outcomes[1], outcomes[0], rtol=1e-6, atol=1e-6)


def test_gradients_are_added_to_those_there_are() -> None:
    outcomes = []
    for version in both(lambda x: x.sin()):
        x = leaf(3, 4)
        x.grad = torch.ones(3, 4)
        (version(x) + version(x)).sum().backward()
        outcomes.append([x.grad])
    assert_same(outcomes[1], outcomes[0])


# --- Modes ----------------------------------------------------------------------------------------

MODES: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "autocast to float16": lambda: torch.autocast("cpu", dtype=torch.float16),
    "autocast without cache": lambda: torch.autocast("cpu", torch.bfloat16, cache_enabled=False),
}


@pytest.mark.parametrize("mode", MODES)
def test_modes_around_a_call(mode: str) -> None:
    module = network()
    outcomes = []
    for version in both(module):
        x = leaf(3, 4)
        with MODES[mode]():
            y = version(x)
        assert y.is_inference() == (mode == "inference_mode")
        gradients: list[Tensor] = []
        if y.requires_grad:
            gradients = list(torch.autograd.grad(y.float().sum(), [x, *module.parameters()]))
        outcomes.append([y.detach(), *gradients])
    assert_same(outcomes[1], outcomes[0])


def test_backward_under_autocast() -> None:
    module = network()
    outcomes = []
    for version in both(module):
        x = leaf(3, 4)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = version(x).float().sum()
            outcomes.append(torch.autograd.grad(loss, [x, *module.parameters()]))
    assert_same(outcomes[1], outcomes[0])


def test_inference_tensors_as_inputs() -> None:
    with torch.inference_mode():
        x = plain(3, 4)
    compiled = assay.aot.compile(lambda x: x.sin() * 2)
    with torch.inference_mode():
        assert torch.equal(compiled(x), x.sin() * 2)
    assert torch.equal(compiled(x), x.sin() * 2)


# --- Compiling again ------------------------------------------------------------------------------


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
    compiled = assay.aot.compile(torch.sin, cache_size_limit=2)
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


# --- Arguments and results ------------------------------------------------------------------------


def test_containers_and_keywords() -> None:
    def program(pair: Any, options: Any, *, scale: Tensor, shift: float = 0.0) -> Any:
        x, (y, z) = pair
        return {"sum": [x + y * z, options["w"] * scale + shift]}

    x, y, z, w, scale = (leaf(3) for _ in range(5))
    compiled = assay.aot.compile(program)
    for shift in (1.0, 1.0, 2.0):
        found = compiled((x, [y, z]), {"w": w}, scale=scale, shift=shift)
        expected = program((x, [y, z]), {"w": w}, scale=scale, shift=shift)
        assert list(found) == ["sum"] and isinstance(found["sum"], list)
        assert_same(found["sum"], expected["sum"])
        leaves = (x, y, z, w, scale)
        assert_same(
            torch.autograd.grad(torch.stack(found["sum"]).sum(), leaves),
            torch.autograd.grad(torch.stack(expected["sum"]).sum(), leaves),
        )
    assert len(compiled.graphs) == 2


def test_a_keyword_may_be_given_by_position() -> None:
    compiled = assay.aot.compile(lambda x, scale=2.0: x * scale)
    x = plain(3)
    assert torch.equal(compiled(x, 3.0), x * 3)
    assert torch.equal(compiled(x, scale=3.0), x * 3)
    assert torch.equal(compiled(x), x * 2)


def test_named_tuples_come_back_as_tuples() -> None:
    """A limit: the names of `torch.max(x, 1).values` are not kept."""
    x = leaf(3, 4)
    found = assay.aot.compile(lambda x: torch.max(x, 1))(x)
    assert type(found) is tuple
    assert_same(found, tuple(torch.max(x, 1)))


def test_compiled_inside_compiled_is_one_graph() -> None:
    inner = assay.aot.compile(lambda x: x.sin())
    compiled = assay.aot.compile(lambda x: inner(x) * 2)
    x = leaf(3, 4)
    y = compiled(x)
    assert torch.equal(y, x.sin() * 2)
    assert torch.equal(torch.autograd.grad(y.sum(), x)[0], 2 * x.cos())
    assert "torch.ops.aten.sin.default" in compiled.graphs[0]
    assert inner.graphs == []


def test_caller_changes_a_result_that_is_a_view_of_an_input() -> None:
    outcomes = []
    for version in both(lambda x: (x.view(12), x * 2)):
        x = computed(3, 4)
        view, doubled = version(x)
        view.mul_(3)
        outcomes.append([x, view, doubled])
    assert_same(outcomes[1], outcomes[0])


def test_caller_changes_the_input_under_a_returned_view() -> None:
    outcomes = []
    for version in both(lambda x: x.t()):
        root = leaf(3, 4)
        x = root.clone()
        view = version(x)
        x.mul_(3)
        outcomes.append([view, *torch.autograd.grad(view.sin().sum(), root)])
    assert_same(outcomes[1], outcomes[0])


def test_caller_changes_one_of_two_results_that_share_memory() -> None:
    def program(x: Tensor) -> tuple[Tensor, Tensor]:
        y = x.sin()
        return y, y[1:]

    for first in (0, 1):
        outcomes = []
        for version in both(program):
            x = leaf(3, 4)
            results = version(x)
            results[first].mul_(3)
            total = results[0].sum() + results[1].cos().sum()
            outcomes.append([*results, *torch.autograd.grad(total, x)])
        assert_same(outcomes[1], outcomes[0])


def test_caller_changes_a_result_that_backward_needs() -> None:
    for version in both(lambda x: x.exp()):
        x = leaf(3, 4)
        y = version(x)
        y.mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()


def test_results_of_two_calls_share_nothing() -> None:
    compiled = assay.aot.compile(lambda x: (x.sin(), torch.ones(4), torch.tensor([1.0, 2.0])))
    x = plain(3)
    first = compiled(x)
    for tensor in first:
        tensor.zero_()
    assert_same(compiled(x), (x.sin(), torch.ones(4), torch.tensor([1.0, 2.0])))


# --- Modules --------------------------------------------------------------------------------------


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.AdamW])
def test_training(optimizer: type[torch.optim.Optimizer]) -> None:
    compiled_module = network()
    module = copy.deepcopy(compiled_module)
    compiled = assay.aot.compile(compiled_module)
    for version, owner in ((module, module), (compiled, compiled_module)):
        torch.manual_seed(SEED)
        steps = optimizer(owner.parameters(), lr=0.1)
        for step in range(5):
            loss = F.mse_loss(version(plain(3, 4)), plain(3, 2))
            steps.zero_grad(set_to_none=step % 2 == 0)
            loss.backward()
            steps.step()
    assert_same(list(compiled_module.parameters()), list(module.parameters()))
    assert len(compiled.graphs) == 1


def test_parameters_loaded_between_calls() -> None:
    module = network()
    compiled = assay.aot.compile(module)
    x = plain(3, 4)
    compiled(x)
    module.load_state_dict({name: value * 2 for name, value in module.state_dict().items()})
    assert torch.equal(compiled(x), module(x))
    assert len(compiled.graphs) == 1


def test_parameters_replaced_between_calls() -> None:
    module = nn.Linear(4, 2)
    compiled = assay.aot.compile(module)
    x = plain(3, 4)
    compiled(x)
    module.weight = nn.Parameter(torch.ones(2, 4))
    y = compiled(x)
    assert torch.equal(y, module(x))
    y.sum().backward()
    assert module.weight.grad is not None


def test_parameters_of_another_dtype_between_calls() -> None:
    module = nn.Linear(4, 2)
    compiled = assay.aot.compile(module)
    compiled(plain(3, 4))
    module.double()
    x = plain(3, 4, dtype=torch.float64)
    assert torch.equal(compiled(x), module(x))


def test_parameters_frozen_between_calls() -> None:
    module = nn.Linear(4, 2)
    compiled = assay.aot.compile(module)
    x = plain(3, 4)
    compiled(x)
    module.requires_grad_(False)
    assert not compiled(x).requires_grad


def test_training_and_evaluation() -> None:
    module = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
    compiled = assay.aot.compile(module)
    x = plain(3, 4)
    compiled(x)
    module.eval()
    assert torch.equal(compiled(x), module(x))


# --- Threads --------------------------------------------------------------------------------------


def test_threads_calling_at_once() -> None:
    module = network()
    compiled = assay.aot.compile(module, cache_size_limit=8)
    failures: list[BaseException] = []
    start = threading.Barrier(6)

    def work(rows: int) -> None:
        try:
            start.wait()
            for _ in range(20):
                x = torch.randn(rows, 4, requires_grad=True)
                found, expected = compiled(x), module(x)
                assert torch.equal(found, expected)
                left = torch.autograd.grad(found.sum(), x)
                assert_same(left, torch.autograd.grad(expected.sum(), x))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(1 + i % 3,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]
    assert len(compiled.graphs) == 3


def test_backward_in_another_thread() -> None:
    x = leaf(3, 4)
    loss = assay.aot.compile(lambda x: x.exp().sum())(x)
    thread = threading.Thread(target=loss.backward)
    thread.start()
    thread.join()
    assert torch.equal(x.grad, x.detach().exp())
