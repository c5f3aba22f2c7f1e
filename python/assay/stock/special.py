"""Infinities and NaNs in results: whether the same ones are in the same places.

PyTorch's ``same`` compares root mean squares with those of a float64 run. One infinity or NaN that
is right makes them NaN, and then nothing else is seen to be wrong.
"""

from __future__ import annotations

import torch

Tensors = tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]


def without(
    expected: torch.Tensor, result: torch.Tensor, reference: torch.Tensor | None
) -> Tensors | None:
    """All three with zeros in their places; None if the result has others than it should.

    It should have eager's, or those of float64: eager overflows where a fused kernel need not.
    """
    tensors = [expected, result, reference]
    if not expected.is_floating_point() and not expected.is_complex():
        return expected, result, reference
    is_usable = isinstance(reference, torch.Tensor) and reference.shape == expected.shape
    narrow = reference.detach().to(expected.dtype) if is_usable and reference is not None else None
    of_eager, of_result = _kinds(expected), _kinds(result)
    if not of_eager.any() and not of_result.any():
        return expected, result, reference
    differs = of_eager != of_result
    if bool(differs.any()):
        if narrow is None or bool((differs & (_kinds(narrow) != of_result)).any()):
            return None
        expected = torch.where(_of_elements(differs, expected), narrow, expected.detach())
    is_special = _of_elements(_kinds(expected) + of_result > 0, expected)
    tensors = [
        torch.where(is_special, torch.zeros_like(tensor), tensor.detach())
        for tensor in (expected, result)
    ]
    if reference is not None and is_usable:
        zeros = torch.zeros_like(reference)
        reference = torch.where(is_special, zeros, reference.detach())
    return tensors[0], tensors[1], reference


def _kinds(tensor: torch.Tensor) -> torch.Tensor:
    """1 for NaN, 2 and 3 for the infinities, 0 for the rest; complex numbers have two each."""
    tensor = tensor.detach().resolve_conj()
    parts = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    parts = parts.to(torch.float64)  # float8 has no comparisons
    return parts.isnan() * 1 + parts.isposinf() * 2 + parts.isneginf() * 3


def _of_elements(parts: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    return parts.any(-1) if tensor.is_complex() else parts.bool()
