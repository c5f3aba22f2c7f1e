"""Where and by how much the results of a compiled program differ from eager's.

Whether they differ is for PyTorch's own ``same`` to say.
"""

from __future__ import annotations

import logging
import math
from typing import Any

import torch
from torch._dynamo.utils import rmse, same

Difference = dict[str, Any]


def compare(
    expected: Any, result: Any, reference: Any, *, tolerance: float, ignore_non_fp: bool
) -> Difference | None:
    """The first difference that counts; ``reference`` is eager's result in float64, if there is."""
    return _Comparison(tolerance, ignore_non_fp).find(expected, result, reference, "output")


class _Comparison:
    def __init__(self, tolerance: float, ignore_non_fp: bool) -> None:
        self.tolerance = tolerance
        self.ignore_non_fp = ignore_non_fp

    def find(self, expected: Any, result: Any, reference: Any, where: str) -> Difference | None:
        if isinstance(expected, list | tuple):
            if not isinstance(result, list | tuple) or len(expected) != len(result):
                return _structure(where, expected, result)
            return self._first(range(len(expected)), expected, result, reference, where)
        if isinstance(expected, dict):
            if not isinstance(result, dict) or expected.keys() != result.keys():
                return _structure(where, expected, result)
            return self._first(sorted(expected), expected, result, reference, where)
        return self._leaf(expected, result, reference, where)

    def _first(
        self, keys: Any, expected: Any, result: Any, reference: Any, where: str
    ) -> Difference | None:
        for key in keys:
            found = self.find(
                expected[key],
                result[key],
                None if reference is None else reference[key],
                f"{where}[{key!r}]",
            )
            if found is not None:
                return found
        return None

    def _leaf(self, expected: Any, result: Any, reference: Any, where: str) -> Difference | None:
        if isinstance(expected, torch.Tensor) != isinstance(result, torch.Tensor):
            return (
                None
                if self.ignore_non_fp and expected is None
                else _structure(where, expected, result)
            )
        if not isinstance(expected, torch.Tensor):
            if self._is_same(expected, result, reference):
                return None
            return {"kind": "values", "where": where, "error": _difference(expected, result)}
        if expected.shape != result.shape:
            return {
                "kind": "shape",
                "where": where,
                "message": f"{list(expected.shape)} became {list(result.shape)}",
            }
        if self._is_same(expected, result, reference):
            return None
        if expected.dtype != result.dtype:
            return {
                "kind": "dtype",
                "where": where,
                "message": f"{expected.dtype} became {result.dtype}",
            }
        return self._values(expected, result, reference, where)

    def _is_same(self, expected: Any, result: Any, reference: Any) -> bool:
        return same(
            expected,
            result,
            reference,
            tol=self.tolerance,
            equal_nan=True,
            ignore_non_fp=self.ignore_non_fp,
            log_error=_log.debug,
        )

    def _values(
        self, expected: torch.Tensor, result: torch.Tensor, reference: Any, where: str
    ) -> Difference:
        """Size of a difference: against float64 where that decided, else the largest one."""
        expected, result = expected.detach(), result.detach()
        kind = "values"
        if expected.is_floating_point() and bool((expected.isnan() != result.isnan()).any()):
            kind = "nan"
        largest = float((expected.to(torch.complex128) - result.to(torch.complex128)).abs().max())
        found: Difference = {"kind": kind, "where": where, "error": largest}
        found["tolerance"] = self.tolerance
        if isinstance(reference, torch.Tensor) and reference.dtype == torch.float64:
            reference = reference.detach()
            found["error"] = float(rmse(reference, result))
            # same() gives eager's own error this much room; its factor is 2 or 3.
            found["tolerance"] = 3.0 * float(rmse(reference, expected)) + self.tolerance / 10
        return {key: _finite(value) for key, value in found.items()}


_log = logging.getLogger(__name__)


def _structure(where: str, expected: Any, result: Any) -> Difference:
    return {
        "kind": "structure",
        "where": where,
        "message": f"{_kind(expected)} became {_kind(result)}",
    }


def _kind(value: Any) -> str:
    if isinstance(value, list | tuple | dict):
        return f"{type(value).__name__} of {len(value)}"
    return type(value).__name__


def _difference(expected: Any, result: Any) -> float | None:
    try:
        return _finite(abs(float(expected) - float(result)))
    except (TypeError, ValueError):
        return None


def _finite(value: Any) -> Any:
    """JSON has neither infinity nor NaN."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
