"""Programs with one faulty call far from where it shows: long chains and random graphs.

Each is made from a seed. The fault is in `cumsum`, which is called once; whatever goes wrong there
passes through `distance` calls before `mm`, which wants both of its operands in one dtype.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

SIZE = 6


@dataclass(frozen=True)
class Calls:
    """What chains are made of. A wrong value or dtype of an operand is one of the result too."""

    unary: list[str]  # of a tensor of SIZE x SIZE, as the result is
    detours: list[tuple[str, str]]  # the same in two calls, over another size
    binary: list[str]
    cumsum: str
    mm: str


BEFORE_AUTOGRAD = Calls(
    unary=[
        "torch.neg({0})",
        "{0} * 0.875",
        "{0} * 1.125",
        "{0} + 0.25",
        "torch.transpose({0}, 0, 1)",
        "{0}.contiguous()",
        "torch.nn.functional.leaky_relu({0}, 0.5)",
        "torch.asinh({0})",
    ],
    detours=[
        ("{0}.reshape(4, 9)", "{0}.reshape(6, 6)"),
        ("torch.sum({0}, 1, keepdim = True)", "{0}.expand(6, 6)"),
        ("torch.mean({0}, 0)", "{0}.repeat(6, 1)"),
        ("torch.cat([{0}, {0}], 0)", "{0}[0:6]"),
        ("{0}.unsqueeze(0)", "{0}.squeeze(0)"),
        ("torch.stack([{0}, {0}], 0)", "torch.amax({0}, 0)"),
    ],
    binary=["{0} + {1}", "{0} + 0.5 * {1}", "torch.add({0}, {1}, alpha = -0.25)"],
    cumsum="torch.cumsum({0}, 1)",
    mm="torch.mm({0}, w)",
)
_ATEN = "torch.ops.aten."
AFTER_AUTOGRAD = Calls(
    unary=[
        _ATEN + "neg.default({0})",
        _ATEN + "mul.Tensor({0}, 1.125)",
        _ATEN + "add.Tensor({0}, 0.25)",
        _ATEN + "permute.default({0}, [1, 0])",
        _ATEN + "asinh.default({0})",
    ],
    detours=[
        (_ATEN + "sum.dim_IntList({0}, [1], True)", _ATEN + "expand.default({0}, [6, 6])"),
        (_ATEN + "mean.dim({0}, [0])", _ATEN + "repeat.default({0}, [6, 1])"),
        (_ATEN + "cat.default([{0}, {0}])", _ATEN + "slice.Tensor({0}, 0, 0, 6)"),
        (_ATEN + "unsqueeze.default({0}, 0)", _ATEN + "squeeze.dim({0}, 0)"),
    ],
    binary=[_ATEN + "add.Tensor({0}, {1})", _ATEN + "add.Tensor({0}, {1}, alpha = -0.25)"],
    cumsum=_ATEN + "cumsum.default({0}, 1)",
    mm=_ATEN + "mm.default({0}, w)",
)


@dataclass
class Chain:
    """The lines of a forward() of `before` calls, the faulty one, `distance` calls, and `mm`."""

    seed: int
    distance: int = 40
    before: int = 30
    branches: bool = False
    calls: Calls = BEFORE_AUTOGRAD
    lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def add(self, call: str) -> str:
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {call}")
        return name

    def step(self, value: str, others: list[str]) -> str:
        """One or two calls that read the value; `others` may be read too."""
        kind = self.random.random()
        if self.branches and others and kind < 0.35:
            return self.add(
                self.random.choice(self.calls.binary).format(value, self.random.choice(others))
            )
        if kind < 0.55:
            first, second = self.random.choice(self.calls.detours)
            return self.add(second.format(self.add(first.format(value))))
        return self.add(self.random.choice(self.calls.unary).format(value))

    def body(self) -> str:
        """Another one of the same seed where a wrong value would cancel out or fade on its way."""
        while True:
            self.lines.clear()
            text = self._body()
            if _shows(text):
                return text

    def _body(self) -> str:
        clean = ["x"]
        while len(self.lines) < self.before:
            clean.append(self.step(clean[-1], clean))
        begin = len(self.lines)
        wrong = ["cumsum"]
        self.lines.append(f"cumsum = {self.calls.cumsum.format(clean[-1])}")
        while len(self.lines) - begin <= self.distance:
            wrong.append(self.step(wrong[-1], wrong[:-1] + clean))
        self.lines.append(f"mm = {self.calls.mm.format(wrong[-1])}")
        result = self.step("mm", clean)
        return "\n".join([*self.lines, f"return ({result},)"])


def _shows(body: str) -> bool:
    """Whether a value of `cumsum` that is half as large again changes the result by 1%."""
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(SIZE, SIZE, generator=generator) for _ in range(2)]
    lines = body.split("\n")
    faulty = next(i for i, line in enumerate(lines) if line.startswith("cumsum = ")) + 1
    wrong = [*lines[:faulty], "cumsum = cumsum * 1.5", *lines[faulty:]]
    results = []
    for version in (lines, wrong):
        scope: dict[str, Any] = {"torch": torch}
        exec("def forward(x, w):\n" + "\n".join(f"    {line}" for line in version), scope)
        results.append(scope["forward"](*inputs)[0])
    right, other = results
    return bool((other - right).abs().max() > 0.01 * right.abs().max())


FILE = """
import torch
{setup}
class Repro(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()

    def forward(self, x, w):
        {body}

mod = Repro()

def load_args(reader):
    buf0 = reader.storage(None, {bytes})
    reader.tensor(buf0, ({size}, {size}), requires_grad={grad}, is_leaf=True)  # x
    buf1 = reader.storage(None, {bytes})
    reader.tensor(buf1, ({size}, {size}), is_leaf=True)  # w
load_args._version = 0

if __name__ == '__main__':
    {run}
"""
RUN = {
    "after_dynamo": """from torch._dynamo.repro.after_dynamo import run_repro
    run_repro(mod, load_args, accuracy=False, command='run',
        save_dir=None, autocast=False, backend='inductor')""",
    "after_aot": """from torch._dynamo.repro.after_aot import run_repro
    with torch.no_grad():
        run_repro(mod, load_args, accuracy=False, command='run', save_dir=None,
            tracing_mode='real', check_str=None)""",
}


def program_file(
    directory: Path, body: str, setup: str = "", grad: bool = False, stage: str = "after_dynamo"
) -> Path:
    """A file of the lines; `setup` are lines of Python at its beginning."""
    file = directory / "program.py"
    text = FILE.format(
        setup=setup,
        body=body.replace("\n", "\n        "),
        bytes=4 * SIZE * SIZE,
        size=SIZE,
        grad=grad,
        run=RUN[stage],
    )
    file.write_text(text)
    return file


def chain_file(directory: Path, chain: Chain, setup: str = "", grad: bool = False) -> Path:
    """A file of the chain."""
    stage = "after_aot" if chain.calls is AFTER_AUTOGRAD else "after_dynamo"
    return program_file(directory, chain.body(), setup, grad, stage)


# Inductor's `cumsum`, wrong on purpose.
STOCK_FAULT = """
import torch
from torch._inductor import lowering
def faulty(right):
    def lower(*args, **kwargs):
        result = right(*args, **kwargs)
        result.realize()
        return {wrong}
    return lower
op = torch.ops.aten.cumsum.default
lowering.lowerings[op] = faulty(lowering.lowerings[op])
"""
_LOWERED = "lowering.lowerings[torch.ops.aten.{0}]"
STOCK_FAULTS = {
    "dtype": STOCK_FAULT.format(wrong="lowering.to_dtype(result, torch.float64)"),
    "nan": STOCK_FAULT.format(wrong=_LOWERED.format("mul.Tensor") + "(result, float('nan'))"),
    "accuracy": STOCK_FAULT.format(wrong=_LOWERED.format("mul.Tensor") + "(result, 1.5)"),
}
