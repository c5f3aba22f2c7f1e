"""A program whose compilation by stock PyTorch fails: `stock_failure.py MODEL BACKEND FAULT`.

FAULT is none (the backend itself has one), compile_error, runtime_error or accuracy; the last three
are inductor's own. Run with TORCHDYNAMO_REPRO_AFTER it leaves a minifier_launcher.py.
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import torch
import torch._inductor.config

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
from stock.models import build, call


def main(model: str, backend: str, fault: str) -> None:
    if fault != "none":
        torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = fault
    fn, inputs = build(model)
    with torch.no_grad(), contextlib.suppress(Exception):
        call(torch.compile(fn, backend=backend), inputs)


if __name__ == "__main__":
    main(*sys.argv[1:])
