"""What capture costs: replaying small programs and recording models, against eager and stock.

All of them run in one process, in turns; the fastest of many rounds counts. Stock runs with its own
backend "eager", so that capture alone is compared.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from tests.stock.models import build
from tests.stock.models import call as call_model

import assay

MODELS = ("mlp", "resnet", "gpt2_small", "bert", "llama", "t5", "vit", "whisper")
ROUNDS = 30


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


def first_call(name: str) -> dict[str, float]:
    """Milliseconds of a first call above an eager one, each the fastest of several."""
    model, inputs = build(name)

    def seconds(fresh: Callable[[], Any], rounds: int) -> float:
        best = float("inf")
        for _ in range(rounds):
            program = fresh()
            begin = time.perf_counter()
            call_model(program, inputs)
            best = min(best, time.perf_counter() - begin)
        return best

    def stock() -> Any:
        torch._dynamo.reset()
        return torch.compile(model, backend="eager")

    with torch.no_grad():
        call_model(model, inputs)
        eager = seconds(lambda: model, 10)
        ours = seconds(lambda: assay.compile(model, backend="eager"), 5)
        theirs = seconds(stock, 2)
    return {"assay": 1e3 * (ours - eager), "stock": 1e3 * (theirs - eager), "eager": 1e3 * eager}


def run() -> dict[str, Any]:
    linears = torch.nn.Sequential(*[torch.nn.Linear(1, 1) for _ in range(48)])
    return {
        "x + 1": replay(add_one, torch.ones(1), 2000),
        "48 Linears": replay(linears, torch.ones(1, 1), 50),
        "first call": {name: first_call(name) for name in MODELS},
    }
