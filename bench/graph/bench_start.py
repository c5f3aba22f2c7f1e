"""How long `assay run` takes on a small file, against `python -c "import torch"`."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path

ROUNDS = 7
FILE = Path(__file__).parents[2] / "tests/fixtures/stock/linear_layernorm_relu/forward_runnable.py"


def seconds(command: list[str]) -> tuple[float, float]:
    """Wall and CPU seconds of one run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    wall = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu


def run(binary: Path) -> dict[str, float]:
    commands = {
        "assay": [str(binary), "run", str(FILE)],
        "import_torch": [sys.executable, "-c", "import torch"],
    }
    wall = dict.fromkeys(commands, float("inf"))
    cpu = dict.fromkeys(commands, float("inf"))
    for _ in range(ROUNDS):
        for name, command in commands.items():
            wall_seconds, cpu_seconds = seconds(command)
            wall[name] = min(wall[name], wall_seconds)
            cpu[name] = min(cpu[name], cpu_seconds)
    return {
        "assay_s": wall["assay"],
        "import_torch_s": wall["import_torch"],
        "ratio": wall["assay"] / wall["import_torch"],
        "cpu_ratio": cpu["assay"] / cpu["import_torch"],
    }
