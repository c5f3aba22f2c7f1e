"""What no graph can hold is refused with a `TraceError`, or runs eagerly if that is asked for."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad

import assay
from autograd.compare import SEED, Observed, computed, leaf, plain, tensors_in
from autograd.refusals import REFUSALS, Refusal
from conformance.eager import difference

all_refusals = pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)


@pytest.fixture(autouse=True)
def _gradients_on() -> Any:
    yield
    torch.set_grad_enabled(True)


def fresh(refusal: Refusal) -> Any:
    torch.manual_seed(SEED)
    return refusal.make()


def is_ordinary(tensor: Tensor) -> bool:
    """Whether its values can be compared: it is strided, and holds numbers on the CPU."""
    has_numbers = tensor.is_cpu and not tensor.is_nested and not tensor.is_quantized
    return type(tensor) is Tensor and tensor.layout == torch.strided and has_numbers


@pytest.mark.filterwarnings("ignore")
@all_refusals
def test_is_refused_and_leaves_nothing_behind(refusal: Refusal) -> None:
    compiled = assay.aot.compile(refusal.program, backend="aot_eager")
    inputs = fresh(refusal)
    for _ in range(2):
        torch.manual_seed(SEED)
        state = torch.get_rng_state()
        with pytest.raises(assay.TraceError, match=refusal.words):
            compiled(*inputs)
        assert torch.equal(torch.get_rng_state(), state)
        assert torch.is_grad_enabled()
    assert compiled.graphs == []
    for found, expected in zip(tensors_in(inputs), tensors_in(fresh(refusal)), strict=True):
        assert found.requires_grad == expected.requires_grad
        assert found.grad is None
        if is_ordinary(found):
            assert (found.shape, found.stride()) == (expected.shape, expected.stride())
            assert torch.equal(found, expected)


@pytest.mark.filterwarnings("ignore")
@all_refusals
def test_fallback_does_what_eager_does(refusal: Refusal, capfd: pytest.CaptureFixture[str]) -> None:
    compiled = assay.aot.compile(refusal.program, backend="aot_eager", fallback=True)
    for _ in range(2):
        if not all(is_ordinary(tensor) for tensor in tensors_in(fresh(refusal))):
            expected = refusal.program(*fresh(refusal))
            assert difference(compiled(*fresh(refusal)), expected) == ""
            continue
        observed = []
        for program in (refusal.program, compiled):
            torch.set_grad_enabled(True)
            observed.append(Observed(program, fresh(refusal)))
        assert observed[1].differs_from(observed[0]) == ""
    warnings = [line for line in capfd.readouterr().err.splitlines() if "eagerly" in line]
    assert len(warnings) == 1
    assert f"running '{refusal.program.__name__}' eagerly" in warnings[0]
    assert compiled.graphs == [""]


@pytest.mark.filterwarnings("ignore")
@all_refusals
def test_trace_refuses_too(refusal: Refusal) -> None:
    with pytest.raises(assay.TraceError, match=refusal.words):
        assay.aot.trace(refusal.program, fresh(refusal))


def test_the_error_names_the_line_and_a_way_out() -> None:
    def program(x: Tensor) -> Tensor:
        return x * x.sum().item()

    with pytest.raises(assay.TraceError) as error:
        assay.aot.compile(program)(plain(3))
    text = str(error.value)
    line = program.__code__.co_firstlineno + 1
    assert f'File "{__file__}", line {line}, in program' in text
    assert "hint: " in text
    assert text.count("File ") == 1, "lines of the caller are no news"


@pytest.mark.parametrize("made", ["device='meta'", "layout=torch.sparse_coo"])
def test_memory_without_values_is_refused(made: str) -> None:
    """In a process of its own: this has been a crash."""
    text = (
        "import assay, torch\n"
        f"program = lambda x: x * torch.empty(2, {made}).dim()\n"
        "try: assay.aot.compile(program)(torch.ones(2))\n"
        "except assay.TraceError: print('refused')\n"
        "print(assay.aot.compile(program, fallback=True)(torch.ones(2)).tolist())\n"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "refused\n[1.0, 1.0]\n"), done.stderr


def test_the_next_call_may_be_fine() -> None:
    compiled = assay.aot.compile(lambda x, reads: x * x.sum().item() if reads else x + 1)
    x = plain(3)
    for _ in range(2):
        with pytest.raises(assay.TraceError):
            compiled(x, True)
        assert torch.equal(compiled(x, False), x + 1)
    assert len(compiled.graphs) == 1


def test_a_history_cut_off_in_place_is_refused_or_cut_off() -> None:
    x = computed(3)
    with suppress(assay.TraceError):
        y = assay.aot.compile(lambda x: x.detach_() * 2)(x)
        assert not y.requires_grad and not x.requires_grad


def test_forward_mode_derivatives_are_refused() -> None:
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(plain(3), torch.ones(3))
        with pytest.raises(assay.TraceError):
            assay.aot.compile(lambda x: x * x)(dual)
        y = assay.aot.compile(lambda x: x * x, fallback=True)(dual)
        assert torch.equal(forward_ad.unpack_dual(y).tangent, 2 * dual)


def test_transformations_of_a_compiled_program_are_refused() -> None:
    x = plain(3)
    with pytest.raises(assay.TraceError, match=r"torch\.func transform"):
        torch.func.grad(assay.aot.compile(lambda x: (x * x).sum()))(x)
    compiled = assay.aot.compile(lambda x: (x * x).sum(), fallback=True)
    assert torch.equal(torch.func.grad(compiled)(x), 2 * x)


def test_errors_of_the_program_are_its_own() -> None:
    def program(x: Tensor) -> Tensor:
        raise KeyError("mine")

    for fallback in (False, True):
        with pytest.raises(KeyError, match="mine"):
            assay.aot.compile(program, fallback=fallback)(plain(3))


def test_errors_of_operators_are_pytorchs() -> None:
    for fallback in (False, True):
        with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
            assay.aot.compile(torch.mm, fallback=fallback)(plain(3, 4), plain(3, 4))


def test_a_leaf_changed_in_place_is_pytorchs_error() -> None:
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        assay.aot.compile(lambda x: x.mul_(2))(leaf(3))


def test_an_unknown_backend_is_an_error_at_once() -> None:
    with pytest.raises(assay.UserError, match="aot_eagr"):
        assay.aot.compile(torch.sin, backend="aot_eagr")


@pytest.mark.parametrize("has_gradient", [False, True])
def test_backward_inside_leaves_gradients_of_parameters_alone(has_gradient: bool) -> None:
    weight = leaf(3)
    if has_gradient:
        weight.grad = torch.ones(3)
    before = weight.grad

    def program(x: Tensor) -> Tensor:
        torch.autograd.backward((x * weight).sum())
        return x * 2

    with pytest.raises(assay.TraceError, match="calls backward"):
        assay.aot.compile(program)(plain(3))
    assert weight.grad is before
    assert before is None or torch.equal(before, torch.ones(3))


def test_autocast_left_on_is_refused() -> None:
    def program(x: Tensor) -> Tensor:
        torch.set_autocast_enabled("cpu", True)
        return x @ x

    try:
        with pytest.raises(assay.TraceError, match="changes autocast and does not restore it"):
            assay.aot.compile(program)(plain(3, 3))
    finally:
        torch.set_autocast_enabled("cpu", False)
