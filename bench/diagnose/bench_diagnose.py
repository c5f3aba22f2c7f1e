"""``assay diagnose`` on a script, and stock PyTorch's own way with the same script.

Stock's way is the failing run, which writes a launcher, and the minifier. It ends with a smaller
graph; the diagnosis also names the stage and the pass, and looks for a setting that avoids it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reduce import bench_reduce

SCRIPT = bench_reduce.HERE / "stock_failure.py"
CASES = [
    bench_reduce._faulty_inductor(model, "aot", kind)
    for model in ("mlp_relu", "chain")
    for kind in ("compile_error", "accuracy")
]


def run_stock(case: bench_reduce.Case, directory: Path) -> bench_reduce.Outcome:
    launcher, failing_run = bench_reduce.make_launcher(case, directory)
    found = bench_reduce.run_stock(case, launcher, directory)
    found.failing_run = failing_run
    return found


def run_assay(case: bench_reduce.Case, binary: Path, directory: Path) -> dict[str, Any]:
    begin = time.monotonic()
    output = str(directory / "diagnosis")
    command = [str(binary), "diagnose", "--json", "--output", output]
    done = subprocess.run(
        [*command, str(SCRIPT), case.model, case.backend, case.fault],
        capture_output=True,
        env={**os.environ, "ASSAY_PYTHON": sys.executable, "OMP_NUM_THREADS": "1"},
        check=False,
    )
    verdict = json.loads(done.stdout)
    found = {name: verdict[name] for name in ("status", "stage", "calls")}
    return {"seconds": time.monotonic() - begin, **found}


def run(binary: Path, only: str = "") -> Iterator[dict[str, Any]]:
    """What was measured of each case whose name contains ``only``."""
    for case in CASES:
        if only not in case.name:
            continue
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
            place = Path(name)
            found = run_assay(case, binary, place)
            stock = run_stock(case, place)
        ratio = found["seconds"] / bench_reduce.whole(stock)
        yield {"case": case.name, "assay": found, "stock": vars(stock), "ratio": ratio}
