"""Where and by how much the results of a compiled program differ from eager's.

Whether floating point differs is for PyTorch's own ``same`` to say. Integers and bools are equal or
not: ``same`` would allow them its tolerance too. Infinities and NaNs are where eager has them, or
where float64 does: ``same`` forgives any as soon as there is one.
"""

from __future__ import annotations

import functools
import logging
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._dynamo.utils import rmse, same

from assay.stock import special

Difference = dict[str, Any]


@dataclass
class Run:
    """What one run of a program gave, by what a difference there would be called."""

    output: Any
    gradient: dict[str, Any] = field(default_factory=dict)
    parameter: dict[str, Any] = field(default_factory=dict)
    buffer: dict[str, Any] = field(default_factory=dict)
    input: dict[str, Any] = field(default_factory=dict)
    """The tensors among its inputs as it left them; only they can be changed in place."""
    changed: set[str] = field(default_factory=set)
    """The inputs that are not what they were."""
    second: Run | None = None
    """What a second call gave, if there was one."""
    second_error: BaseException | None = None


PARTS = ("output", "gradient", "parameter", "buffer", "input")


class Inputs:
    """The tensors among the inputs of a run by name, and what they were before it."""

    def __init__(self, names: Sequence[str], values: Sequence[Any]) -> None:
        pairs = zip(_unique_names(names, len(values)), values, strict=True)
        self.tensors = {name: value for name, value in pairs if isinstance(value, torch.Tensor)}
        self.before = {name: _copy(value) for name, value in self.tensors.items()}

    def changed(self) -> set[str]:
        """Those that are not what they were."""
        return {
            name
            for name, value in self.tensors.items()
            if not _is_identical(value, self.before[name])
        }


def _unique_names(names: Sequence[str], count: int) -> list[str]:
    """Of the inputs; a file's parameters have other names than its inputs only if it is wrong."""
    return [names[i] if i < len(names) else f"input {i}" for i in range(count)]


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().clone()


def _is_identical(tensor: torch.Tensor, before: torch.Tensor) -> bool:
    tensor = tensor.detach()
    if tensor.shape != before.shape or tensor.dtype != before.dtype:
        return False
    if tensor.layout != torch.strided or tensor.is_quantized:
        return True  # such a tensor is compared as a value only
    return bool(torch.isclose(tensor, before, rtol=0, atol=0, equal_nan=True).all())


def compare(
    expected: Run, result: Run, reference: Run | None, *, tolerance: float, ignore_non_fp: bool
) -> Difference | None:
    """The first difference; ``reference`` is eager's result in float64, if there is.

    One in floating point comes before one in integers: a mask made of a wrong number differs too,
    and the number is the cause.
    """
    comparison = _Comparison(tolerance, ignore_non_fp)
    in_integers = None
    for part in PARTS:
        if part == "input" and (found := _mutation(expected, result, ignore_non_fp)):
            return found
        found = comparison.find(
            getattr(expected, part),
            getattr(result, part),
            None if reference is None else getattr(reference, part),
            part,
        )
        if found is not None and found["kind"] != "integers":
            return found
        in_integers = in_integers or found
    return in_integers


def _mutation(expected: Run, result: Run, ignore_non_fp: bool) -> Difference | None:
    """An input that one program changes and the other does not."""
    for name in expected.input:
        if ignore_non_fp and _is_exact(expected.input[name]):
            continue
        by_eager = name in expected.changed
        if by_eager != (name in result.changed):
            who = ("eager", "the compiled program")
            changes, leaves = who if by_eager else reversed(who)
            return {
                "kind": "mutation",
                "where": f"input[{name!r}]",
                "message": f"{changes} changes it, {leaves} does not",
            }
    return None


def all_differences(
    expected: Run, again: Run, result: Run, reference: Run | None, **options: Any
) -> list[Difference]:
    """Each output and gradient that differs, but for those that two eager runs do not agree on.

    Errors are relative to the root mean square of each tensor: small values count as large ones do.
    """
    comparison = _Comparison(**options)
    found = []
    for where, get in _places(expected):
        eager = get(expected)
        scale = _scale(eager)
        judge = None if reference is None else _scaled(get(reference), scale)
        of_result, of_again = (
            comparison.find(_scaled(eager, scale), _scaled(get(run), scale), judge, where)
            for run in (result, again)
        )
        if of_result is not None and of_again is None:
            found.append(of_result)
    return found


def _places(run: Run) -> Iterator[tuple[str, Callable[[Run], Any]]]:
    for i in range(len(run.output)):
        yield f"output[{i}]", functools.partial(_result, number=i)
    for name in run.gradient:
        yield f"gradient[{name!r}]", functools.partial(_gradient, name=name)


def _result(run: Run, number: int) -> Any:
    return run.output[number] if number < len(run.output) else None


def _gradient(run: Run, name: str) -> Any:
    return run.gradient.get(name)


def _scale(value: Any) -> float:
    """The power of two that brings a tensor's root mean square near 1: it rounds nothing."""
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return 1.0
    if value.layout != torch.strided or value.numel() == 0:
        return 1.0
    wide = value.detach().double()
    size = float(wide.nan_to_num(0, 0, 0).square().mean().sqrt())
    if size == 0 or not math.isfinite(size):
        return 1.0
    return 2.0 ** max(-120, min(120, -math.frexp(size)[1]))


def _scaled(value: Any, scale: float) -> Any:
    return value.detach() * scale if isinstance(value, torch.Tensor) and scale != 1 else value


def not_compared(expected: Run) -> str:
    """What ``ignore_non_fp`` leaves out, in a sentence; empty if nothing."""
    parts = {part: sum(map(_is_exact, _leaves(getattr(expected, part)))) for part in PARTS}
    inputs = parts.pop("input")
    results = sum(parts.values())
    counts = [(results, "result"), (inputs, "input")]
    texts = [
        f"{count} integer or bool {what}{'' if count == 1 else 's'}"
        for count, what in counts
        if count > 0
    ]
    if not texts:
        return ""
    return f"{' and '.join(texts)} {'was' if results + inputs == 1 else 'were'} not compared"


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, dict):
        yield from _leaves(list(value.values()))
    else:
        yield value


def _is_exact(value: Any) -> bool:
    """Whether rounding cannot explain a difference."""
    if isinstance(value, torch.Tensor):
        return not (value.is_floating_point() or value.is_complex() or value.is_quantized)
    return isinstance(value, int | torch.SymInt | torch.SymBool)


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
        in_integers = None
        for key in keys:
            found = self.find(
                expected[key],
                result[key],
                None if reference is None else reference[key],
                f"{where}[{key!r}]",
            )
            if found is not None and found["kind"] != "integers":
                return found
            in_integers = in_integers or found
        return in_integers

    def _leaf(self, expected: Any, result: Any, reference: Any, where: str) -> Difference | None:
        if isinstance(expected, torch.Tensor) != isinstance(result, torch.Tensor):
            return (
                None
                if self.ignore_non_fp and expected is None
                else _structure(where, expected, result)
            )
        if not isinstance(expected, torch.Tensor):
            return self._constant(expected, result, reference, where)
        if expected.layout != result.layout:
            return {
                "kind": "structure",
                "where": where,
                "message": f"{expected.layout} became {result.layout}",
            }
        if expected.shape != result.shape:
            return {
                "kind": "shape",
                "where": where,
                "message": f"{list(expected.shape)} became {list(result.shape)}",
            }
        if expected.dtype != result.dtype:
            return {
                "kind": "dtype",
                "where": where,
                "message": f"{expected.dtype} became {result.dtype}",
            }
        if _is_exact(expected):
            return None if self.ignore_non_fp else self._integers(expected, result, where)
        if self._is_same(expected, result, reference):
            return None
        return self._values(expected, result, reference, where)

    def _constant(
        self, expected: Any, result: Any, reference: Any, where: str
    ) -> Difference | None:
        if isinstance(expected, float | complex):
            if self._is_same(expected, result, reference):
                return None
        elif self.ignore_non_fp or expected == result:
            return None
        return {
            "kind": "integers" if _is_exact(expected) else "values",
            "where": where,
            "error": _difference(expected, result),
            "message": f"{expected} became {result}",
        }

    @staticmethod
    def _integers(expected: torch.Tensor, result: torch.Tensor, where: str) -> Difference | None:
        if expected.layout != torch.strided:
            expected, result = expected.to_dense(), result.to_dense()
        if torch.equal(expected, result):
            return None
        count = int((expected != result).sum())
        largest = float((expected.double() - result.double()).abs().max())
        is_bool = expected.dtype == torch.bool
        what = "bools differ" if is_bool else f"integers differ, by up to {largest:g}"
        return {
            "kind": "integers",
            "where": where,
            "error": largest,
            "message": f"{count} of {expected.numel()} {what}",
        }

    def _is_same(self, expected: Any, result: Any, reference: Any) -> bool:
        if isinstance(expected, torch.Tensor) and _is_plain(expected):
            agreed = special.without(expected, result, reference)
            if agreed is None:
                return False
            expected, result, reference = agreed
        return same(
            expected,
            result,
            reference,
            tol=self.tolerance,
            equal_nan=True,
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


def _is_plain(tensor: torch.Tensor) -> bool:
    return tensor.layout == torch.strided and not tensor.is_quantized


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
