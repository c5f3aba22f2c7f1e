"""Where a compiled program may differ from eager, and how: nothing else is let pass.

Kinds of exceptions:

- refused, with a `TraceError` that says so: "reads values", "size depends on values", "custom
  autograd function", "sparse";
- compared within `TOLERANCE`: "other kernel", where eager chooses a kernel that a graph cannot;
- compared but for that: "strides of gradient".

An exception that is not needed any more is a failure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

import assay
from autograd.compare import Make, check

TOLERANCE = 1e-5
MESSAGES = {
    "reads values": "reads the value",
    "size depends on values": "depends on the values of its arguments",
    "custom autograd function": "uses the custom autograd function",
    "sparse": "sparse",
}
COMPARED = ("other kernel", "strides of gradient")


@dataclass(frozen=True)
class Expected:
    """What happens instead, and why; ``when`` says for which modules, by default for all."""

    kind: str
    reason: str
    when: Callable[[Any], bool] = lambda _: True

    def __post_init__(self) -> None:
        assert self.kind in (*MESSAGES, *COMPARED)


def check_expected(
    expected: Expected | None,
    program: Callable[..., Any],
    make: Make,
    process: Callable[[Any], Any] = lambda result: result,
) -> bool:
    """Asserts that ``expected`` is what happens; says whether the exception was needed."""
    if expected is None:
        check(program, make, process=process)
        return False
    if expected.kind in MESSAGES:
        with pytest.raises(assay.TraceError, match=MESSAGES[expected.kind]):
            assay.aot.compile(program, backend="aot_eager")(*make())
        return True
    by_strides = expected.kind == "strides of gradient"
    tolerance = 0.0 if by_strides else TOLERANCE
    try:
        check(program, make, process=process)
    except AssertionError:
        check(program, make, process=process, tolerance=tolerance, gradient_strides=not by_strides)
        return True
    return False
