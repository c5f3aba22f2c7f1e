"""Compile time and memory as graphs grow: 100, 1,000 and 10,000 nodes, each in its own process.

The program mixes pointwise calls, reductions over rows, views and a matrix product now and then, as
models do; numbers differ from place to place, so that no two kernels are the same. It is compiled
from its text, with an empty kernel cache: parsing, autograd, kernels.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SIZES = (100, 1_000, 10_000)


def text(nodes: int) -> str:
    """A graph of about that many calls."""
    lines = []
    value = "x"
    for i in range(nodes):
        kind = i % 10
        call = {
            0: f"torch.sin({value})",
            1: f"{value} * {0.5 + i / 1e6}",
            2: f"torch.relu({value})",
            3: f"{value} + x",
            4: f"{value}.mean(-1, keepdim = True)",
            5: f"v{i - 2} - {value}",
            6: f"{value}.transpose(0, 1)",
            7: f"torch.tanh({value})",
            8: f"{value} @ weight" if i % 50 == 8 else f"{value} + {i / 1e5}",
            9: f"torch.sigmoid({value})",
        }[kind]
        lines.append(f"        v{i} = {call}")
        value = f"v{i}"
    body = "\n".join(lines)
    return (
        "class Repro(torch.nn.Module):\n"
        f"    def forward(self, x, weight):\n{body}\n        return ({value},)\n"
    )


def measure(nodes: int) -> dict[str, float]:
    import torch

    import assay
    from assay._dynamo_backend import BACKEND

    def peak() -> int:
        with Path("/proc/self/status").open() as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))

    torch.set_num_threads(1)
    inputs = [torch.randn(32, 32), torch.randn(32, 32) / 8]
    small = assay.aot.compile(text(20), backend=BACKEND)
    small(*inputs)
    before = peak()
    begin = time.perf_counter()
    program = assay.aot.compile(text(nodes), backend=BACKEND)
    program(*inputs)
    seconds = time.perf_counter() - begin
    return {"seconds": seconds, "ms_per_node": 1e3 * seconds / nodes, "peak_kb": peak() - before}


def run() -> dict[int, dict[str, float]]:
    found = {}
    for nodes in SIZES:
        with tempfile.TemporaryDirectory() as cache:
            done = subprocess.run(
                [sys.executable, __file__, str(nodes)],
                env={**os.environ, "ASSAY_CACHE_DIR": cache},
                capture_output=True,
                text=True,
                check=False,
            )
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        found[nodes] = json.loads(done.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]))))
