"""What capture costs: replaying small programs and recording models, against eager and stock.

All of them run in one process, in turns; the fastest of many rounds counts. Stock runs with its own
backend "eager", so that capture alone is compared.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from tests.stock.models import build
from tests.stock.models import call as call_model

import assay

MODELS = ("mlp", "resnet", "gpt2_small", "bert", "llama", "t5", "vit", "whisper")
ROUNDS = 30
ROOT = Path(__file__).resolve().parents[2]


def add_one(x: torch.Tensor) -> torch.Tensor:
    return x + 1


def microseconds(works: dict[str, Callable[[], Any]], calls: int) -> dict[str, float]:
    """Per call of each."""
    best = dict.fromkeys(works, float("inf"))
    for work in works.values():
        for _ in range(3):
            work()
    for _ in range(ROUNDS):
        for name, work in works.items():
            begin = time.perf_counter()
            for _ in range(calls):
                work()
            best[name] = min(best[name], (time.perf_counter() - begin) / calls)
    return {name: 1e6 * seconds for name, seconds in best.items()}


def replay(program: Callable[..., Any], x: torch.Tensor, calls: int) -> dict[str, float]:
    ours = assay.compile(program, backend="eager")
    stock = torch.compile(program, backend="eager")
    with torch.no_grad():
        return microseconds(
            {"eager": lambda: program(x), "assay": lambda: ours(x), "stock": lambda: stock(x)},
            calls,
        )


def without_its_graph(module: Any, example_inputs: list[torch.Tensor]) -> Callable[..., Any]:
    """A backend whose functions compute nothing: what is left of a call are hook and guards."""
    results = tuple(module(*example_inputs))
    return lambda *inputs: results


def guards(program: Callable[..., Any], x: torch.Tensor, calls: int) -> dict[str, float]:
    ours = assay.compile(program, backend=without_its_graph)
    stock = torch.compile(program, backend=without_its_graph)
    with torch.no_grad():
        return microseconds({"assay": lambda: ours(x), "stock": lambda: stock(x)}, calls)


PEAK = """
import sys
import torch, assay
from tests.stock.models import build, call

def read(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(name))

torch.set_num_threads(1)
model, inputs = build(sys.argv[1])
call(torch.nn.Linear(8, 8), (torch.ones(1, 8),))
program = assay.compile(model, backend="eager") if sys.argv[2] == "assay" else model
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")  # the peak counts from here
call(program, inputs)
print(read("VmHWM"))
"""


def peak_memory(name: str) -> dict[str, int]:
    """KiB of the process at the peak of a first call with gradients, each the least of three."""
    command = [sys.executable, "-c", PEAK, name]
    found = {}
    for kind in ("eager", "assay"):
        runs = [
            subprocess.run([*command, kind], check=True, capture_output=True, text=True, cwd=ROOT)
            for _ in range(3)
        ]
        found[kind] = min(int(run.stdout) for run in runs)
    return found


def first_call(name: str) -> dict[str, float]:
    """Milliseconds of a first call above an eager one, each the fastest of several in turns."""
    model, inputs = build(name)

    def seconds(fresh: Callable[[], Any]) -> float:
        program = fresh()
        begin = time.perf_counter()
        call_model(program, inputs)
        return time.perf_counter() - begin

    def stock() -> Any:
        torch._dynamo.reset()
        return torch.compile(model, backend="eager")

    with torch.no_grad():
        call_model(model, inputs)
        eager = ours = float("inf")
        for _ in range(12):  # what disturbs one disturbs the other
            eager = min(eager, seconds(lambda: model))
            ours = min(ours, seconds(lambda: assay.compile(model, backend="eager")))
        theirs = min(seconds(stock) for _ in range(2))
    return {"assay": 1e3 * (ours - eager), "stock": 1e3 * (theirs - eager), "eager": 1e3 * eager}


def run() -> dict[str, Any]:
    linears = torch.nn.Sequential(*[torch.nn.Linear(1, 1) for _ in range(48)])
    return {
        "x + 1": replay(add_one, torch.ones(1), 2000),
        "48 Linears": replay(linears, torch.ones(1, 1), 50),
        "guards of 48 Linears": guards(linears, torch.ones(1, 1), 200),
        "peak memory": {name: peak_memory(name) for name in MODELS},
        "first call": {name: first_call(name) for name in MODELS},
    }
