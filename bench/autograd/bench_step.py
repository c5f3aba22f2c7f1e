"""One training step of the guide's MLP under ``aot_eager``: ours, stock's and eager, in turns.

Five times Linear(200, 200) and ReLU, one thread. A step is forward, a sum, and backward into fresh
``.grad``. The fastest of many counts.
"""

from __future__ import annotations

import gc
import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import assay

BATCHES = (1, 20, 200)
ROUNDS = 400


def _mlp() -> torch.nn.Module:
    torch.manual_seed(0)
    layers: list[torch.nn.Module] = []
    for _ in range(5):
        layers += [torch.nn.Linear(200, 200), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers)


def _timed_step(
    program: Callable[..., Any], parameters: list[torch.Tensor], x: torch.Tensor
) -> float:
    for parameter in parameters:
        parameter.grad = None
    begin = time.perf_counter()
    program(x).sum().backward()
    return time.perf_counter() - begin


def run() -> dict[int, dict[str, float]]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    found: dict[int, dict[str, float]] = {}
    for batch in BATCHES:
        net, x = _mlp(), torch.randn(batch, 200)
        parameters = list(net.parameters())
        torch._dynamo.reset()
        programs = {
            "eager": net,
            "assay": assay.aot.compile(net, backend="aot_eager"),
            "stock": torch.compile(net, backend="aot_eager"),
        }
        best = dict.fromkeys(programs, float("inf"))
        gc.disable()
        for _ in range(ROUNDS):
            for name, program in programs.items():
                best[name] = min(best[name], _timed_step(program, parameters, x))
        gc.enable()
        found[batch] = {f"{name}_us": seconds * 1e6 for name, seconds in best.items()}
        found[batch]["against_stock"] = best["assay"] / best["stock"]
        found[batch]["against_eager"] = best["assay"] / best["eager"]
    torch.set_num_threads(threads)
    return found


def run_cpp(binary: Path) -> dict[int, dict[str, float]]:
    """The same from C++ with ``assay::compile``, against eager from C++."""
    found = {}
    for batch in BATCHES:
        done = subprocess.run([binary, str(batch)], check=True, capture_output=True, text=True)
        found[batch] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    for batch, row in run().items():
        print(batch, {key: round(value, 2) for key, value in row.items()})
