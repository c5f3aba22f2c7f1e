"""The samples of every module that PyTorch tests, compiled against eager, training and not.

Equal to the last bit, but for those in `EXPECTED`: losses and masks that are looked at by Python
code of PyTorch before anything is computed, and LSTM, whose oneDNN kernel asks below autograd
whether a gradient is needed and is therefore off in a trace.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.utils._pytree as pytree
from torch import Tensor, nn
from torch.nn.modules.lazy import LazyModuleMixin
from torch.testing._internal.common_modules import module_db

from autograd.compare import SEED, Arguments
from autograd.expected import Expected, check_expected
from conformance import op_samples  # noqa: F401  (what PyTorch's test helpers need)

MODULES = {info.name: info for info in module_db if torch.float32 in info.dtypes}
# Their samples hold constants of this dtype.
FLOAT64_SAMPLES = ("nn.FractionalMaxPool2d", "nn.FractionalMaxPool3d")


class Positional(nn.Module):
    """A module as a function of tensors alone."""

    def __init__(self, module: nn.Module, arguments: Arguments) -> None:
        super().__init__()
        self.module = module
        self.arguments = arguments

    def forward(self, *tensors: Tensor) -> Any:
        return tuple(pytree.tree_leaves(self.arguments.call(self.module, tensors)))


# --- Exceptions -----------------------------------------------------------------------------------


def _takes_cumulative_average(sample: Positional) -> bool:
    module: Any = sample.module
    return module.training and module.momentum is None and module.track_running_stats


def _has_mask(sample: Positional) -> bool:
    """An attention mask, which comes first or, in an encoder, after the padding mask."""
    masks = {"mask", "src_mask"} & set(sample.arguments.kwargs)
    return any(sample.arguments.kwargs[name] is not None for name in masks)


def _is_chunked(sample: Positional) -> bool:
    loss: Any = sample.module
    target = sample.arguments.args[1]
    return (
        loss.options is not None
        and loss.label_smoothing == 0
        and target.dtype == torch.int64
        and not loss.out_features
    )


def _smooths_weighted_labels(sample: Positional) -> bool:
    loss: Any = sample.module
    target = sample.arguments.args[1]
    has_classes = not target.is_floating_point()
    is_mean = loss.reduction == "mean" and loss.label_smoothing > 0
    return is_mean and has_classes and loss.weight is not None


_AVERAGE = Expected(
    "reads values", "without momentum, Python code counts the batches", _takes_cumulative_average
)
_CAUSAL = Expected("reads values", "Python code looks whether the mask is causal", _has_mask)

EXPECTED: dict[str, tuple[Expected, ...]] = {
    "nn.BatchNorm1d": (_AVERAGE,),
    "nn.BatchNorm2d": (_AVERAGE,),
    "nn.BatchNorm3d": (_AVERAGE,),
    "nn.TransformerEncoder": (_CAUSAL,),
    "nn.Transformer": (_CAUSAL,),
    "nn.GaussianNLLLoss": (Expected("reads values", "raises if a variance is negative"),),
    "nn.CTCLoss": (
        Expected("size depends on values", "tagged so: a result is as long as the longest target"),
    ),
    "nn.LinearCrossEntropyLoss": (
        Expected("custom autograd function", "in Python, chunk by chunk", _is_chunked),
        Expected(
            "size depends on values",
            "selects the weights of labels that are not ignored",
            _smooths_weighted_labels,
        ),
    ),
    "nn.LSTM": (
        Expected(
            "other kernel",
            "oneDNN, which does not take projections",
            lambda sample: sample.module.proj_size == 0,
        ),
    ),
}


# --- Tests ----------------------------------------------------------------------------------------


def samples(info: Any, training: bool) -> Iterator[tuple[str, Positional]]:
    torch.manual_seed(SEED)
    dtype = torch.float64 if info.name in FLOAT64_SAMPLES else torch.float32
    for sample in info.module_inputs_func(
        info, device="cpu", dtype=dtype, requires_grad=True, training=training
    ):
        if sample.forward_input is None:
            continue
        made = sample.constructor_input
        module = info.module_cls(*made.args, **made.kwargs).train(training)
        called = sample.forward_input
        if isinstance(module, LazyModuleMixin):
            module(*called.args, **called.kwargs)  # makes its parameters
        yield sample.desc, Positional(module, Arguments(called.args, called.kwargs))


def test_exceptions_are_of_modules_in_the_list() -> None:
    assert set(EXPECTED) <= set(MODULES)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODULES)
def test_module(name: str) -> None:
    exceptions = EXPECTED.get(name, ())
    needed = set()
    for training in (True, False) if MODULES[name].train_and_eval_differ else (True,):
        for description, sample in samples(MODULES[name], training):
            expected = next((one for one in exceptions if one.when(sample)), None)
            try:
                if check_expected(expected, sample, sample.arguments.make):
                    needed.add(expected)
            except BaseException as error:
                error.add_note(f"sample '{description}', training={training}, {expected}")
                raise
    assert needed == set(exceptions), "equal to eager: some of these exceptions can go"
