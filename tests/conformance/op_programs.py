"""Samples of PyTorch's operators (`op_db`) as programs of their tensors alone, to be compiled."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import torch
import torch.utils._pytree as pytree
from torch import Tensor
from torch.testing._internal import common_methods_invocations, opinfo

from autograd.compare import SEED, Arguments
from conformance.op_samples import op_db

__all__ = ["OperatorSample", "first_sample", "no_seeds_inside", "operator_samples", "operators"]


@functools.cache
def operators(dtype: torch.dtype = torch.float32) -> dict[str, Any]:
    """The entries that PyTorch tests with a dtype on the CPU, by their full names."""
    return {
        f"{op.name}{'.' + op.variant_test_name if op.variant_test_name else ''}": op
        for op in op_db
        if dtype in op.supported_dtypes("cpu")
    }


class OperatorSample:
    """One sample of an operator as a function of its tensors alone."""

    def __init__(self, op: Any, sample: Any) -> None:
        self.op = op
        self.sample = sample
        self.arguments = Arguments([sample.input, *sample.args], sample.kwargs)

    def make(self) -> Sequence[Tensor]:
        return self.arguments.make()

    def call(self, *tensors: Tensor) -> Any:
        return tuple(pytree.tree_leaves(self.arguments.call(self.op.op, tensors)))

    def call_in_float64(self, *tensors: Tensor) -> Any:
        """The same for tensors in float64: a dtype among the arguments becomes that."""
        return self._in_float64.call(*tensors)

    @functools.cached_property
    def _in_float64(self) -> OperatorSample:
        def cast(value: Any) -> Any:
            is_float = isinstance(value, torch.dtype) and value.is_floating_point
            return torch.float64 if is_float else value

        made = copy.copy(self)
        args, kwargs = pytree.tree_map(cast, (self.arguments.args, self.arguments.kwargs))
        made.arguments = Arguments(args, kwargs)
        return made

    def process(self, results: Any) -> Any:
        process: Callable[[Any], Any] = self.sample.output_process_fn_grad
        return process(results[0] if len(results) == 1 else results)


def operator_samples(op: Any, dtype: torch.dtype, requires_grad: bool) -> Iterator[OperatorSample]:
    torch.manual_seed(SEED)
    for sample in op.sample_inputs("cpu", dtype, requires_grad=requires_grad):
        yield OperatorSample(op, sample)


def first_sample(op: Any, dtype: torch.dtype, requires_grad: bool) -> OperatorSample:
    return next(operator_samples(op, dtype, requires_grad))


@pytest.fixture(name="no_seeds_inside")
def no_seeds_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples of random operators set the seed inside; a compiled program draws from outside."""

    def call(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return op(*args, **kwargs)

    for module in (common_methods_invocations, opinfo.definitions.linalg):
        monkeypatch.setattr(module, "wrapper_set_seed", call, raising=False)
