"""What a program's schedule looks like: the steps that ``TORCH_LOGS=schedule`` lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import assay


def steps_of(
    capfd: pytest.CaptureFixture[str], call: Callable[..., Any], inputs: list[Any]
) -> list[str]:
    """``kernel fused_add_0: ...`` or ``extern torch.ops.aten.mm.default: mm``, in order."""
    capfd.readouterr()
    assay.set_logs("schedule")
    try:
        assay.aot.compile(call, backend="native")(*inputs)
    finally:
        assay.set_logs("")
    lines = (line.split("] ", 2)[-1].strip() for line in capfd.readouterr().err.splitlines())
    return [line.split(". ", 1)[1] for line in lines if line[:1].isdigit()]
