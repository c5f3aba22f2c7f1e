"""Compiled modules whose parameters change between calls, and calls from several threads."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import assay
from autograd.calls import assert_same, network
from autograd.compare import SEED, leaf, plain

# --- Modules --------------------------------------------------------------------------------------


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.AdamW])
def test_training(optimizer: type[torch.optim.Optimizer]) -> None:
    compiled_module = network()
    module = copy.deepcopy(compiled_module)
    compiled = assay.aot.compile(compiled_module, backend="aot_eager")
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
    compiled = assay.aot.compile(module, backend="aot_eager")
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


def test_buffers_replaced_between_calls() -> None:
    module = nn.BatchNorm1d(4, affine=False).eval()
    compiled = assay.aot.compile(module, backend="aot_eager")
    x = plain(3, 4)
    compiled(x)
    module.running_mean = torch.full((4,), 5.0)
    assert torch.equal(compiled(x), module(x))


DATA_CHANGES: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "no_grad": lambda weight, x: torch.no_grad()(weight.copy_)(x),
    "detach": lambda weight, x: weight.detach().mul_(3),
    "data": lambda weight, x: weight.data.mul_(3),
    "data, overwritten": lambda weight, x: weight.data.copy_(x),
    "data, one item": lambda weight, x: weight.data.__setitem__(0, 7.0),
}


@pytest.mark.parametrize("is_read", [False, True])
@pytest.mark.parametrize("name", DATA_CHANGES)
def test_parameters_changed_inside(name: str, is_read: bool) -> None:
    outcomes = []
    for compile_ in (lambda program: program, assay.aot.compile):
        weight = nn.Parameter(torch.tensor([1.0, 2.0]))

        def program(x: Tensor) -> Tensor:
            DATA_CHANGES[name](weight, x)
            return x * weight if is_read else x * 2

        version = compile_(program)
        x = torch.tensor([4.0, 5.0])
        outcomes.append([version(x), version(x), weight])
    assert_same(outcomes[1], outcomes[0])


def test_training_and_evaluation() -> None:
    module = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
    compiled = assay.aot.compile(module, backend="aot_eager")
    x = plain(3, 4)
    compiled(x)
    module.eval()
    assert torch.equal(compiled(x), module(x))


# --- Threads --------------------------------------------------------------------------------------


def test_threads_calling_at_once() -> None:
    module = network()
    compiled = assay.aot.compile(module, cache_size_limit=8, backend="aot_eager")
    failures: list[BaseException] = []
    start = threading.Barrier(6)

    def work(rows: int) -> None:
        try:
            start.wait(timeout=60)
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
        thread.join(timeout=60)
    assert not any(thread.is_alive() for thread in threads)
    assert not failures, failures[0]
    assert len(compiled.graphs) == 3


def test_backward_in_another_thread() -> None:
    x = leaf(3, 4)
    loss = assay.aot.compile(lambda x: x.exp().sum(), backend="aot_eager")(x)
    thread = threading.Thread(target=loss.backward)
    thread.start()
    thread.join(timeout=60)
    assert torch.equal(x.grad, x.detach().exp())
