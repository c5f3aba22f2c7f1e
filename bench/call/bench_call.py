"""The cost of one call: `x + 1` on one element, gradients off, against eager and stock.

All of them run in one process, in turns; the fastest of many rounds counts.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import assay

ROUNDS = 60
CALLS = 5000


def add_one(x: torch.Tensor) -> torch.Tensor:
    return x + 1


def measure(works: dict[str, Callable[[torch.Tensor], Any]]) -> dict[str, float]:
    """Nanoseconds per call of each."""
    x = torch.ones(1)
    best = dict.fromkeys(works, float("inf"))
    for work in works.values():
        assert torch.equal(work(x), x + 1)
    for _ in range(ROUNDS):
        for name, work in works.items():
            begin = time.perf_counter()
            for _ in range(CALLS):
                work(x)
            best[name] = min(best[name], (time.perf_counter() - begin) / CALLS)
    return {name: 1e9 * seconds for name, seconds in best.items()}


def run(binary: Path) -> dict[str, dict[str, float]]:
    """By front end: nanoseconds per call."""
    works: dict[str, Callable[[torch.Tensor], Any]] = {"bare": add_one}
    works["native"] = assay.aot.compile(add_one, backend="native")
    for backend in ("eager", "aot_eager"):
        works[backend] = assay.aot.compile(add_one, backend=backend)
        works[f"stock {backend}"] = torch.compile(add_one, backend=backend)
    with torch.no_grad():
        python = measure(works)
    done = subprocess.run([binary], check=True, capture_output=True)
    return {"python": python, "cpp": json.loads(done.stdout)}
