"""What callers do with compiled programs: hooks, several backwards, modes, changed results."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import assay
from autograd.calls import MODES, assert_same, both, network
from autograd.compare import computed, leaf, plain

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


def test_changing_a_saved_input_before_backward_is_pytorchs_error() -> None:
    for version in both(lambda x: x * x):
        x = computed(3, 4)
        y = version(x)
        x.detach().add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()


def test_gradients_of_some_results_only() -> None:
    outcomes = []
    keep = {"retain_graph": True, "allow_unused": True}
    for version in both(lambda x, w: (x * w, x.sin(), (w + 1).exp())):
        x, w = leaf(3, 4), leaf(3, 4)
        y, sine, rest = version(x, w)
        outcomes.append(
            [
                *torch.autograd.grad(sine.sum(), (x, w), **keep),
                *torch.autograd.grad(rest.sum(), (w,), **keep),
                *torch.autograd.grad([y.sum(), sine.sum()], (x, w)),
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
    compiled = assay.aot.compile(lambda x: x.sin() * 2, backend="aot_eager")
    with torch.inference_mode():
        assert torch.equal(compiled(x), x.sin() * 2)
    assert torch.equal(compiled(x), x.sin() * 2)


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


def test_keys_of_results_may_be_numbers_or_it_is_refused() -> None:
    x = plain(3)
    compiled = assay.aot.compile(lambda x: {1: x * 2}, fallback=True)
    assert torch.equal(compiled(x)[1], x * 2)
    with suppress(assay.TraceError):
        assert torch.equal(assay.aot.compile(lambda x: {1: x * 2})(x)[1], x * 2)


@pytest.mark.parametrize("value", [object(), torch.sin, 2.5 + 1j, {1, 2}])
def test_arguments_of_any_type_run_eagerly_if_asked_for(value: Any) -> None:
    x = plain(3)
    compiled = assay.aot.compile(lambda x, value: x * 2, fallback=True)
    assert torch.equal(compiled(x, value), x * 2)


def test_compiled_inside_compiled_is_one_graph() -> None:
    inner = assay.aot.compile(lambda x: x.sin(), backend="aot_eager")
    compiled = assay.aot.compile(lambda x: inner(x) * 2, backend="aot_eager")
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


@pytest.mark.parametrize("backend", assay.list_backends())
def test_a_function_without_a_name(backend: str) -> None:
    if backend.endswith("TESTING_ONLY"):
        return
    x = torch.randn(3)
    assert torch.equal(assay.aot.compile(lambda x: x + 1, backend=backend)(x), x + 1)


def test_options_of_the_backend() -> None:
    x = torch.randn(3, requires_grad=True)
    step = assay.aot.compile(torch.sin, backend="aot_eager", options={"lazy_backward": True})
    step(x).sum().backward()
    assert x.grad is not None and torch.equal(x.grad, x.detach().cos())
    with pytest.raises(assay.UserError, match="did you mean lazy_backward"):
        assay.aot.compile(torch.sin, backend="aot_eager", options={"lazybackward": True})(x)


def test_arguments_of_any_kind_after_tensors_only() -> None:
    """The first call decides nothing: tensors and numbers go a short way, the rest a long one."""

    def scale(x: Tensor, *, by: float = 2.0) -> Tensor:
        return x * by

    compiled = assay.aot.compile(scale, backend="eager")
    x = torch.randn(3)
    assert torch.equal(compiled(x), x * 2)
    assert torch.equal(compiled(x, by=3.0), x * 3)
    assert torch.equal(compiled(x), x * 2)
    total = assay.aot.compile(lambda xs: xs[0] + xs[1], backend="eager")
    assert torch.equal(total([x, x]), x + x)
    assert torch.equal(total(torch.stack([x, x])), x + x)
    assert torch.equal(total([x, x]), x + x)
    with pytest.raises(assay.UserError):
        compiled(object())
