"""Holds a program compiled by a kernel backend against the same program run eagerly.

Structure, dtype, sizes, strides, requires_grad, shared memory and the random generator must be
eager's. Values must be the same by the rules of `assay.compare.same`: close to eager's, or about as
close as eager's to what eager computes in float64. Where eager raises, the compiled program must
raise, with eager's message.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import Tensor, nn

import assay
from autograd.compare import SEED, Make, Observed, copy_tensors, state_of
from autograd.compare import _contiguous as contiguous
from autograd.compare import _without_idle_strides as without_idle_strides
from conformance.eager import difference

__all__ = ["BACKEND", "Program", "in_float64"]

# What compiles the programs of these tests.
BACKEND = "native"

_EXACT = ("generator", "shared memory", "is a leaf", "inputs that are leaves")
_DOUBLE = {torch.complex64: torch.complex128, torch.complex32: torch.complex128}


@dataclass
class Program:
    """A function of tensors, and how its inputs are made."""

    call: Callable[..., Any]
    make: Make
    process: Callable[[Any], Any] = lambda results: results
    """What is differentiated of the results."""
    reference: Callable[..., Any] | None = None
    """The same program for inputs in float64, if it mentions a dtype."""

    def difference(
        self,
        *,
        backend: str = BACKEND,
        gradient_strides: bool = True,
        idle_strides: bool = True,
        values: bool = True,
        **options: Any,
    ) -> str:
        """What is different when it is compiled; an empty text if nothing is.

        ``idle_strides`` are those of dimensions of one element, which mean nothing.
        """
        own = copy.deepcopy(self.call) if isinstance(self.call, nn.Module) else self.call
        eager = self._outcome(self.call, state_of(self.call))
        compiled = assay.aot.compile(own, backend=backend, options=options)
        found = self._outcome(compiled, state_of(own))
        # A program whose backward raises in eager is refused, with what eager raises.
        is_eagers = isinstance(eager, Exception) and str(eager).split("\n")[0] in str(found)
        if isinstance(found, assay.TraceError) and not is_eagers:
            raise found
        if isinstance(eager, Exception):
            return _error_difference(found, eager)
        if isinstance(found, Exception):
            raise found
        if not idle_strides:
            for observed in (eager, found):
                observed.pieces["results"] = pytree.tree_map_only(
                    Tensor, lambda one: without_idle_strides([one])[0], observed.pieces["results"]
                )
        return self._pieces_difference(found, eager, gradient_strides, values)

    def _outcome(self, call: Callable[..., Any], state: list[Tensor]) -> Observed | Exception:
        torch.manual_seed(SEED)
        inputs = self.make()
        try:
            return Observed(call, inputs, state, self.process)
        except Exception as error:
            return error

    def _float64_pieces(self) -> dict[str, Any]:
        torch.manual_seed(SEED)
        try:
            call, inputs = self.call, in_float64(self.make())
            if self.reference is not None:
                call = self.reference
            elif isinstance(call, nn.Module):
                call = copy.deepcopy(call).double()
            return Observed(call, inputs, state_of(call), self.process).pieces
        except Exception:  # has no float64 form: eager's results alone are the reference
            return {}

    def _pieces_difference(
        self, found: Observed, eager: Observed, gradient_strides: bool, values: bool
    ) -> str:
        float64: dict[str, Any] | None = None
        for name, expected in eager.pieces.items():
            piece = found.pieces[name]
            if name == "results":
                structures = [pytree.tree_structure(value) for value in (piece, expected)]
                if structures[0] != structures[1]:
                    return f"structure is {structures[0]}, expected {structures[1]}"
            if name == "gradients":
                if not gradient_strides:
                    piece, expected = contiguous(piece), contiguous(expected)
                piece, expected = without_idle_strides(piece), without_idle_strides(expected)
            exact = name.startswith(_EXACT)
            piece, expected = _without_empty(piece), _without_empty(expected)
            if text := difference(piece, expected, values=exact):
                return f"{name}: {text}"
            if exact or not values or assay.compare.same(expected, piece, equal_nan=True):
                continue
            if float64 is None:
                float64 = self._float64_pieces()
            reference = float64.get(name)
            same = assay.compare.same(expected, piece, reference, equal_nan=True)
            if not same and not (name == "gradients" and _within_two_roundings(piece, reference)):
                return f"{name}{same.where}: {same.message}"
        return ""


def _within_two_roundings(found: Sequence[Tensor | None], reference: Any) -> bool:
    """Whether gradients of half precision are as close as adding them up in any order can be.

    Of a few elements, eager's own distance from the reference is a matter of luck.
    """

    def close(one: Tensor | None, other: Tensor | None) -> bool:
        if one is None or other is None or not one.is_floating_point():
            return one is other
        unit = 2 * torch.finfo(one.dtype).eps if one.dtype.itemsize == 2 else 1e-5
        return bool((one.double() - other).norm() <= unit * other.norm())

    has_half = any(one is not None and one.dtype.itemsize == 2 for one in found)
    return reference is not None and has_half and all(map(close, found, reference))


def _error_difference(found: Observed | Exception, eager: Exception) -> str:
    message = str(eager).splitlines()[0] if str(eager) else type(eager).__name__
    if not isinstance(found, Exception):
        return f"returned, but eager raised {type(eager).__name__}: {message}"
    if message not in str(found):
        return (
            f"raised {type(found).__name__}: {found}\nbut eager {type(eager).__name__}: {message}"
        )
    return ""


def _without_empty(value: Any) -> Any:
    """The same with contiguous tensors where there is no element: their strides mean nothing."""

    def settle(tensor: Tensor) -> Tensor:
        if tensor.layout != torch.strided or tensor.numel() > 0:
            return tensor
        return torch.empty_like(tensor, memory_format=torch.contiguous_format).requires_grad_(
            tensor.requires_grad
        )

    return pytree.tree_map_only(Tensor, settle, value)


def in_float64(tensors: Sequence[Any]) -> list[Any]:
    """The same inputs with 64-bit floats."""

    def cast(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        if value.is_floating_point():
            made = value.detach().to(torch.float64)
        else:
            made = value.detach().to(_DOUBLE.get(value.dtype, value.dtype))
        return made.requires_grad_(value.requires_grad)

    return [cast(value) for value in copy_tensors(tensors)]
