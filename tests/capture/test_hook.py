"""Our frame hook beside that of stock torch.compile, whichever was installed first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from assay import _C


@pytest.fixture(autouse=True)
def stock() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    _C.capture_run_all_frames(False)
    torch._dynamo.reset()


class Counter:
    """A stock backend that counts how often it compiles."""

    def __init__(self) -> None:
        self.compiled = 0

    def __call__(self, module: Any, inputs: Any) -> Callable[..., Any]:
        self.compiled += 1
        forward: Callable[..., Any] = module.forward
        return forward


def function(x: torch.Tensor) -> torch.Tensor:
    return helper(x) + 1


def helper(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x) * 2


def call_python() -> int:
    return sum(len([i]) for i in range(100))


X = torch.arange(-3.0, 3.0)


def test_ours_is_installed_on_top() -> None:
    backend = Counter()
    compiled = torch.compile(function, backend=backend)
    expected = function(X)
    assert torch.equal(compiled(X), expected)
    _C.capture_run_all_frames(True)
    assert torch.equal(compiled(X), expected)
    assert call_python() == 100
    _C.capture_run_all_frames(False)
    assert torch.equal(compiled(X), expected)
    assert backend.compiled == 1
    torch._dynamo.reset()
    assert torch.equal(compiled(X), expected)
    assert backend.compiled == 2


def test_theirs_is_installed_on_top() -> None:
    backend = Counter()
    expected = function(X)
    _C.capture_run_all_frames(True)
    compiled = torch.compile(function, backend=backend)
    assert torch.equal(compiled(X), expected)
    _C.capture_run_all_frames(False)  # theirs still points to ours
    assert torch.equal(compiled(X), expected)
    assert call_python() == 100
    _C.capture_run_all_frames(True)
    assert torch.equal(compiled(X), expected)
    assert call_python() == 100
    torch._dynamo.reset()
    assert torch.equal(compiled(X), expected)
    _C.capture_run_all_frames(False)
    assert torch.equal(compiled(X), expected)
    assert backend.compiled == 2


def test_ours_comes_and_goes_while_theirs_is_active() -> None:
    def backend(module: Any, inputs: Any) -> Any:
        _C.capture_run_all_frames(True)
        assert call_python() == 100
        return module.forward

    expected = function(X)
    compiled = torch.compile(function, backend=backend)
    assert torch.equal(compiled(X), expected)
    assert torch.equal(compiled(X), expected)
    _C.capture_run_all_frames(False)
    assert torch.equal(compiled(X), expected)
    assert call_python() == 100
