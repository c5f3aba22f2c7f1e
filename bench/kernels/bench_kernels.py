"""Ten kernels through stock Dynamo with ``backend="assay"`` and ``"inductor"``, and eagerly.

Per number of threads one process, with empty caches. Compiled programs run in turns, the fastest of
many rounds counts. The marginal compile time is that of the first call without what Dynamo itself
takes, after another kernel was compiled, so that starting up is not in it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
THREADS = (1, 2)
SECONDS = 1.5  # of measuring, per kernel


def _seconds(work: Any) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def _first_call(program: Any, inputs: Any, backend: str) -> tuple[Any, float]:
    import torch

    torch._dynamo.reset()
    compiled = torch.compile(program, backend=backend)
    return compiled, _seconds(lambda: compiled(*inputs))


def measure(threads: int) -> dict[str, dict[str, float]]:
    """For each kernel microseconds of each way to run it, and milliseconds of compiling."""
    import torch

    import assay  # noqa: F401  (registers the backend)
    from kernels.programs import PROGRAMS

    torch.set_num_threads(threads)
    for backend in ("inductor", "assay", "eager"):
        _first_call(lambda x: x.sin() + 1, [torch.randn(100)], backend)
    found: dict[str, dict[str, float]] = {}
    for name, make in PROGRAMS.items():
        torch.manual_seed(0)
        program, inputs = make()
        works: dict[str, Any] = {"eager": program}
        first = {}
        for backend in ("eager", "inductor", "assay"):
            compiled, first[backend] = _first_call(program, inputs, backend)
            if backend != "eager":
                works[backend] = compiled
        expected = program(*inputs)
        for work in works.values():
            torch.testing.assert_close(work(*inputs), expected, rtol=1e-4, atol=1e-4)
        best = dict.fromkeys(works, float("inf"))
        end = time.perf_counter() + SECONDS
        while time.perf_counter() < end:
            for kind, work in works.items():
                best[kind] = min(
                    best[kind], _seconds(lambda work=work, inputs=inputs: work(*inputs))
                )
        found[name] = {f"{kind}_us": 1e6 * value for kind, value in best.items()}
        for backend in ("inductor", "assay"):
            found[name][f"{backend}_compile_ms"] = 1e3 * (first[backend] - first["eager"])
    return found


def run() -> dict[int, dict[str, dict[str, float]]]:
    found = {}
    for threads in THREADS:
        with tempfile.TemporaryDirectory() as caches:
            environment = {
                **os.environ,
                "PYTHONPATH": f"{ROOT / 'bench'}:{os.environ.get('PYTHONPATH', '')}",
                "TORCHINDUCTOR_CACHE_DIR": f"{caches}/inductor",
                "ASSAY_CACHE_DIR": f"{caches}/assay",
                "OMP_NUM_THREADS": str(threads),
            }
            done = subprocess.run(
                [sys.executable, __file__, str(threads)],
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode != 0:
                raise RuntimeError(done.stderr)
            found[threads] = json.loads(done.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]))))
